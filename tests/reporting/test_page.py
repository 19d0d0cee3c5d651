"""What a report says, and what it never does: mix up evidence, treat a name as markup, or exceed its size limit."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest, save
from gbfl_compile.ir.nodes import Program, Scorecard, leaf, split
from gbfl_compile.learning.consistency import Triplets, save_triplets
from gbfl_compile.reporting.page import ReportInputs, render_page
from gbfl_compile.reporting.rules import rules
from tests.programs import programs_with_rows
from tests.reporting.samples import (
    ATTRIBUTE,
    HOSTILE,
    RAN,
    Page,
    audit_of,
    different,
    rule_list,
    rule_set,
    small_tree,
    target,
    verdict_of,
)

LARGEST = 500_000
TEMPLATES = Path(__file__).parents[2] / "templates" / "report"


def triplets_of(program, rows):
    x = np.array(rows, dtype=float)
    flags = np.ones(len(x), dtype=bool)
    return Triplets(x, x + 0.5, x - 0.5, flags, flags, np.array(["no"] * len(x)), program.features)


def test_a_feature_named_script_is_text():
    program = small_tree((HOSTILE, ATTRIBUTE), (HOSTILE, ATTRIBUTE), {"name": HOSTILE, "reasons": {"0": HOSTILE}})
    hostile = {HOSTILE: target(program, "not run", HOSTILE, reason=ATTRIBUTE), ATTRIBUTE: different(program)}
    audited = audit_of(program)
    audited["audited"][0] |= {"what": HOSTILE, "kind": ATTRIBUTE, HOSTILE: HOSTILE}
    inputs = ReportInputs(verdict_of(program, **hostile), audited, [31.0, 2.0], sizes=[{"built_with": HOSTILE}])
    page = Page(render_page(program, inputs))
    assert not {"script", "img", "iframe", "object", "link"} & set(page.tags)
    assert page.text.count(HOSTILE) > 10
    assert ATTRIBUTE in page.text
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset")]


def test_hostile_labels_of_a_rule_set_are_text():
    rules = rule_set(20, features=4)
    program = type(rules)(
        (HOSTILE, ATTRIBUTE, "a", "b"), (HOSTILE, ATTRIBUTE, "x"), rules.clauses, rules.decision, {"a": HOSTILE}
    )
    for row in ([0.1] * 4, [-2.0, 2.0, 1.0, 0.0], [9.0] * 4):
        page = Page(render_page(program, ReportInputs(row=row)))
        assert not {"script", "img"} & set(page.tags)


def test_nothing_is_marked_safe():
    for path in TEMPLATES.iterdir():
        assert not re.search(r"\|\s*safe|autoescape|xmlattr|tojson", path.read_text(encoding="utf-8"))
    for path in Path(render_page.__code__.co_filename).parent.glob("*.py"):
        assert "Markup" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("program", [small_tree(), rule_set(), rule_list()], ids=["tree", "rule set", "rule list"])
def test_a_report_makes_no_network_requests(program):
    text = render_page(program, ReportInputs(verdict_of(program, c=different(program)), audit_of(program)))
    assert "default-src 'none'" in text
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "base", "form"} & set(page.tags)
    addresses = [value for name, value in page.attributes if name in ("href", "src", "xlink:href", "action")]
    assert all(value.startswith("#") for value in addresses)
    assert "url(" not in text
    assert "@import" not in text


@settings(max_examples=30)
@given(programs_with_rows(rows=2))
def test_every_program_has_a_report_that_is_well_formed(program_and_rows):
    program, rows = program_and_rows
    text = render_page(program, ReportInputs(verdict_of(program, c=different(program)), audit_of(program), rows[0]))
    page = Page(text)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    named = {word for name, value in page.attributes if name == "aria-labelledby" for word in value.split()}
    assert named <= set(ids)
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert not re.search(r'(width|height|x|y|d)="[^"]*(nan|inf)', text)


@pytest.mark.parametrize("program", [rule_set(), rule_list(), rule_set(1300, features=200)])
def test_a_report_stays_small(program):
    inputs = ReportInputs(
        verdict_of(program, c=different(program)), audit_of(program, 500), [0.5] * len(program.features)
    )
    assert len(render_page(program, inputs).encode()) < LARGEST


def test_the_longest_names_do_not_make_it_large():
    names = tuple(f"{'long name ' * 90}{number}" for number in range(30))
    rules = rule_set()
    program = type(rules)(names, rules.classes, rules.clauses, rules.decision, {})
    text = render_page(program)
    assert len(text.encode()) < LARGEST
    assert all(name in text for name in names)


def test_names_that_look_alike_when_shortened_get_a_number():
    names = ("a" * 100 + "x" + "b" * 100, "a" * 100 + "y" + "b" * 100)
    outline = Page(render_page(small_tree(names))).text.split("The tree in words")[1]
    first, second = outline.index("C0"), outline.index("C1")
    short = f"{'a' * 21}…{'b' * 22}"
    assert f"C0 {short} #0 >= 30" in outline[first:second]
    assert f"{short} #1 < 2.5" in outline[second:]


def test_names_that_differ_when_shortened_get_no_number():
    text = Page(render_page(small_tree(("x" + "a" * 100, "y" + "a" * 100)))).text
    assert not re.search(r"#\d", text)


def test_the_same_input_gives_the_same_bytes():
    program = rule_set()
    inputs = ReportInputs(verdict_of(program, c=different(program)), audit_of(program), [0.5] * 30)
    assert render_page(program, inputs) == render_page(rule_set(), inputs)


def test_a_row_is_shown_with_its_pp_and_pn():
    program = small_tree()
    inputs = ReportInputs(row=[31.0, 2.0], triplets=triplets_of(program, [[1.0, 1.0], [31.0, 2.0]]))
    text = Page(render_page(program, inputs)).text
    assert "The rules answer yes (leaf 0, probability 0.75). The black box says no." in text
    assert "PP yes enough to keep the class" in text
    assert "PN yes meant to change the class; the rules do not agree" in text
    assert "age 31 31.5 30.5 changed" in text
    assert "Enough for the class, with any other values (no smaller set suffices): age >= 30" in text


def test_a_row_that_is_not_among_the_triplets_has_no_pp():
    program = small_tree()
    inputs = ReportInputs(row=[3.0, 2.0], triplets=triplets_of(program, [[1.0, 1.0]]))
    assert "The row is not among the triplets" in render_page(program, inputs)
    with pytest.raises(BadInput, match="there are 1"):
        render_page(program, ReportInputs(triplets=triplets_of(program, [[1.0, 1.0]]), row_number=1))


def test_the_page_says_what_the_metadata_lacks():
    text, rules = render_page(small_tree()), render_page(replace(rule_set(3), metadata={}))
    for text_part in ("no figures on consistency", "no baselines", "no histograms"):
        assert text_part in text
        assert text_part in rules
    assert "with the number of clauses" in rules
    assert "with the number of clauses" not in text  # a tree does not grow clause by clause
    full = render_page(rule_set())
    assert "Beside the baselines" in full
    assert "Against the number of clauses" in full
    assert "Too far from the ecliptic" in full
    assert "holds on 299 training rows" in full


@pytest.mark.parametrize(
    "nonsense", [3, [], {"age": 3}, {"age": {"edges": [1, 1], "counts": [3]}}, {"age": {"edges": []}}]
)
def test_histograms_that_make_no_sense_are_left_out(nonsense):
    metadata = {
        "histograms": nonsense,
        "figures": nonsense,
        "training": nonsense,
        "mining": nonsense,
        "reasons": nonsense,
    }
    assert "no histograms" in render_page(small_tree(metadata=metadata))


KEYS = """verdict program targets proof answer readings aspects execution rows different first row source target
consistency audited differences where witness region moved moves age edges counts test c_tb accuracy clauses path data
name seconds label digest reason"""
keys = st.sampled_from(KEYS.split())
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars | st.sampled_from(("proved", "different", "equal", "not run", 10**400)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=40)
@given(st.dictionaries(keys, anything, max_size=6), st.booleans())
def test_any_verdict_or_audit_is_shown_or_refused(form, is_audit):
    program = small_tree()
    if is_audit:
        inputs = ReportInputs(audit={"verdict": "equal", **form, "source": digest(program)})
    else:
        targets = {"c": form, **{str(key): value for key, value in form.items() if isinstance(value, dict)}}
        inputs = ReportInputs({"program": digest(program), "targets": targets})
    try:
        text = render_page(program, inputs)
    except BadInput:
        return
    assert "<script" not in text


plain_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
metadata_values = st.recursive(
    plain_numbers | st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from(("figures", "histograms", "training", "mining", "reasons", "name")), metadata_values
    )
)
def test_any_metadata_gives_a_report(metadata):
    text = render_page(small_tree(metadata=metadata))
    assert not re.search(r'(width|height|x|y|d)="[^"]*(nan|inf)', text)


def test_the_command_writes_the_report(tmp_path, capsys):
    program = small_tree()
    save(program, tmp_path / "p.json")
    (tmp_path / "row.csv").write_text("age,income\n1,2\n31,\n")
    (tmp_path / "check.json").write_text(json.dumps(verdict_of(program, c=target(program, execution=RAN))))
    (tmp_path / "audit.json").write_text(json.dumps(audit_of(program)))
    save_triplets(tmp_path / "t.npz", triplets_of(program, [[31.0, 2.0]]))
    out = tmp_path / "report.html"
    options = ["--row", tmp_path / "row.csv", "--row-number", "2", "--verdict", tmp_path / "check.json"]
    options += ["--audit", tmp_path / "audit.json", "--triplets", tmp_path / "t.npz", "--json", "-o", out]
    assert main(["report", *map(str, [tmp_path / "p.json", *options])]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"program": digest(program), "out": str(out), "bytes": out.stat().st_size}
    assert str(tmp_path) not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("--verdict", "{", "not JSON"),
        ("--verdict", "[]", "an object"),
        ("--audit", "{}", "gbfl audit"),
        ("--row", "a\n1\n", "no column"),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(tmp_path, capsys, name, content, message):
    save(small_tree(), tmp_path / "p.json")
    bad = tmp_path / "bad.csv"
    bad.write_text(content)
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "p.json"), name, str(bad), "-o", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_each_form_is_called_by_its_name():
    assert "A list of 300 rules: the first that holds decides." in render_page(rule_list())
    assert "A tree of" not in render_page(rule_list())
    small = small_tree()
    branching = Program(
        small.features, small.classes, small.clauses, split(0, split(1, leaf(1.0, 0.0), leaf(0.0, 1.0)), leaf(1.0, 0.0))
    )
    assert "A tree of 2 questions and 3 answers" in render_page(branching)
    assert "A rule set of 5 clauses" in render_page(rule_set(5))


def test_the_bars_of_two_classes_have_the_colours_that_the_classes_have_elsewhere():
    card = rule_set(clauses=4)
    card = replace(card, classes=card.classes[:2], decision=Scorecard((0, 0), ((0, 9), (0, -4), (3, 0), (0, 0))))
    roles = [(line.cells[0][0], line.cells[0][1].role) for line in rules(card).points[1:]]
    assert roles == [("+9", "class1"), ("−4", "class0"), ("−3", "class0"), ("0", "class1")]
