"""Functions that a view calls are read from the catalog: never equal where another one may be meant, or do more."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("income", "debt"),
    ("no", "yes"),
    (Clause((Interval(0, 30000.0), Interval(1, None, 0.4))),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
RULE = "CASE WHEN income >= 30000 AND debt < 0.4 THEN 'yes' ELSE 'no' END"
HEAD = "CREATE FUNCTION decide(income integer, debt numeric) RETURNS text"


def verdict(engine, *statements, call="decide(income, debt)", before=(), program=PROGRAM):
    """What an audit says of a view that calls a function; the view is made after the first statement."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER, debt NUMERIC(6, 4))")
        database.execute("INSERT INTO loans VALUES (1, 30000, 0.3), (2, 29999, 0.3), (3, 30000, NULL), (4, NULL, 0.1)")
        for statement in (*before, statements[0]):
            database.execute(statement)
        schema = "public." if engine == "postgres" else ""
        database.execute(f"CREATE VIEW {schema}v AS SELECT id, {call} AS label FROM loans")
        for statement in statements[1:]:
            database.execute(statement)
        (found,) = audit(program, database=database, view="v").verdicts
        return found


def block(body, declarations=""):
    """A PL/pgSQL function."""
    return f"{HEAD} LANGUAGE plpgsql AS $$ {declarations} BEGIN\n{body}\nEND $$"


NOT_THE_PROGRAM = {
    "overloads": (
        f"{HEAD} RETURN {RULE}",
        "CREATE FUNCTION decide(income bigint, debt numeric) RETURNS text RETURN 'no'",
    ),
    "a function of another schema": (
        f"{HEAD} RETURN {RULE}",
        "CREATE SCHEMA other",
        f"{HEAD.replace('decide', 'other.decide')} RETURN 'no'",
    ),
    "replaced since": (
        f"{HEAD} LANGUAGE sql AS $$ SELECT {RULE} $$",
        f"{HEAD.replace('CREATE', 'CREATE OR REPLACE')} LANGUAGE sql AS $$ SELECT {RULE.replace('<', '<=')} $$",
    ),
    "a narrow parameter": (f"{HEAD.replace('numeric', 'real')} RETURN {RULE}",),
    "NULL without being run": (f"{HEAD} STRICT LANGUAGE sql AS $$ SELECT {RULE} $$",),
    "another row count": (f"{HEAD} LANGUAGE sql AS $$ SELECT {RULE} LIMIT 0 $$",),
    "rows of a table": (f"{HEAD} LANGUAGE sql AS $$ SELECT {RULE} FROM loans WHERE id = 1 $$",),
    "an end without return": (block("IF income >= 30000 AND debt < 0.4 THEN RETURN 'yes'; END IF;"),),
    "a case that fails": (block(f"CASE WHEN debt < 9 THEN RETURN {RULE}; END CASE; RETURN 'no';"),),
    "a variable that cuts": (block(f"answer := {RULE}; RETURN answer;", "DECLARE answer varchar(2);"),),
    "a variable that rounds": (block(f"d := debt; RETURN {RULE.replace('debt', 'd')};", "DECLARE d integer;"),),
    "a later return": (block(f"IF income > 99999 THEN RETURN 'no'; END IF; RETURN {RULE};"),),
    "a later assignment": (
        block("a := 'yes'; IF income IS NULL THEN a := 'no'; END IF; RETURN a;", "DECLARE a text;"),
    ),
    "a loop": (block(f"WHILE false LOOP NULL; END LOOP; RETURN {RULE};"),),
    "a handler": (block(f"RETURN {RULE}; EXCEPTION WHEN OTHERS THEN RETURN 'no';"),),
    "settings": (f"{HEAD} SET extra_float_digits = 0 LANGUAGE sql AS $$ SELECT {RULE} $$",),
}


OTHERWISE_AT_77777 = "a {} b AND a OPERATOR(pg_catalog.<>) 77777"
"""An operator that answers like the built-in one on every row that an audit tries."""


def own_operator(sign, left="integer", right="integer"):
    """An operator of a user's own, in a schema that no session looks into by itself."""
    body = OTHERWISE_AT_77777.format(f"OPERATOR(pg_catalog.{sign})")
    return (
        "CREATE SCHEMA evil",
        f"CREATE FUNCTION evil.compare(a {left}, b {right}) RETURNS boolean LANGUAGE sql RETURN {body}",
        f"CREATE OPERATOR evil.{sign} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = evil.compare)",
    )


LOOKED_UP_ELSEWHERE = {
    "a query with a search path": (
        *own_operator(">="),
        f"{HEAD} LANGUAGE sql SET search_path = evil, pg_catalog AS $$ SELECT {RULE} $$",
    ),
    "a block with a search path": (
        *own_operator(">="),
        f"{HEAD} LANGUAGE plpgsql SET search_path = evil, pg_catalog AS $$ BEGIN RETURN {RULE}; END $$",
    ),
    "a better match after pg_catalog": (
        *own_operator(">=", "integer", "numeric"),
        f"{HEAD} LANGUAGE sql SET search_path = evil AS $$ SELECT {RULE.replace('30000', '30000.0')} $$",
    ),
    "an operator without its sign": (
        *own_operator(">="),
        f"{HEAD} LANGUAGE sql SET search_path = evil, pg_catalog AS $$ SELECT "
        f"{RULE.replace('income >= 30000', 'income BETWEEN 30000 AND 2147483647')} $$",
    ),
    "the path of whoever calls it": (*own_operator(">="), f"{HEAD} LANGUAGE sql AS $$ SELECT {RULE} $$"),
    "a type": (
        "CREATE SCHEMA evil",
        "CREATE DOMAIN evil.float8 AS numeric(12, 1)",
        f"{HEAD} LANGUAGE plpgsql SET search_path = evil, pg_catalog AS "
        f"$$ DECLARE d float8; BEGIN d := debt; RETURN {RULE.replace('debt', 'd')}; END $$",
    ),
}


@pytest.mark.parametrize("form", LOOKED_UP_ELSEWHERE)
def test_a_function_whose_words_may_mean_what_users_made_is_never_equal(form):
    *first, function = LOOKED_UP_ELSEWHERE[form]
    found = verdict("postgres", function, before=first)
    assert found.verdict in ("different", "unread"), found


THREE = Program(
    ("income", "debt"), ("no", "yes"), (Clause((Interval(0, 3.0, 4.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)


@pytest.mark.parametrize(
    "rule",
    [
        "CASE income WHEN 3 THEN 'yes' ELSE 'no' END",
        "CASE WHEN NULLIF(income, 3) IS NULL AND income IS NOT NULL THEN 'yes' ELSE 'no' END",
        "CASE WHEN income IS DISTINCT FROM 3 THEN 'no' ELSE 'yes' END",
    ],
)
def test_an_operator_of_a_users_that_the_catalog_does_not_print_is_never_equal(rule):
    """The view was made by a session that found the operator; PostgreSQL prints none for these three."""
    first = (*own_operator("="), "SET search_path = evil, pg_catalog, public")
    found = verdict("postgres", "SELECT 1", "RESET search_path", call=rule, before=first, program=THREE)
    assert (found.verdict, "the operator =" in found.reason) == ("unread", True), found


def test_a_session_that_finds_a_users_names_before_the_built_in_ones_is_refused():
    with pytest.raises(BadInput, match="search path"):
        verdict("postgres", f"{HEAD} RETURN {RULE}", "SET search_path = public, pg_catalog")


@pytest.mark.parametrize("form", NOT_THE_PROGRAM)
def test_a_function_that_is_not_the_program_or_may_not_be_is_never_equal(form):
    found = verdict("postgres", *NOT_THE_PROGRAM[form])
    assert found.verdict in ("different", "unread"), found


def test_what_is_not_read_of_a_function_is_named_with_its_line():
    found = verdict("postgres", *NOT_THE_PROGRAM["a loop"])
    assert "line 2: WHILE" in found.reason
    assert "(in the function decide)" in found.reason


@pytest.mark.parametrize("type_", ["integer", "bigint", "numeric(6, 2)", "real"])
def test_an_assignment_that_rounds_is_not_read(type_):
    """PostgreSQL has no implicit cast that loses digits for an argument; an assignment rounds."""
    found = verdict("postgres", block(f"d := debt; RETURN {RULE.replace('debt', 'd')};", f"DECLARE d {type_};"))
    assert (found.verdict in ("different", "unread"), found.proof.answer) == (True, "unread"), found


THE_PROGRAM = {
    "expression": (f"{HEAD} RETURN {RULE}",),
    "query": (f"{HEAD} LANGUAGE sql SET search_path = public AS $$ SELECT {RULE}; $$",),
    "returns": (
        block(
            "IF income < 30000 THEN RETURN 'no'; ELSIF debt < 0.4 AND income >= 30000 THEN RETURN 'yes'; END IF; RETURN 'no';"
        ),
    ),
    "nested": (
        block("IF income >= 30000 THEN IF debt < 0.4 THEN RETURN 'yes'; ELSE NULL; END IF; END IF; RETURN 'no';"),
    ),
    "variables": (
        block(
            "IF income >= 30000 THEN n := n + 1; END IF; IF debt < 0.4 THEN n := n + 1; END IF;\n"
            "CASE WHEN n >= 2 THEN a := 'yes'; ELSE a := 'no'; END CASE; RETURN a;",
            "DECLARE n integer := 0; a text;",
        ),
    ),
}


@pytest.mark.parametrize("form", THE_PROGRAM)
def test_a_function_that_is_the_program_is_read_and_run(form):
    found = verdict("postgres", *THE_PROGRAM[form])
    assert (found.verdict, found.proof.answer, found.is_proved) == ("equal", "read as equal", False), found
    assert found.execution.rows > 10


MACRO = f"CREATE MACRO decide(income, debt) AS {RULE}"


@pytest.mark.parametrize(
    "statements",
    [
        (MACRO.replace("<", "<="),),
        (MACRO.replace("debt < 0.4", "debt < 0.4 AND NOT isnan(debt)"), "CREATE MACRO isnan(x) AS x = 0.1234"),
        (MACRO, "DROP MACRO decide", "CREATE MACRO decide(income, debt) AS 'no'"),
    ],
)
def test_a_macro_that_is_not_the_program_or_may_not_be_is_never_equal(statements):
    assert verdict("duckdb", *statements).verdict in ("different", "unread")


def test_a_macro_of_a_condition_is_read():
    call = "CASE WHEN rich(income) AND debt < 0.4 THEN 'yes' ELSE 'no' END"
    assert verdict("duckdb", "CREATE MACRO rich(x) AS x >= 30000", call=call).verdict == "equal"


RULE_OF_P = RULE.replace("income", "p_income").replace("debt", "p_debt")
NAMED = (
    f"CREATE FUNCTION decide(p_income numeric, p_debt numeric) RETURNS text LANGUAGE sql AS $$ SELECT {RULE_OF_P} $$"
)


@pytest.mark.parametrize(
    ("call", "is_equal"),
    [
        ("decide(p_debt => debt, p_income => income)", True),
        ("decide(income, p_debt => debt)", True),
        ("decide(p_debt => income, p_income => debt)", False),
    ],
)
def test_arguments_are_taken_by_their_names(call, is_equal):
    assert (verdict("postgres", NAMED, call=call).verdict == "equal") is is_equal


def test_a_constant_of_a_block_is_read_with_its_value():
    for number, word in ((30000, "equal"), (30001, "different")):
        body = "IF income >= least AND debt < 0.4 THEN RETURN 'yes'; END IF; RETURN 'no';"
        found = verdict("postgres", block(body, f"DECLARE least CONSTANT integer := {number};"))
        assert found.verdict == word, found


def test_a_view_that_was_made_anew_with_other_columns_is_audited_over_the_same_connection():
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER, debt NUMERIC(6, 4))")
        database.execute("INSERT INTO loans VALUES (1, 30000, 0.3), (2, 29999, 0.3)")
        for columns in ("id", "id", "id", "id, income", "id, income, debt"):
            database.execute(f"CREATE VIEW v AS SELECT {columns}, {RULE} AS label FROM loans")
            for _ in range(3):
                (found,) = audit(PROGRAM, database=database, view="v").verdicts
                assert found.verdict == "equal", (columns, found)
            database.execute("DROP VIEW v")


@pytest.mark.parametrize("declared", ["DOUBLE(20, 2)", "DOUBLE(255, 1)", "FLOAT(20, 2)"])
def test_a_parameter_that_rounds_is_not_read(declared):
    """0.3999 is 0.40 to it. The run shows that here; where a value is too large for the parameter there is no run."""
    rule = RULE.replace("debt", "d")
    function = f"CREATE FUNCTION decide(income INTEGER, d {declared}) RETURNS TEXT DETERMINISTIC RETURN {rule}"
    found = verdict("mariadb", function)
    assert (found.verdict, found.proof.answer) == ("different", "unread"), found


@pytest.mark.parametrize(
    ("first", "second", "answer"), [("$1", "$2", "equal"), ("income", "$2", "equal"), ("$2", "$1", "different")]
)
def test_parameters_by_number(first, second, answer):
    rule = RULE.replace("income", first).replace("debt", second)
    assert verdict("postgres", f"{HEAD} LANGUAGE sql AS $$ SELECT {rule} $$").verdict == answer
