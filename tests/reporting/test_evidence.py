"""The evidence section of a report: proved, checked and not run are never mixed up, and a difference is the headline."""

import re

import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.reporting.page import ReportInputs, render_page
from tests.reporting.samples import (
    PROVED,
    RAN,
    Page,
    audit_of,
    different,
    rule_set,
    small_tree,
    target,
    verdict_of,
)


def headline(program, verdict):
    banner = re.search(
        r'<div class="banner ([a-z-]+)">\s*<p class="headline">(.*?)</p>', render_page(program, ReportInputs(verdict))
    )
    return banner.group(1), banner.group(2)


def test_proved_checked_and_not_run_are_never_mixed_up():
    program = small_tree()
    proved = target(program, proof=PROVED, execution=RAN)
    checked = target(program, execution=RAN)
    not_run = target(program, "not run", reason="no compiler")
    assert headline(program, None) == ("not-run", "Not checked")
    assert headline(program, verdict_of(program)) == ("not-run", "Not checked")
    assert headline(program, verdict_of(program, c=not_run)) == ("not-run", "Not checked")
    assert headline(program, verdict_of(program, c=checked)) == ("checked", "Checked, not proved")
    assert headline(program, verdict_of(program, c=proved)) == ("proved", "Proved equal")
    assert headline(program, verdict_of(program, c=proved, python=checked)) == ("checked", "Partly proved")
    assert headline(program, verdict_of(program, c=proved, python=not_run)) == ("not-run", "Partly proved")
    assert headline(program, verdict_of(program, c=checked, python=not_run)) == ("not-run", "Partly checked")
    shown = headline(program, verdict_of(program, c=different(program), python=proved))
    assert shown == ("different", "Different: c does not answer as its source")


@pytest.mark.parametrize(
    "proof",
    [
        "not run",
        None,
        "proved",
        {"answer": "undecided", "why": "no time"},
        {"answer": "UNREAD", "reason": "a macro"},
        {"answer": "not run", "reason": "no onnx"},
        {"answer": "almost proved"},
        {},
        7,
    ],
)
def test_only_the_answer_proved_is_a_proof(proof):
    program = small_tree()
    assert headline(program, verdict_of(program, c=target(program, proof=proof, execution=RAN)))[0] == "checked"
    assert headline(program, verdict_of(program, c=target(program, "not run", proof=proof)))[0] == "not-run"


@pytest.mark.parametrize(
    "finding",
    [
        {"proof": {"answer": "COUNTEREXAMPLE"}, "execution": RAN},
        {"proof": {"answer": "other names"}, "execution": RAN},
        {"proof": PROVED, "execution": {**RAN, "different": 1}},
        {"proof": PROVED, "execution": RAN, "consistency": {"source": {"c_tb_right": 2}, "target": {"c_tb_right": 1}}},
    ],
)
def test_one_difference_outweighs_every_other_evidence(finding):
    program = small_tree()
    assert headline(program, verdict_of(program, c={**target(program), **finding}))[0] == "different"


def test_a_proof_without_a_run_says_so():
    program = small_tree()
    assert "proved, not run" in render_page(
        program, ReportInputs(verdict_of(program, c=target(program, "not run", PROVED)))
    )


@pytest.mark.parametrize("rows", [0, -3, True, "many", None])
def test_execution_on_no_row_is_not_a_check(rows):
    program = small_tree()
    assert headline(program, verdict_of(program, c=target(program, execution={**RAN, "rows": rows})))[0] == "not-run"


def test_a_verdict_on_another_program_is_refused():
    other = small_tree(("height", "weight"))
    with pytest.raises(BadInput, match="run `gbfl check` on this program"):
        render_page(small_tree(), ReportInputs(verdict_of(other, c=target(other))))
    with pytest.raises(BadInput, match="audit against this program"):
        render_page(small_tree(), ReportInputs(audit=audit_of(other)))


def test_a_witness_keeps_every_digit_and_the_type_of_its_labels():
    program = small_tree()
    text = Page(render_page(program, ReportInputs(verdict_of(program, c=different(program))))).text
    assert "label 1 &quot;1&quot;".replace("&quot;", '"') in text
    assert "age missing" in text
    assert "income 0.1" in text
    assert "age 2.5" in text  # the proof's row, written as a hexadecimal double


def test_a_deployed_difference_is_the_headline_and_in_red():
    program = small_tree()
    checked = verdict_of(program, c=target(program, proof=PROVED, execution=RAN))
    text = render_page(program, ReportInputs(checked, audit_of(program)))
    assert '<div class="banner different">' in text
    words = Page(text).text
    assert "What is deployed is not the approved program: 1 difference found" in words
    assert "age <= 0.74" in words
    assert '"star" → "quasar" 12 rows' in words


def test_an_audit_that_proved_everything_says_so():
    program = small_tree()
    assert "What is deployed is proved to be the approved program" in render_page(
        program, ReportInputs(audit=audit_of(program, 0))
    )


def test_an_audit_of_an_unknown_form_is_shown_not_dropped():
    program = small_tree()
    form = {"verdict": "different", "differences": [{"clause": 6, "rows": 5, "witness": {"age": 2.0}, "extra": "seen"}]}
    text = Page(render_page(program, ReportInputs(audit={**form, "note": "by hand"}))).text
    for text_part in ("clause C6", "rows touched 5", "age 2.0", "extra seen", "note by hand"):
        assert text_part in text
    for broken in ({}, {"verdict": "equal", "audited": 3}, {"verdict": "equal", "audited": ["x"]}):
        with pytest.raises(BadInput, match="gbfl audit"):
            render_page(program, ReportInputs(audit=broken))


def test_reasons_that_are_not_the_programs_are_a_difference():
    program = small_tree()
    proof = {"answer": "other reasons", "reason": "gives clause 0 the reason 'x', it has None", "readings": []}
    text = render_page(program, ReportInputs(verdict_of(program, c=target(program, "different", proof))))
    assert "other reasons" in text
    assert "gives clause 0 the reason" in text


def test_scores_that_differ_are_shown_where_the_class_is_the_same():
    program = rule_set(5)
    audit = audit_of(program)
    beside = {"what": "scores", "approved": [0, -691, 2], "deployed": [0, -692, 2]}
    audit["audited"][0]["region"] |= {"approved": "star", "deployed": "star", "beside": beside}
    text = render_page(program, ReportInputs(audit=audit))
    assert "Scores differ where" in text
    assert "[0, -692, 2]" in text


def test_an_audit_says_first_what_was_changed_where_and_how_to_mend_it():
    program = small_tree()
    form = audit_of(program)
    form["audited"][0]["differences"][0]["text"] = "clause 0: age < 0.74 is deployed as age <= 0.74"
    line = {"line": 20, "text": "WHEN age <= 0.74 THEN", "of": None}
    mend = {**line, "old": "age <= 0.74", "new": "age < 0.74", "places": 1}
    form["audited"][0]["story"] = {"line": line, "mend": mend, "select": "SELECT\n  <b>1", "table": None, "key": {}}
    html = render_page(program, ReportInputs(audit=form))
    banner = html.partition('<div class="banner different">')[2].partition("</div>")[0]
    assert "clause 0: age &lt; 0.74 is deployed as age &lt;= 0.74. 12 of 1000 rows get another class." in banner
    text = Page(html).text
    assert "line 20 WHEN age <= 0.74 THEN" in text
    assert "to mend it write age < 0.74 for age <= 0.74" in text
    assert "<pre>SELECT\n  &lt;b&gt;1</pre>" in html


@pytest.mark.parametrize("story", [None, 7, [], {}, {"line": 1, "mend": [], "select": 3}, {"select": "x" * 10**6}])
def test_a_story_of_another_form_is_left_out(story):
    program = small_tree()
    form = audit_of(program)
    form["audited"][0]["story"] = story
    assert "<pre>" not in render_page(program, ReportInputs(audit=form))
