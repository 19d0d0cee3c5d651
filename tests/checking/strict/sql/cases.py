"""Shared by the tests of the strict form: artifacts as emitted, their expected verdicts, and random edits."""

import math
import re
from functools import cache

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_readings
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import expected_of, read_strict
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

RUN = ("sqlite", "duckdb", "postgres", "mariadb", "clickhouse", "spark", "datafusion")
FORMS = ("select", "expression", "view", "table", "dbt", "macro")

# IF age >= 1.5 THEN yes ELSE no
SMALL = Program(
    ("age", "income"), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)

LABELS = {"outputs": "label"}


def text_of(program, dialect, **options):
    """The artifact."""
    return emit(program, f"sql:{dialect}", options={"table": "data", **options}).files["model.sql"].decode()


def strict(program, text, dialect, **options):
    """The readings of an artifact that was asked for with these options."""
    return read_strict(text, dialect, expected_of(program, options))


def verdict(program, text, dialect, **options):
    """proved, unread or what else the prover says."""
    try:
        readings = strict(program, text, dialect, **options)
    except Unread:
        return "unread"
    return prove_readings(program, readings, 5.0).answer


def everything(program):
    """All kinds of answers a program can give."""
    return "label,probabilities,reason," + ("score" if isinstance(program.decision, Scorecard) else "leaf")


def rows_of(program, choose, count=60):
    """Bounds, their neighbours, zeros, infinities and missing values, mixed."""
    pools = []
    for feature in range(len(program.features)):
        atoms = [atom for clause in program.clauses for atom in clause.atoms if atom.feature == feature]
        cuts = {bound for atom in atoms for bound in (atom.lo, atom.hi) if bound is not None} or {0.0}
        near = [value for cut in cuts for value in (cut, math.nextafter(cut, math.inf), math.nextafter(cut, -math.inf))]
        pools.append([*near, 0.0, -0.0, math.inf, -math.inf, math.nan, 12345.0, 1e300])
    return np.array([[choose.choice(pool) for pool in pools] for _ in range(count)])


PIECE = re.compile(
    r"<=|>=|<>|\|\||\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|[A-Za-z_]\w*|[0-9][0-9.]*(?:e[+-]?[0-9]+)?|\S"
)

MORE = [
    "NOT",
    "OR",
    "AND",
    "NULL",
    "TRUE",
    "FALSE",
    "IS",
    "=",
    "<>",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "(",
    ")",
    ",",
    "0",
    "1",
    "2",
    "-1",
    "0.0e0",
    "1.0e0",
    "''",
    "'a'",
    "||",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "LIMIT",
    "1",
    "OFFSET",
    "DISTINCT",
    "WHERE",
    "--",
    "/*",
    "*/",
    ";",
    "[",
    "]",
    "IN",
    "BETWEEN",
    "CAST",
    "AS",
    "EXP",
    "ABS",
    "1e400",
    "2147483648",
    ".5",
    "1.5",
    "700.0e0",
    "50.0e0",
]


def body_of(text):
    """The SQL without the comment lines it begins with."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("--"))


@cache
def _sort_of(piece):
    """Pieces of one sort can stand in each other's place without breaking the grammar."""
    for sort, pattern in (
        ("comparison", r"<=|>=|<>|[<>=]"),
        ("junction", r"AND|OR"),
        ("arithmetic", r"[-+*/]"),
        ("double", r"[0-9.]+e[+-]?[0-9]+"),
        ("integer", r"[0-9]+"),
        ("name", r"[\"`].*|gbfl_.*"),
        ("text", r"'.*"),
    ):
        if re.fullmatch(pattern, piece, re.DOTALL):
            return sort
    return piece


SPARE = {
    "comparison": ("<", "<=", ">", ">=", "=", "<>"),
    "junction": ("AND", "OR"),
    "arithmetic": ("+", "-", "*", "/"),
    "double": ("0.0e0", "1.0e0", "1.0000000000000002e0", "2.0e0", "1e0", "700.0e0", "5e-324"),
    "integer": ("0", "1", "2", "3", "2147483647"),
}


def edited(choose, body):
    """The text with one to three tokens taken out, doubled, swapped or put in place of others."""
    pieces = PIECE.findall(body)
    for _ in range(choose.choice((1, 1, 1, 2, 2, 3))):
        at, other = choose.randrange(len(pieces)), choose.randrange(len(pieces))
        sort = _sort_of(pieces[at])
        alike = [number for number, piece in enumerate(pieces) if _sort_of(piece) == sort]
        match choose.randrange(11):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, choose.choice((*pieces, *MORE)))
            case 2:
                pieces[at] = choose.choice((*pieces, *MORE))
            case 3:
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 4 | 5 | 6:
                pieces[at] = choose.choice((*(pieces[number] for number in alike), *SPARE.get(sort, ())))
            case 7 | 8:
                other = choose.choice(alike)
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 9:  # a run of tokens once more, or somewhere else
                run = pieces[at : at + choose.randint(2, 9)]
                pieces[other:other] = run
            case 10:
                _bracket(choose, pieces, at)
        if not pieces:
            return body
    return re.sub(r"\b(CAST|EXP|LEAST|GREATEST|CONCAT) \(", r"\1(", " ".join(pieces))  # as MariaDB wants it


def _bracket(choose, pieces, at):
    end = min(len(pieces), at + choose.choice((1, 3, 7, 11)))
    pieces[at:end] = ["(", *pieces[at:end], ")"]
