"""Hostile names and labels through the report: the page is opened in a real browser, where a script would leave a mark."""

import re
from dataclasses import replace

import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.validate import validate
from gbfl_compile.reporting import page
from tests.reporting.browser import chromium
from tests.reporting.samples import audit_of, different, verdict_of
from tests.security.attacks import (
    RAW,
    TEMPLATE,
    Attack,
    Harmless,
    all_of,
    anything_goes,
    armed,
    code_ran,
    every_kind,
    nothing_escaped,
    program_of,
    put,
    texts,
    unprintable,
)

NOT_CODE = Harmless("a page is read by no compiler and no formatter")
MARK = "window.canary = 1"


def without_guard(template, autoescape=False, twice=False, unpoliced=False):
    """The report's template with its guard taken away."""

    class Unguarded:
        def render(self, **values):
            environment = template.environment.overlay(autoescape=autoescape)
            text = environment.get_template("page.html.jinja").render(**values)
            text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text) if unpoliced else text
            return environment.from_string(text).render() if twice else text

    return Unguarded()


def no_escaping(monkeypatch):
    template = page._template("page.html.jinja")
    monkeypatch.setattr(page, "_template", lambda _name: without_guard(template, unpoliced=True))


def policy_only(monkeypatch):
    """Nothing is escaped, but the page still forbids scripts."""
    template = page._template("page.html.jinja")
    monkeypatch.setattr(page, "_template", lambda _name: without_guard(template))


def rendered_twice(monkeypatch):
    template = page._template("page.html.jinja")
    monkeypatch.setattr(page, "_template", lambda _name: without_guard(template, autoescape=True, twice=True))


PRINTED_RAW = all_of(nothing_escaped, put("gbfl_compile.reporting.text.printable", lambda text: text))

ATTACKS = every_kind(
    {
        "single quote": Harmless("attributes are in double quotes"),
        "double quote": Attack(f'"><img src=x onerror="{MARK}">', no_escaping, "code ran"),
        "backslash": NOT_CODE,
        "newline": Harmless("a line break on a page is a space"),
        "carriage return": Attack("a\rb", PRINTED_RAW, "raw character"),
        "comment": Attack(f"--><script>{MARK}</script>", no_escaping, "code ran"),
        "template": Attack(TEMPLATE, rendered_twice, "code ran", "name"),
        "template block": Attack("{% raw %}", rendered_twice, "does not run"),
        "format": NOT_CODE,
        "percent": NOT_CODE,
        "nul": Attack("a\0b", all_of(anything_goes, PRINTED_RAW), "raw character"),
        "surrogate": Attack("a\ud800b", all_of(anything_goes, PRINTED_RAW), "does not run"),
        **{kind: Attack(text, PRINTED_RAW, "raw character") for kind, text in RAW.items()},
        "trigraph": NOT_CODE,
        "names meet": Harmless("nothing looks up a name on a page"),
        "markup": Attack(f"</title></style><svg onload='{MARK}'></svg>", no_escaping, "code ran"),
    }
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


def outcome(browser, program, folder):
    """What happened when the report was written, with the names in a verdict and an audit too, and opened."""
    metadata = {"name": program.features[0], program.features[0]: program.classes[0]}
    program = replace(program, metadata=program.metadata or metadata)
    try:
        validate(program)
        text = page.render_page(
            program, page.ReportInputs(verdict_of(program, c=different(program)), audit_of(program), row=[0.0, 1.0])
        )
    except BadInput:
        return "refused"
    except Exception:
        return "code ran" if code_ran(folder) else "does not run"
    try:
        (folder / "report.html").write_bytes(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "does not run"
    browser.get((folder / "report.html").as_uri())
    if code_ran(folder) or browser.execute_script("return window.canary") is not None:
        return "code ran"
    if browser.execute_script("return document.scripts.length + document.images.length"):
        return "markup"
    if unprintable(text):
        return "raw character"
    shown = browser.execute_script("return document.body.textContent")
    return "held" if all(as_printed(name) in shown for name in (*program.features, *program.classes)) else "other names"


def as_printed(name):
    """A name on one line, with an escape for each character that cannot be printed."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)


@pytest.mark.parametrize(("text", "place", "beside", "expected"), texts(ATTACKS))
def test_a_hostile_name_stays_a_name(browser, text, place, beside, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outcome(browser, program_of(text, place, beside), tmp_path) == expected


@pytest.mark.parametrize("kind", armed(ATTACKS))
def test_the_attack_succeeds_against_a_weakened_report(browser, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack = ATTACKS[kind]
    attack.weakened(monkeypatch)
    assert outcome(browser, program_of(attack.text, attack.place, attack.beside), tmp_path) == attack.seen


@pytest.mark.parametrize("kind", ["double quote", "comment"])
def test_a_page_that_escapes_nothing_still_runs_no_script(browser, kind, tmp_path, monkeypatch):
    """The content policy is a second guard; the attacks above succeed only without both."""
    policy_only(monkeypatch)
    assert outcome(browser, program_of(ATTACKS[kind].text), tmp_path) == "markup"
