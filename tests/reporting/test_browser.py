"""The report in a real browser: nothing overflows, nothing is clipped, everything can be read, nothing goes wrong."""

import pytest

from gbfl_compile.reporting.page import ReportInputs, render_page
from tests.reporting.browser import CLIPPED, CONTRAST, OVERFLOW, UNFOLD, chromium, show
from tests.reporting.samples import (
    ATTRIBUTE,
    HOSTILE,
    PROVED,
    RAN,
    audit_of,
    different,
    rule_list,
    rule_set,
    small_tree,
    target,
    verdict_of,
)

LEAST_CONTRAST = 4.5
"""WCAG 2, level AA, for text of ordinary size."""

PAPER = 718
"""A4 without its margins, in CSS pixels."""


def deep_tree():
    """A tree as the demo makes them, of depth 5, with long names."""
    from gbfl_compile.ir.nodes import Program, leaf, split

    rules = rule_set(31, ("benign", "malignant"), features=12)

    def grow(depth, clause):
        if depth == 5:
            return leaf(0.9, 0.1, rows=clause)
        return split(clause, grow(depth + 1, 2 * clause + 1), grow(depth + 1, 2 * clause + 2))

    names = tuple(f"fractal_dimension_error_{number}" for number in range(12))
    return Program(names, rules.classes, rules.clauses, grow(0, 0), {})


def pages():
    tree, rules, listed = deep_tree(), rule_set(), rule_list()
    hostile = small_tree((HOSTILE, "x" * 300), (ATTRIBUTE, "y" * 300), {"name": "z" * 300})
    proved = {"c": target(tree, proof=PROVED, execution=RAN), "python": target(tree, "not run", reason="none")}
    return {
        "tree": render_page(tree, ReportInputs(verdict_of(tree, **proved), row=[0.5] * 12)),
        "rule set": render_page(
            rules, ReportInputs(row=[0.5] * 30, sizes=[{"built_with": "gcc -Os -fno-pie", "text": 12345}])
        ),
        "audit": render_page(rules, ReportInputs(verdict_of(rules, c=different(rules)), audit_of(rules, 3))),
        "rule list": render_page(listed, ReportInputs(row=[0.5] * 8)),
        "hostile": render_page(
            hostile, ReportInputs(verdict_of(hostile, c=different(hostile)), audit_of(hostile), [1.0, 2.0])
        ),
    }


NAMES = ("tree", "rule set", "audit", "rule list", "hostile")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    for name, text in pages().items():
        (path / f"{name}.html").write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
def test_nothing_overflows_is_clipped_or_too_pale(browser, folder, name, width, scheme):
    show(browser, folder / f"{name}.html", width, scheme)
    assert browser.execute_script(OVERFLOW) == [0, []]
    browser.execute_script(UNFOLD)
    assert browser.execute_script(OVERFLOW) == [0, []]
    assert browser.execute_script(CLIPPED) == []
    *palest, (pieces, _) = browser.execute_script(CONTRAST)
    assert pieces > 100
    assert min(contrast for contrast, _ in palest) >= LEAST_CONTRAST, palest
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("sound", "spoilt", "measure"),
    [
        ("--soft: #575c63", "--soft: #8a8f96", CONTRAST),
        ("figure { margin: 0;", "figure { margin: 0; width: 500px;", OVERFLOW),
        ("font-size: 11px", "font-size: 15px", CLIPPED),
    ],
)
def test_the_measures_notice_a_spoilt_page(browser, folder, sound, spoilt, measure):
    text = (folder / "tree.html").read_text(encoding="utf-8")
    assert sound in text
    bad = folder / "spoilt.html"
    bad.write_text(text.replace(sound, spoilt), encoding="utf-8")
    show(browser, folder / "tree.html", 360)
    before = browser.execute_script(measure)
    show(browser, bad, 360)
    after = browser.execute_script(measure)
    if measure is CONTRAST:
        assert before[0][0] >= LEAST_CONTRAST > after[0][0]
    else:
        assert before in ([], [0, []])
        assert after not in ([], [0, []])


def test_a_hostile_name_runs_nothing(browser, folder):
    show(browser, folder / "hostile.html", 1440)
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [0, 0]
    assert HOSTILE in browser.execute_script("return document.body.innerText")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", ["tree", "hostile"])
def test_a_screen_reader_finds_its_way(browser, folder, name):
    show(browser, folder / f"{name}.html", 360)
    browser.execute_script(UNFOLD)
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named_roles = [(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in nodes]
    roles = [role for role, _ in named_roles]
    assert {"banner", "navigation", "main", "contentinfo", "heading", "table", "rowheader"} <= set(roles)
    assert [name for role, name in named_roles if role in ("image", "img", "region") and not name] == []
    assert roles.count("image") + roles.count("img") >= 3


def test_the_first_tab_leads_to_the_report(browser, folder):
    from selenium.webdriver.common.keys import Keys

    show(browser, folder / "tree.html", 1440)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("href").endswith("#main")


@pytest.mark.parametrize("name", ["tree", "audit"])
def test_paper_shows_what_the_screen_folds_or_scrolls(browser, folder, name):
    folded = (
        "return [...document.querySelectorAll('details')].filter(d => d.getBoundingClientRect().height < 60).length"
    )
    show(browser, folder / f"{name}.html", PAPER)
    assert browser.execute_script(folded) > 0
    show(browser, folder / f"{name}.html", PAPER, media="print")
    assert browser.execute_script(folded) == 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PAPER


# Words of a verdict that are broken somewhere else than between two of them: more lines than words.
BROKEN = """
return [...document.querySelectorAll('.matrix .word')].filter(word => {
  const lines = new Set([...word.getClientRects()].map(place => Math.round(place.top)));
  return lines.size > word.textContent.trim().split(/\\s+/).length;
}).map(word => word.textContent);
"""


@pytest.mark.parametrize("name", ["tree", "audit", "hostile"])
def test_no_word_of_the_verdict_is_broken(browser, folder, name):
    for width, media in ((360, "screen"), (1440, "screen"), (PAPER, "print")):
        show(browser, folder / f"{name}.html", width, media=media)
        assert browser.execute_script(BROKEN) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
