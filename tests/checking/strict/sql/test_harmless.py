"""Edits that change nothing stay provable: layout, comments, case, names of stages and columns, spelling, brackets."""

import random
import re
from itertools import pairwise

import pytest

from tests.backends.sql.programs import CARD, THREE, TREE
from tests.checking.strict.sql.cases import FORMS, PIECE, RUN, body_of, everything, text_of, verdict

PROGRAMS = {"tree": TREE, "rules": CARD, "three classes": THREE}
ENGINES = pytest.mark.parametrize("dialect", RUN)
EACH = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def assert_still_proved(program, dialect, change, form="select", outputs=None):
    options = {"form": form, "outputs": everything(program) if outputs is None else outputs}
    text = text_of(program, dialect, **options)
    changed = change(body_of(text))
    assert changed != body_of(text)
    assert verdict(program, changed, dialect, **options) == "proved", changed


def spaced(text, blank):
    """Blanks between all tokens, but none before a bracket and none inside a sign."""
    pieces = PIECE.findall(text)
    made = pieces[0]
    for before, piece in pairwise(pieces):
        tight = piece == "(" or (before, piece) in ((">", "="), ("<", "="), ("<", ">"), ("-", ">")) or before == "E"
        made += piece if tight and before.upper() not in ("AND", "OR", "AS", "THEN", "ELSE", "WHEN") else blank + piece
    return made


@ENGINES
@EACH
def test_layout(dialect, program):
    for blank in (" ", "\n", "\t", "  \n\t "):
        assert_still_proved(program, dialect, lambda text, blank=blank: spaced(text, blank))


@ENGINES
@EACH
def test_comments(dialect, program):
    assert_still_proved(program, dialect, lambda text: spaced(text, " /* a comment; SELECT 1 */ "))
    assert_still_proved(program, dialect, lambda text: spaced(text, ' -- it\'s a "comment" of our own\n'))


@ENGINES
@EACH
@pytest.mark.parametrize("form", FORMS)
def test_case_of_keywords(dialect, program, form):
    if form == "macro" and dialect in ("sqlite", "datafusion"):
        pytest.skip("no functions in this engine")
    words = r"\b(SELECT|FROM|WITH|AS|CASE|WHEN|THEN|ELSE|END|AND|OR|IS|NULL|CREATE|VIEW|CAST|EXP)\b(?=[^'`\"]*$)"
    outputs = "label" if form in ("expression", "macro") else None

    def lowered(text):
        return "\n".join(re.sub(words, lambda found: found[0].lower(), line) for line in text.split("\n"))

    assert_still_proved(program, dialect, lowered, form, outputs)


@ENGINES
@EACH
def test_names_of_stages_and_inner_columns(dialect, program):
    def renamed(text):
        text = re.sub(r"\bgbfl_(rows|points|best|weighed|asked_0|added_0|once)\b", r"gbfl_my_\1", text)
        return re.sub(r"gbfl_(points|held|part|weight)_(\d)", r"my own \1 \2", text)

    assert_still_proved(program, dialect, renamed)


@ENGINES
@EACH
def test_stages_in_quotes(dialect, program):
    quote = "`" if dialect in ("sqlite", "mariadb", "clickhouse", "spark") else '"'
    assert_still_proved(program, dialect, lambda text: re.sub(r"\bgbfl_rows\b", f"{quote}FirstStage{quote}", text))


@ENGINES
@EACH
def test_spelling_of_numbers(dialect, program):
    for old, new in (("18.0e0", "1.8e1"), ("18.0e0", "18E0"), ("65.0e0", "65.00e0"), ("65.0e0", "650e-1")):
        assert_still_proved(program, dialect, lambda text, old=old, new=new: text.replace(old, new))


def reordered(text):
    """The two bounds of a feature the other way round."""
    return re.sub(
        r"(\S+ >= \S*18\.0e0(?: AS DOUBLE PRECISION\))?) AND (\S+ < \S*65\.0e0(?: AS DOUBLE PRECISION\))?)",
        r"\2 AND \1",
        text,
    )


@ENGINES
@EACH
def test_order_of_a_conjunction(dialect, program):
    assert_still_proved(program, dialect, reordered)


@ENGINES
@EACH
def test_a_conjunction_reordered_in_one_column_only(dialect, program):
    def first(text):
        changed = reordered(text)
        at = next(
            number for number, (a, b) in enumerate(zip(text.split("\n"), changed.split("\n"), strict=True)) if a != b
        )
        lines = text.split("\n")
        lines[at] = changed.split("\n")[at]
        return "\n".join(lines)

    assert_still_proved(program, dialect, first)


@ENGINES
@EACH
def test_brackets(dialect, program):
    def bracketed(text):
        text = re.sub(r"THEN ('[^']*')", r"THEN (\1)", text)
        return re.sub(r"ELSE ('[^']*'|\d+\b(?!\.))", r"ELSE ((\1))", text)

    assert_still_proved(program, dialect, bracketed)


@ENGINES
@EACH
def test_brackets_around_comparisons(dialect, program):
    bound = r"(\S+) >= (18\.0e0|CAST\(18\.0e0 AS DOUBLE PRECISION\))"
    assert_still_proved(program, dialect, lambda text: re.sub(bound, r"((\1) >= (\2))", text))


@ENGINES
def test_all_of_it_together(dialect):
    choose = random.Random(dialect)
    for program in PROGRAMS.values():
        blank = choose.choice((" ", "\n  ", " /* so */ "))
        assert_still_proved(program, dialect, lambda text, blank=blank: spaced(reordered(text), blank))
