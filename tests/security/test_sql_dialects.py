"""Hostile names and labels in every dialect, read by a parser of that dialect: also where no engine of it can be had.

What is run for real is in test_sql_attacks.py and tests/engines/test_attacks.py.
"""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.errors import BadInput
from tests.security.attacks import BENIGN, all_of, program_of, put

sqlglot = pytest.importorskip("sqlglot", reason="pip install 'gbfl-compile[sql]'")
from sqlglot import exp  # noqa: E402 - only where sqlglot is installed

ESCAPING = [name for name, dialect in DIALECTS.items() if dialect.string_escapes]
TAIL = " END FROM data; DELETE FROM c; SELECT CASE WHEN 1 = 1 THEN "
LABELS = {"quote": f"'{TAIL}'", "backslash": f"\\'{TAIL}NULL -- "}


def names(dialect):
    """A name that closes its own quotes in this dialect."""
    opening, closing = DIALECTS[dialect].identifier, DIALECTS[dialect].identifier.replace("[", "]")
    return f"x{closing}=1 THEN 1 END FROM data;DELETE FROM c;SELECT CASE WHEN {opening}x"


def read(dialect, text, place, level=sqlglot.ErrorLevel.RAISE):
    """The statements that a parser finds, or None where the name is refused."""
    options = {"form": "expression", "outputs": "label", "types": "double"}
    try:
        source = emit(program_of(text, place), f"sql:{dialect}", options=options).files["model.sql"].decode()
    except BadInput:
        return None
    found = sqlglot.parse(f"SELECT {source} FROM data", read=DIALECTS[dialect].sqlglot, error_level=level)
    return [statement for statement in found if statement is not None]


def is_one_query(statements):
    found = statements is None or (len(statements) == 1 and isinstance(statements[0], exp.Select))
    return found and not any(statement.find(exp.Delete, exp.Command) for statement in statements or ())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_text_is_still_one_query(dialect):
    for text in (*BENIGN.values(), *LABELS.values(), names(dialect)):
        for place in ("label", "feature"):
            assert is_one_query(read(dialect, text, place)), text


def bare(dialect, name):
    return dialect.identifier + name + dialect.identifier.replace("[", "]")


def quotes_only(dialect, text):
    return "'" + text.replace("'", dialect.escaped_quote) + "'"


NAIVE_NAMES = all_of(
    put("gbfl_compile.backends.sql.identifier", bare), put("gbfl_compile.backends.sql.options.identifier", bare)
)
WEAKENED = {
    **{(name, "quote"): put("gbfl_compile.backends.sql.text.string", lambda _, text: f"'{text}'") for name in DIALECTS},
    **{(name, "name"): NAIVE_NAMES for name in DIALECTS},
    **{(name, "backslash"): put("gbfl_compile.backends.sql.text.string", quotes_only) for name in ESCAPING},
}


@pytest.mark.parametrize(("dialect", "kind"), WEAKENED)
def test_the_attack_succeeds_against_a_weakened_dialect(dialect, kind, monkeypatch):
    WEAKENED[dialect, kind](monkeypatch)
    text, place = (names(dialect), "feature") if kind == "name" else (LABELS[kind], "label")
    statements = read(dialect, text, place, sqlglot.ErrorLevel.IGNORE)  # what comes after it need not parse
    assert any(isinstance(statement, exp.Delete) for statement in statements)
