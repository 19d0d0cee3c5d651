"""The interactive page: its answers are `evaluate`'s, it runs no script but its own, and the keyboard is enough."""

import base64
import datetime as dt
import hashlib
import json
import random
import re
from dataclasses import replace

import pytest

from gbfl_compile import report
from gbfl_compile.auditing.diff import diff
from gbfl_compile.cli.loans import FEATURES, loans
from gbfl_compile.ir.evaluate import clause_holds, evaluate
from gbfl_compile.ir.json import load, save
from gbfl_compile.ir.kinds import plain_value
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, Split, leaf, split
from gbfl_compile.reporting.page import ReportInputs, render_page
from gbfl_compile.reporting.panel import Example
from tests.counts import shorten
from tests.reporting.browser import OVERFLOW, chromium, show
from tests.reporting.samples import ATTRIBUTE, HOSTILE, rule_set, small_tree

KINDS = ("number", "category", "boolean", "date", "number")
CLAUSES = (
    Clause((OneOf(1, (HOSTILE, "car")), Interval(0, None, 3000.0))),
    Clause((OneOf(2, ("true",)), Interval(3, 19783.0, None))),
    Clause((Interval(3, None, 19783.0, if_missing=True), Interval(4, 0.1, 0.3, "both"))),
    Clause((Interval(4, 0.2, None), OneOf(1, ("boat", "car"), negated=True, if_missing=True))),
)
NODES = split(
    0, leaf(0.1, 0.9), split(1, leaf(0.2, 0.8), split(2, leaf(0.7, 0.3), split(3, leaf(0.9, 0.1), leaf(1.0, 0.0))))
)
NAMES = ("income", "purpose", "smoker", "opened", "debt share")
TREE = Program(NAMES, ("no", "yes"), CLAUSES, NODES, {"mining": {"whole_numbers": ["income"]}}, kinds=KINDS)
CARD = replace(TREE, decision=Scorecard((0, -2), ((0, 3), (0, 1), (1, 0), (0, 1)), 1))
ROW = [2500.0, "car", True, dt.date(2024, 2, 29), 0.2]

# Sets every control as a person would, and collects what the page says.
SET = """
const answers = [];
for (const row of arguments[0]) {
  for (const [index, value] of Object.entries(row)) {
    const field = document.getElementById(`try-${index}`), gap = document.getElementById(`try-${index}-missing`);
    const send = (element) => element.dispatchEvent(new Event('input', {bubbles: true}));
    if (gap.checked !== (value === null)) { gap.checked = value === null; send(gap); }
    if (value === null) continue;
    if (field.tagName === 'SELECT') field.value = [...field.options].find(option => option.text === value).value;
    else field.value = value;
    send(field);
  }
  const box = document.getElementById('try-answer').dataset;
  answers.push([Number(box.index), JSON.parse(box.probabilities), JSON.parse(box.held)]);
}
return answers;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


def page(tmp_path, program, rows=(ROW,)):
    path = tmp_path / "page.html"
    inputs = ReportInputs(examples=[Example(f"row {i}", row) for i, row in enumerate(rows)], interactive=True)
    path.write_text(render_page(program, inputs), encoding="utf-8")
    return path


def settings(draw):
    """A random row, often at a bound or one step from it, and the same row as the page's controls take it."""
    day = dt.date(2024, 3, 1) + dt.timedelta(days=draw.choice((-400, -1, 0, 1, 300)))
    row = [
        draw.choice((2999.0, 3000.0, 3001.0, -7.0, 12345.0)),
        draw.choice(("car", HOSTILE, "boat", "other")),
        draw.random() < 0.5,
        day,
        draw.choice((0.1, 0.3, 0.2, 0.30000000000000004, 0.09999999999999999, draw.random())),
    ]
    row = [None if draw.random() < 0.15 else value for value in row]
    shown = {
        i: value if value is None else {2: str(value).lower(), 3: str(value)}.get(i, value)
        for i, value in enumerate(row)
    }
    return row, shown


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "scorecard"])
def test_what_the_page_says_is_what_evaluate_says(browser, tmp_path, program):
    show(browser, page(tmp_path, program), 1200)
    draw = random.Random(5)
    rows = [settings(draw) for _ in range(1000)]
    answers = browser.execute_script(SET, [shown for _, shown in rows])
    different = 0
    for (row, _), (index, probabilities, held) in zip(rows, answers, strict=True):
        expected = evaluate(program, row)
        same = program.classes[index] == expected.label and tuple(held) == tuple(expected.held)
        near = all(abs(a - b) <= 1e-12 for a, b in zip(probabilities, expected.probabilities, strict=True))
        different += not (same and near)
    assert different == 0
    assert {program.classes[index] for index, _, _ in answers} == {"no", "yes"}
    assert browser.get_log("browser") == []


def test_the_changes_that_it_names_do_flip_the_answer(browser, tmp_path):
    draw = random.Random(6)
    show(browser, page(tmp_path, TREE), 1200)
    flipped = 0
    for _ in range(shorten(160)):
        ((before, _, _),) = browser.execute_script(SET, [settings(draw)[1]])
        after = browser.execute_script(
            "const b = document.querySelector('#try-flips button'); if (!b) return null; b.click();"
            "return Number(document.getElementById('try-answer').dataset.index);"
        )
        assert after != before
        flipped += after is not None
    assert flipped > 5


def test_the_answer_says_which_column_it_is_about(browser, tmp_path):
    text = "return document.getElementById('try-answer').querySelector('.decision').textContent"
    named = replace(TREE, metadata={"mining": {"data": {"target": f"default {HOSTILE}"}}})
    for program, start in ((TREE, "The rules answer "), (named, f"default {HOSTILE}: ")):
        show(browser, page(tmp_path, program), 1200)
        assert browser.execute_script(text) == start + evaluate(program, ROW).label


def test_it_asks_the_network_for_nothing_and_logs_nothing(browser, tmp_path):
    show(browser, page(tmp_path, TREE), 1200)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.getElementById('try').hidden") is False


def test_its_policy_allows_its_own_script_alone(browser, tmp_path):
    path = page(tmp_path, TREE)
    text = path.read_text()
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in text or f"script-src 'sha256-{digest}'" in text
    assert "unsafe-eval" not in text
    assert "script-src 'unsafe-inline'" not in text
    path.write_text(text.replace("</body>", "<script>window.intruder = 1</script></body>"))
    show(browser, path, 1200)
    assert browser.execute_script("return window.intruder === undefined")
    assert "The action has been blocked" in browser.get_log("browser")[0]["message"]


def test_hostile_names_stay_names(browser, tmp_path):
    hostile = small_tree((HOSTILE, ATTRIBUTE), (ATTRIBUTE, "</script><script>alert(1)</script>"), {"name": HOSTILE})
    show(browser, page(tmp_path, hostile, ([1.0, 2.0],)), 1200)
    assert browser.execute_script("return document.querySelectorAll('script').length") == 1
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.execute_script("return document.getElementById('try-controls').textContent")
    assert browser.get_log("browser") == []


def test_the_keyboard_alone_reaches_and_moves_everything(browser, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(browser, page(tmp_path, TREE), 1200)
    reached = set()
    for _ in range(80):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        active = browser.switch_to.active_element
        reached.add(active.get_attribute("id") or active.get_attribute("data-order") or active.text)
        if active.get_attribute("aria-label") == "income, slider":
            before = browser.execute_script("return document.getElementById('try-0').value")
            ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
            assert browser.execute_script("return document.getElementById('try-0').value") != before
    assert {"try-example", "try-0", "try-1", "try-2", "try-3", "try-0-missing", "try-filter", "rows", "C0"} <= reached
    assert {"edit-clause", "edit-reset"} <= reached


def test_a_tree_says_how_each_question_on_the_way_was_answered(browser, tmp_path):
    rows = (ROW, [9000.0, "boat", False, None, 0.25], [None] * 5)
    show(browser, page(tmp_path, TREE, rows), 1200)
    for place, row in enumerate(rows):
        choose = "const f = document.getElementById('try-example'); f.value = arguments[0];"
        browser.execute_script(choose + "f.dispatchEvent(new Event('input'));", str(place))
        shown = [line.text for line in browser.find_elements("css selector", "#try-held li")]
        plain = [plain_value(*each) for each in zip(KINDS, row, NAMES, strict=True)]
        way, node = [], TREE.decision.nodes[0]
        while isinstance(node, Split):
            holds = clause_holds(TREE.clauses[node.clause], plain)
            way.append((f"C{node.clause}", "yes" if holds else "no"))
            node = TREE.decision.nodes[node.then if holds else node.otherwise]
        assert [(line.split()[0], line.split()[-1]) for line in shown] == way
    assert "Why" in browser.execute_script("return document.getElementById('try-why').textContent")


def test_a_page_without_rows_neither_counts_nor_points_at_them(browser, tmp_path):
    show(browser, page(tmp_path, TREE, ()), 1200)
    assert browser.find_elements("css selector", "#try [data-order=rows]") == []
    head = browser.find_elements("css selector", "#try thead th")
    lines = browser.find_elements("css selector", "#try-rules tr")
    assert {len(line.find_elements("css selector", "td, th")) for line in lines} == {len(head)}
    assert "examples" not in browser.execute_script("return document.getElementById('try-caption').textContent")
    browser.execute_script("document.querySelector('#try-rules button').click()")
    assert browser.get_log("browser") == []


def test_rules_are_filtered_and_sorted_and_show_their_rows(browser, tmp_path):
    show(browser, page(tmp_path, TREE, (ROW, [9000.0, "boat", False, None, 0.25])), 1200)
    script = (
        "const f = document.getElementById('try-filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'));"
    )
    browser.execute_script(script, "smoker")
    assert len(browser.find_elements("css selector", "#try-rules tr")) == 1
    browser.execute_script(script, "")
    browser.execute_script("document.querySelector('[data-order=rows]').click()")
    counts = [int(row.text.split()[-3]) for row in browser.find_elements("css selector", "#try-rules tr")]
    assert counts == sorted(counts, reverse=True)
    browser.execute_script("document.querySelector('#try-rules button').click()")
    assert "of 2 examples" in browser.execute_script("return document.getElementById('try-rows').textContent")


def test_an_edited_program_is_exported_and_diff_proves_what_changed(browser, tmp_path):
    old = tmp_path / "old.json"
    save(TREE, old)
    rows = ([3000.0, "car", False, None, 0.5], [2500.0, "car", False, None, 0.5])
    show(browser, page(tmp_path, TREE, rows), 1200)
    browser.execute_script(
        "const f = document.getElementById('edit-1-hi'); f.value = '3001'; f.dispatchEvent(new Event('input'));"
    )
    assert browser.execute_script("return document.getElementById('edit-moves').dataset.moved") == "1"
    assert "no → yes" in browser.execute_script("return document.getElementById('edit-moves').textContent")
    browser.execute_script("document.getElementById('edit-save').click()")
    new = tmp_path / "new.json"
    new.write_text(browser.execute_script("return document.getElementById('edit-text').value"))
    edited = load(new)
    assert edited.clauses[0].atoms[1] == Interval(0, None, 3001.0)
    assert edited.clauses[1:] == TREE.clauses[1:]
    assert [evaluate(edited, row).label for row in rows] == ["yes", "yes"]
    assert diff(TREE, edited).verdict == "different"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_sticks_out(browser, tmp_path, width):
    show(browser, page(tmp_path, TREE), width)
    assert browser.execute_script(OVERFLOW) == [0, []]


def test_the_page_without_its_script_is_the_static_one(tmp_path):
    save(TREE, tmp_path / "p.json")
    size = report(tmp_path / "p.json", tmp_path / "static.html", static=True)
    text = (tmp_path / "static.html").read_text()
    assert "<script" not in text
    assert "script-src" not in text
    assert report(tmp_path / "p.json", tmp_path / "page.html") > size


def test_a_page_with_examples_of_a_real_table_stays_below_a_megabyte(tmp_path):
    (tmp_path / "loans.csv").write_text(loans(500, 1))
    program = Program(
        FEATURES,
        ("no", "yes"),
        (Clause((Interval(10, 2.0, None),)),),
        split(0, leaf(0.1, 0.9), leaf(0.9, 0.1)),
        kinds=("date", "category", *["number"] * 4, "category", "date", "category", "number", "number", "boolean"),
    )
    size = report(program, tmp_path / "r.html", examples=tmp_path / "loans.csv")
    assert size == (tmp_path / "r.html").stat().st_size < 1_000_000
    assert report(rule_set(), tmp_path / "large.html") < 1_000_000


def test_a_draft_without_digests_is_read_and_one_with_a_wrong_digest_is_not(tmp_path):
    from gbfl_compile.errors import BadInput

    save(TREE, tmp_path / "p.json")
    form = json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "draft.json").write_text(json.dumps({**form, "digest": None, "metadata_digest": None}))
    assert load(tmp_path / "draft.json") == TREE
    (tmp_path / "wrong.json").write_text(json.dumps({**form, "digest": "0" * 64}))
    with pytest.raises(BadInput, match="the file was changed"):
        load(tmp_path / "wrong.json")
