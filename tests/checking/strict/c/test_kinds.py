"""Emitted C with words and dates is read and proved; an edit of a text, a code or the look-up is never proved equal."""

import datetime
import itertools
import random
import re
from collections import Counter
from dataclasses import replace

import cffi
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import c, emit
from gbfl_compile.backends.c import expressions
from gbfl_compile.backends.c.build import declarations
from gbfl_compile.backends.c.scorer import as_predictor, scorer_of
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c import is_model_header, read_strict_c
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, Scorecard, leaf, split
from gbfl_compile.ir.validate import validate
from tests.backends.c.kinds import KINDS, TEXTS, possible_values, programs_of_kinds
from tests.backends.c.programs import cc, kernels, needs_a_compiler
from tests.checking.strict.c.edits import edited, files_of, token_edits, verdict
from tests.counts import FULL

CLAUSES = (
    Clause((Interval(0, 10.0), OneOf(1, ("one year", "two year")))),
    Clause((OneOf(1, ("a", "b"), negated=True, if_missing=True), OneOf(2, (TRUE,)))),
    Clause((Interval(3, None, 19783.0, "right"), Interval(4, 0.0, 1.7e15, if_missing=True))),
)
FEATURES = ("income", "contract", "smoker", "opened", "seen")
TREE = validate(
    Program(
        FEATURES,
        ("no", "yes"),
        CLAUSES,
        split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), split(2, leaf(0.5, 0.5), leaf(0.1, 0.9)))),
        kinds=KINDS,
    )
)
CARD = replace(TREE, decision=Scorecard((0, -2), ((0, 3), (1, -1), (0, 2)), 1))
ROWS = [
    list(row)
    for row in itertools.product(
        (9.0, 10.0, None),
        ("one year", "two year", "a", "b", "One year", "one year ", "", None),
        (True, False, None),
        (datetime.date(2024, 3, 1), datetime.date(2024, 3, 2), None),
        (datetime.datetime(1969, 12, 31, 23), datetime.datetime(1970, 1, 1), None),
    )
]


def answers(files, folder, rows=ROWS):
    """(label, leaf or scores) of rows of Python values by every way of a built library; None where it cannot be built."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    ffi = cffi.FFI()
    try:
        ffi.cdef(declarations(files["model.h"].decode(), "header"))
        flags = ("-O0", "-w", "-ffp-contract=off", "-fPIC", "-shared", "-DGBFL_WITH_LIBM", "-DGBFL_NO_CLONES")
        cc(*flags, "model.c", "-o", "model.so", "-lm", folder=folder)
    except (AssertionError, cffi.CDefError, cffi.FFIError):
        return None
    scorer = scorer_of("model", ffi.dlopen(str(folder / "model.so")), ffi, "cc")
    found = as_predictor(scorer).answer_rows(rows)
    decided = found.leaves if found.scores is None else found.scores
    return list(zip(found.labels.tolist(), decided.tolist(), strict=True))


def expected(program, rows=ROWS):
    found = [evaluate(program, row) for row in rows]
    return [(one.label, one.leaf if one.scores is None else list(one.scores)) for one in found]


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_every_option_gives_an_artifact_that_is_proved(program):
    for kernel, batch, layout in itertools.product(
        ("auto", *kernels(program)), ("yes", "no"), ("plain", "arduino", "cmake")
    ):
        files = files_of(program, kernel=kernel, batch=batch, layout=layout)
        assert verdict(program, files) == "proved", (kernel, batch, layout)
    exact = replace(program, clauses=(*CLAUSES[:2], Clause((Interval(3, None, 19783.0, "right"),))))
    for kernel in kernels(program):
        assert verdict(exact, files_of(exact, kernel=kernel, dtype="float32")) == "proved"


@settings(
    max_examples=150,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(programs_of_kinds(), st.randoms(use_true_random=False))
def test_random_artifacts_are_proved(program, choose):
    program = validate(program)
    dtype = "float64" if "timestamp" in program.kinds else choose.choice(("float64", "float32"))
    files = files_of(program, kernel=choose.choice(kernels(program)), dtype=dtype)
    assert verdict(program, files) == "proved"
    assert is_model_header("model", files["model.h"])


CHANGES = ("drop", "add", "case", "blank", "negate", "missing", "move")


def changed_set(choose, atom):
    """A set of texts with one slip in it."""
    values = set(atom.values)
    match choose.choice(CHANGES):
        case "drop" if values:
            values.discard(choose.choice(sorted(values)))
        case "case" if values:
            text = choose.choice(sorted(values))
            values = (values - {text}) | {text.swapcase()}
        case "blank" if values:
            text = choose.choice(sorted(values))
            values = (values - {text}) | {f"{text} "[:1000]}
        case "negate":
            return replace(atom, negated=not atom.negated)
        case "missing":
            return replace(atom, if_missing=not atom.if_missing)
        case _:
            values ^= {choose.choice(TEXTS)}
    return replace(atom, values=tuple(sorted(values)))


@settings(
    max_examples=200,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(programs_of_kinds(kinds=("number", "category", "category", "date")), st.randoms(use_true_random=False))
def test_an_artifact_of_other_rules_is_proved_only_where_they_come_to_the_same(program, choose):
    """The other program has codes of its own: what counts is which texts they mean."""
    places = [
        (number, place)
        for number, clause in enumerate(program.clauses)
        for place, atom in enumerate(clause.atoms)
        if isinstance(atom, OneOf)
    ]
    if not places:
        return
    number, place = choose.choice(places)
    atoms = list(program.clauses[number].atoms)
    atoms[place] = changed_set(choose, atoms[place])
    clauses = [*program.clauses[:number], Clause(tuple(atoms)), *program.clauses[number + 1 :]]
    other = validate(replace(program, clauses=tuple(clauses)))
    answer = verdict(program, files_of(other, kernel=choose.choice(kernels(program))))
    pools = possible_values(program)
    rows = [[choose.choice(pool) for pool in pools] for _ in range(300)]
    differs = any(evaluate(program, row) != evaluate(other, row) for row in rows)
    assert answer in ("proved", "other digest", "other reasons", "counterexample", "undecided")
    assert not (differs and answer in ("proved", "other digest"))


def other_codes(monkeypatch, order):
    """Emit with the codes of texts in another order, and look-up tables to match."""
    monkeypatch.setattr(expressions, "codebook", lambda program: order(codebook(program)))
    monkeypatch.setattr(c, "codebook", lambda program: order(codebook(program)))


@needs_a_compiler
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_other_codes_of_the_same_texts_are_the_same_program(program, monkeypatch, tmp_path):
    other_codes(monkeypatch, lambda book: Codebook(tuple(texts[::-1] for texts in book.texts)))
    for kernel in kernels(program):
        files = files_of(program, kernel=kernel)
        assert verdict(program, files) == "proved"
        assert answers(files, tmp_path / kernel) == expected(program)


def test_codes_of_other_texts_are_another_program(monkeypatch):
    def mistaken(book):
        return Codebook(tuple(tuple(text.replace("two", "Two") for text in texts) for texts in book.texts))

    def mistaken_look_up(program, name):
        with monkeypatch.context() as only_here:
            only_here.setattr(expressions, "codebook", lambda program: mistaken(codebook(program)))
            return look_up(program, name)

    files, look_up = files_of(TREE), expressions._code_values
    monkeypatch.setattr(expressions, "_code_values", mistaken_look_up)
    proof = prove_artifact(TREE, "c", files_of(TREE))
    assert proof.answer == "counterexample"
    assert any(text in ("two year", "Two year") for text in proof.counterexample.values)
    assert files != files_of(TREE)


def swapped(text, one, other):
    return text.replace(one, "\0").replace(other, one).replace("\0", other)


def test_texts_and_codes_exchanged_are_found():
    files = files_of(TREE)
    source = files["model.c"].decode()
    numbered = numbered_names(files)
    assert verdict(TREE, numbered) == "proved"
    for change in (
        lambda text: swapped(text, '{ "a", 1u }', '{ "b", 1u }'),
        lambda text: text.replace('{ "a", 1u }', '{ "A", 1u }'),
        lambda text: text.replace('{ "two year", 8u }', '{ "two yeat", 8u }'),
        lambda text: text.replace('{ "two year", 8u }', '{ "two year\\040", 9u }'),
        lambda text: text.replace("(x[1] == 0x1.8p+1)", "(x[1] == 0x1p+1)"),
        lambda text: text.replace("(x[1] != 0x1p+0)", "(x[1] != 0x1.8p+1)"),
        lambda text: text.replace("(x[1] != 0x1p+0) && ", ""),
    ):
        assert change(source) != source
        assert verdict(TREE, {**numbered, "model.c": change(source).encode()}) == "counterexample"
        assert verdict(TREE, {**files, "model.c": change(source).encode()}) in ("counterexample", "unread")


def numbered_names(files):
    """The artifact with its codes called by number in the header, which says nothing of their texts then."""
    header = re.sub(r"model_code_of_contract_\w+ = (\d)", r"model_feature_1_code_\1 = \1", files["model.h"].decode())
    return {**files, "model.h": header.encode()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{ "two year", 8u }', '{ "two year", 7u }'),
        ('{ "two year", 8u }', '{ "two year", 9u }'),
        ('{ "a", 1u }', '{ "", 1u }'),
        ('{ "a", 1u }', '{ "\\377", 1u }'),
        ('{ "a", 1u }', '{ "a" "b", 1u }'),
        ('{ "a", 1u },', ""),
        ("UINT32_C(2166136261)", "UINT32_C(2166136262)"),
        ("UINT32_C(16777619)", "UINT32_C(16777617)"),
        ("(unsigned char)text[i]", "text[i]"),
        ("same < length", "same + 1 < length"),
        (".length == length", ".length >= length"),
        ("slots[slot] - 1u", "slots[slot]"),
        ("!= 'c'", "== 'c'"),
        ("(double)-1", "(double)0"),
        ("uint8_t", "int8_t"),
        ("{ 0u, 0u, 7u }", "{ 0u, 0u, 6u }"),
        ("{ 0u, 0u, 7u }", "{ 0u, 0u, 15u }"),
        ("{ 0u, 0u, 7u }", "{ 1u, 0u, 7u }"),
        ("{ 0u, 0u, 7u }", "{ 0u, 4294967296u, 7u }"),
    ],
)
def test_a_look_up_that_is_not_the_known_one_is_refused(old, new):
    assert verdict(TREE, edited(files_of(TREE), old, new)) == "unread"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model_code_of_contract_a = 1", "model_code_of_contract_b = 1"),
        ("model_code_of_contract_a = 1", "model_code_of_contract_a = 2"),
        ("model_class_is_no = 0", "model_class_is_yes = 0"),
        ("model_class_is_no = 0", "model_class_is_no = 1"),
        ("model_any_other_text = 0", "model_any_other_text = 1"),
        ("double model_code(", "float model_code("),
    ],
)
def test_a_header_that_names_something_else_is_refused(old, new):
    assert verdict(TREE, edited(files_of(TREE), old, new, "model.h")) == "unread"


def test_a_table_without_an_empty_place_is_refused():
    """Looking up a text that is not listed would never end."""
    files = files_of(TREE)
    text = files["model.c"].decode()
    row = re.search(r"model_code_slots\[8\] = \{\n    ([0-9, ]+)\n", text)[1]
    full = row.replace("0", "1")
    with pytest.raises(Unread, match="none of which is empty"):
        read_strict_c(edited(files, row, full))


def test_a_text_that_is_not_found_has_no_code():
    """An emptied place loses its own text, and those that come after it in their search: the self-test has such rows."""
    files = numbered_names(files_of(TREE))
    text = files["model.c"].decode()
    row = re.search(r"model_code_slots\[8\] = \{\n    ([0-9, ]+)\n", text)[1]
    for code in "123":
        changed = edited(files, row, row.replace(code, "0"))
        lost = prove_artifact(TREE, "c", changed)
        assert (lost.answer, "self-test" in lost.reason) == ("unread", True), lost.reason


def test_another_kind_is_another_program():
    files = files_of(TREE)
    old = "'n', 'c', 'b', 'd', 't'"
    assert (
        verdict(TREE, edited(files, old, "'n', 'c', 'b', 't', 'd'")) == "unread"
    )  # its self-test has dates past the calendar
    assert verdict(TREE, edited(files, old, "'n', 'n', 'b', 'd', 't'")) == "unread"
    assert verdict(TREE, edited(files, old, "'n', 'c', 'x', 'd', 't'")) == "unread"


def test_a_model_of_numbers_compares_no_number_by_equality():
    numbers = Program(("a",), ("no", "yes"), (Clause((Interval(0, 1.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    assert verdict(numbers, edited(files_of(numbers), "x[0] >= 0x1p+0", "x[0] == 0x1p+0")) == "unread"


ONE_IN = 12 if FULL else 48
MOST_BUILT = 12


@needs_a_compiler
@pytest.mark.parametrize(
    ("program", "kernel"), [(TREE, "select"), (TREE, "ifelse"), (CARD, "bits")], ids=["select", "ifelse", "bits"]
)
def test_an_edit_of_one_token_is_never_proved_unless_nothing_changes(program, kernel, tmp_path):
    files = files_of(program, kernel=kernel)
    assert answers(files, tmp_path / "own") == expected(program)
    counts, alike = Counter(), []
    for name in ("model.c", "model.h"):
        edits = token_edits(random.Random(kernel), files[name].decode())
        for what, text in itertools.islice(edits, random.Random(kernel).randrange(ONE_IN), None, ONE_IN):
            changed = {**files, name: text.encode()}
            answer = verdict(program, changed)
            counts[answer] += 1
            if answer == "proved":
                alike.append((f"{name} {what}", changed))
    for number, (what, changed) in enumerate(alike[:MOST_BUILT]):
        assert answers(changed, tmp_path / str(number)) == expected(program), what
    assert counts["unread"] > 0.8 * counts.total() > 100


def test_hostile_texts_are_only_texts():
    program = validate(
        Program(
            ("word",),
            ("no", "yes"),
            (Clause((OneOf(0, tuple(sorted(TEXTS))),)),),
            split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
            kinds=("category",),
        )
    )
    files = dict(emit(program, "c", "model").files)
    assert verdict(program, files) == "proved"
    (reading, *_) = read_strict_c(files)
    assert reading.book == (tuple(sorted(TEXTS)),)
