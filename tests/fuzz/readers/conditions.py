"""Random conditions: clauses in the strict form, slips in them, and whatever else SQL allows one to ask."""

import re

from gbfl_compile.backends.sql.conditions import clause_fails, clause_holds
from gbfl_compile.backends.sql.engines import DIALECTS
from tests.checking.general.sql.conditions import CONDITIONS, WITHIN
from tests.checking.respelling import random_clause
from tests.checking.strict.sql.cases import edited
from tests.fuzz.readers.spellings import BLANKS, COMMENTS, name, number, quoted, strict_number

SIGNS = ("<", "<=", ">", ">=")
ANY_SIGNS = (*SIGNS, "=", "<>", "!=", "==", "<=>")


def condition(choose, pool):
    """One condition: a third in the strict form or next to it, the rest of any kind."""
    made = choose.choices((_clause, _strict, _any), (4, 5, 8))[0](choose, pool)
    return _respell(choose, made) if choose.random() < 0.2 else made


def commented(choose, pool):
    """A condition with comments and strange blanks in it."""
    words = condition(choose, pool).split(" ")
    for _ in range(choose.choice((1, 1, 2))):
        at = choose.randrange(len(words) + 1)
        words.insert(at, choose.choice(COMMENTS if choose.random() < 0.7 else BLANKS))
    return " ".join(words) if choose.random() < 0.8 else "".join(words)


def _clause(choose, pool):
    """A clause that holds or fails, as the emitter writes it; often with a slip."""
    dialect = DIALECTS[pool.dialect]
    cuts = sorted({value for decimal in pool.decimals for value in (float(decimal), -float(decimal))} | {0.0})
    names = {feature: quoted(pool.lexis, column) for feature, column in enumerate(pool.columns)}
    made = choose.choice((clause_holds, clause_fails))(dialect, random_clause(choose, len(names), tuple(cuts)), names)
    return edited(choose, made) if choose.random() < 0.4 else made


def _strict(choose, pool):
    """Words of the strict form in any order: most are not a clause, and a few are."""
    parts = [_strict_atom(choose, pool) for _ in range(choose.randint(1, 4))]
    found = parts[0]
    sign = choose.choice(("AND", "OR"))
    for part in parts[1:]:
        sign = sign if choose.random() < 0.9 else choose.choice(("AND", "OR"))
        found = f"{found} {sign} {part}" if choose.random() < 0.7 else f"({found}) {sign} {part}"
    return found


def _strict_atom(choose, pool):
    lexis = pool.lexis
    column = quoted(lexis, choose.choice(pool.columns))
    if choose.random() < 0.15:
        column = f"CAST({column} AS {lexis.double})"
    nan = f"CAST('NaN' AS {lexis.double})"
    forms = [f"{column} {choose.choice(SIGNS)} {strict_number(choose, pool)}"] * 4
    forms += [
        f"{column} IS NULL",
        f"{column} = {nan}",
        f"{column} <> {nan}",
        f"{column} = {column}",
        f"{column} IS NOT NULL",
    ]
    forms += [f"{lexis.nan_test or 'isnan'}({column})", f"NOT {lexis.nan_test or 'isnan'}({column})"]
    forms += [f"{column} {choose.choice(SIGNS)} CAST('{choose.choice(('', '-'))}Infinity' AS {lexis.double})"]
    if choose.random() < 0.45:  # as the emitter pairs them
        ieee = f"{lexis.nan_test}({column})" if lexis.nan_test else f"{column} = {nan}"
        return f"({column} IS NULL OR {ieee} OR {forms[0]})"
    return choose.choice(forms)


def _any(choose, pool, depth=0):
    if depth > 2 or choose.random() < 0.35:
        return _atom(choose, pool, depth)

    def again():
        return _any(choose, pool, depth + 1)

    match choose.randrange(9):
        case 0 | 1:
            return f"{again()} {choose.choice(('AND', 'OR', 'AND', 'OR', 'XOR', '&&'))} {again()}"
        case 2:
            return f"({again()}) {choose.choice(('AND', 'OR', '=', '<>', '>', 'IS DISTINCT FROM'))} ({again()})"
        case 3:
            return f"NOT {again()}" if choose.random() < 0.4 else f"NOT ({again()})"
        case 4:
            tests = (
                "IS TRUE",
                "IS NOT TRUE",
                "IS FALSE",
                "IS NOT FALSE",
                "IS UNKNOWN",
                "IS NULL",
                "IS NOT NULL",
                "= TRUE",
            )
            return f"({again()}) {choose.choice((*tests, '= 1', '> 0', '<> FALSE', 'IN (TRUE, NULL)'))}"
        case 5:
            return choose.choice(WITHIN).format(again())
        case 6:
            return f"CASE WHEN {again()} THEN {choose.choice(('TRUE', 'NULL', again()))} ELSE {choose.choice(('FALSE', 'NULL', again()))} END"
        case 7:
            return choose.choice(("COALESCE({}, {})", "NULLIF({}, {})", "IF({}, TRUE, {})", "LEAST({}, {})")).format(
                again(), again()
            )
        case _:
            end = choose.choice(("= 'ab'", "IS NULL", "<> 'a'", "IS NOT NULL", "IN ('ab', 'a')", "> 'a'"))
            return f"('a' || CASE WHEN {again()} THEN 'b' ELSE {choose.choice(('NULL', chr(39) * 2))} END) {end}"


def _atom(choose, pool, depth):
    def column():
        return name(choose, pool, choose.choice(pool.columns), plain=0.25)

    def one():
        return number(choose, pool)

    negation = choose.choice(("", "", "NOT "))
    match choose.randrange(15):
        case 0 | 1 | 2:
            return f"{column()} {choose.choice(ANY_SIGNS)} {one()}"
        case 3:
            return f"{one()} {choose.choice(ANY_SIGNS)} {column()}"
        case 4:
            return f"{column()} {choose.choice(ANY_SIGNS)} {column()}"
        case 5:
            return f"{column()} {negation}BETWEEN {one()} AND {one()}"
        case 6:
            return f"{column()} {negation}IN ({', '.join(one() for _ in range(choose.choice((1, 2, 3, 4, 20))))})"
        case 7:
            return f"{column()} IS {negation}DISTINCT FROM {choose.choice((one(), column(), 'NULL'))}"
        case 8:
            same = column()
            return choose.choice((" OR ", " AND ")).join(
                f"{same} {choose.choice(('=', '=', '<>'))} {one()}" for _ in range(choose.choice((2, 3, 5, 9)))
            )
        case 9:
            shape = choose.choice(
                (
                    "COALESCE({0}, {1})",
                    "NULLIF({0}, {1})",
                    "GREATEST({0}, {1})",
                    "LEAST({1}, {0})",
                    "-{0}",
                    "{0} + 0",
                    "ABS({0})",
                )
            )
            return f"{shape.format(column(), one())} {choose.choice(ANY_SIGNS)} {one()}"
        case 10:
            kind = choose.choice(
                (
                    pool.lexis.double,
                    pool.lexis.double,
                    "REAL",
                    "FLOAT",
                    "INTEGER",
                    "DECIMAL(10,2)",
                    "VARCHAR",
                    "BIGINT",
                    "Float64",
                )
            )
            return f"CAST({column()} AS {kind}) {choose.choice(ANY_SIGNS)} {one()}"
        case 11:
            ends = " ".join(
                f"WHEN {one()} THEN {choose.choice(('TRUE', 'FALSE', 'NULL'))}" for _ in range(choose.choice((1, 2, 3)))
            )
            return f"CASE {column()} {ends} ELSE {choose.choice(('TRUE', 'FALSE'))} END"
        case 12:
            return f"{column()} {choose.choice(('IS NULL', 'IS NOT NULL', 'ISNULL', 'NOTNULL', '= NULL', 'IS NOT NULL IS TRUE'))}"
        case 13:
            return f"{column()} {choose.choice(('=', '<>', '<', '>='))} {choose.choice(('ANY', 'ALL', 'SOME'))} (ARRAY[{one()}, {one()}])"
        case _:
            return re.sub(
                r"\b[0-9]+(?:\.[0-9]+)?\b(?!\))",
                lambda _: choose.choice(pool.decimals),
                choose.choice(CONDITIONS),
                count=2,
            )


def _respell(choose, made):
    """Other letters for the same words: case and blanks. Texts and names are left alone."""
    pieces = re.split(r"""('[^']*'|"[^"]*"|`[^`]*`)""", made)
    change = choose.choice((str.lower, str.upper, lambda piece: piece.replace(" ", choose.choice(("  ", "\n", "\t")))))
    return "".join(piece if number % 2 else change(piece) for number, piece in enumerate(pieces))
