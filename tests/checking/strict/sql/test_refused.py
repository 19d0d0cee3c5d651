"""Wrong programs first: every way found to make an engine answer otherwise than the text seems to say is refused."""

import pytest

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import expected_of, read_strict, read_strict_view
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from tests.backends.sql.programs import CARD, THREE, TREE
from tests.checking.strict.sql.cases import LABELS, RUN, SMALL, body_of, everything, strict, text_of, verdict

QUOTE = {"sqlite": "`", "mariadb": "`", "clickhouse": "`", "spark": "`"}
BOUND = {"sqlite": "1.5e0", "postgres": "CAST(1.5e0 AS DOUBLE PRECISION)"}


def comparison(dialect):
    """The one comparison of SMALL, as it is emitted."""
    quote = QUOTE.get(dialect, '"')
    return f"{quote}age{quote} >= {BOUND.get(dialect, '1.5e0')}"


def on_one_line(text):
    """The query without its comments, blanks and line breaks alike."""
    return " ".join(body_of(text).split())


def is_refused(dialect, old, new, program=SMALL, **options):
    """Whether an edit is refused or refuted; the text before it was proved."""
    options = {**LABELS, **options}
    text = text_of(program, dialect, **options)
    assert verdict(program, text, dialect, **options) == "proved", text
    assert old in text, text
    return verdict(program, text.replace(old, new, 1), dialect, **options) != "proved"


@pytest.mark.parametrize("dialect", RUN)
def test_a_text_joined_with_null_is_not_a_test(dialect):
    quote = QUOTE.get(dialect, '"')
    column = f"{quote}age{quote}"
    hidden = f"('a' || CASE WHEN {column} = 12345e0 THEN NULL ELSE 'b' END) IS NOT NULL AND {comparison(dialect)}"
    assert is_refused(dialect, comparison(dialect), hidden)
    assert is_refused(dialect, comparison(dialect), f"CAST(NULL AS VARCHAR) IS NULL AND {comparison(dialect)}")


@pytest.mark.parametrize(
    "hidden",
    [
        "(`age` >= 1.5e0 AND `age` <> 12345e0 -- the limit \\\n OR `age` = 12345e0\n )",
        "(`age` >= 1.5e0 -- the limit ${system:line.separator} AND `age` <> 12345e0\n )",
        "(`age` >= 1.5e0 -- the limit \\\n)",
        "`age` >= 1.5e0 /* ${x} */",
    ],
)
def test_spark_continues_and_replaces_comments(hidden):
    assert is_refused("spark", "`age` >= 1.5e0", hidden)


def test_spark_replaces_variables_in_labels():
    program = Program(SMALL.features, ("no", "${env:HOME}"), SMALL.clauses, SMALL.decision)
    text = text_of(SMALL, "spark", **LABELS).replace("'yes'", "'${env:HOME}'")
    assert "'${env:HOME}'" in text
    with pytest.raises(Unread, match="replaces"):
        strict(program, text, "spark", **LABELS)


@pytest.mark.parametrize("dialect", RUN)
def test_a_stage_that_is_named_before_it_is_defined_is_refused(dialect):
    text = """WITH `t` AS (SELECT `age` FROM `loans`),
`loans` AS (SELECT CASE WHEN `age` = 12345e0 THEN 0e0 ELSE `age` END AS `age` FROM `data`)
SELECT CASE WHEN `age` >= 1.5e0 THEN 'yes' ELSE 'no' END AS `label` FROM `t`"""
    quoted = text.replace("`", QUOTE.get(dialect, '"'))
    assert verdict(SMALL, quoted, dialect, types="double", **LABELS) == "unread"
    forward = quoted.replace("loans", "data").replace('"t"', '"u"').replace("`t`", "`u`")
    assert verdict(SMALL, forward, dialect, types="double", **LABELS) == "unread"


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres"])
def test_an_alias_inside_lateral_does_not_hide_a_column(dialect):
    text = """SELECT "label" FROM "data" CROSS JOIN LATERAL (
  SELECT CASE WHEN "age" = 12345e0 THEN 0e0 ELSE "age" END AS "age",
         CASE WHEN "age" >= 1.5e0 AND "age" <> CAST('NaN' AS DOUBLE) THEN 'yes' ELSE 'no' END AS "label" OFFSET 0) AS gbfl_s"""
    text = text.replace('"', QUOTE.get(dialect, '"'))
    assert verdict(SMALL, text, dialect, types="double", **LABELS) == "unread"


def test_a_lateral_column_may_not_have_an_outer_name():
    body = body_of(text_of(THREE, "postgres", form="view", outputs="label", types="double"))
    assert verdict(THREE, body, "postgres", form="view", outputs="label", types="double") == "proved"
    hidden = body.replace('"gbfl_points_1"', '"age"')
    assert verdict(THREE, hidden, "postgres", form="view", outputs="label", types="double") == "unread"


FOUR = Program(
    ("age",),
    ("no", "yes"),
    tuple(Clause((Interval(0, float(i), float(i), "both"),)) for i in range(4)),
    split(
        0,
        leaf(0.0, 1.0),
        split(1, leaf(0.0, 1.0), split(2, leaf(0.0, 1.0), split(3, leaf(0.0, 1.0), leaf(1.0, 0.0)))),
    ),
)


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("point", ["{c} = {v}", "({c} >= {v} AND {c} <= {v})", "({c} <= {v} AND {c} >= {v})"])
def test_several_points_joined_by_or_are_refused(dialect, point):
    quote = QUOTE.get(dialect, '"')
    column = f"{quote}age{quote}"
    number = "CAST({}e0 AS DOUBLE PRECISION)" if dialect == "postgres" else "{}e0"
    chain = " OR ".join(point.format(c=column, v=number.format(i)) for i in range(4))
    text = f"SELECT CASE WHEN {chain} THEN 'yes' ELSE 'no' END AS {quote}label{quote} FROM {quote}data{quote}"
    assert verdict(FOUR, text, dialect, types="double", **LABELS) == "unread"
    assert verdict(FOUR, text_of(FOUR, dialect, **LABELS), dialect, **LABELS) == "proved"


def test_a_duckdb_array_of_mixed_types_is_refused():
    new = '("age" = ANY (ARRAY[\'12345.5\', 2]) OR ("age" >= 1.5e0 AND "age" <> 12345.5e0))'
    assert is_refused("duckdb", comparison("duckdb"), new)
    listed = text_of(TREE, "duckdb", outputs=everything(TREE))
    assert "['yes', 'no', 'no']" in listed
    for wrong in ("['yes', 'no', 0]", "['yes', 'no']", "['yes', 'no', 'no', \"gbfl_leaf\"]"):
        edited = listed.replace("['yes', 'no', 'no']", wrong)
        assert verdict(TREE, edited, "duckdb", outputs=everything(TREE)) == "unread"


CLAMPED = Program(
    tuple(f"x{i}" for i in range(24)),
    ("a", "b", "c"),
    tuple(Clause((Interval(i, 1.0 + i % 3, 2.0 + i % 3),)) for i in range(24)),
    Scorecard((0, 0, -1), tuple((0, 5, 0) if i < 12 else (0, 0, 5) for i in range(24)), 0),
)


@pytest.mark.parametrize(
    "weight",
    [
        " - 0 AS DOUBLE), 50.0e0), -50.0e0)",
        " - 0 AS DOUBLE), 700.0e0), -700.0e0)",
        ' - "gbfl_top" AS DOUBLE), 50.0e0), -700.0e0)',
        ' - "gbfl_top" AS DOUBLE), 700.0e0), -50.0e0)',
        ' - "gbfl_points_1" AS DOUBLE), 700.0e0), -700.0e0)',
    ],
)
def test_a_softmax_is_taken_against_the_greatest_score_and_clamped_at_700(weight):
    old = ' - "gbfl_top" AS DOUBLE), 700.0e0), -700.0e0)'
    text = text_of(CLAMPED, "duckdb")
    assert verdict(CLAMPED, text, "duckdb") == "proved"
    assert verdict(CLAMPED, text.replace(old, weight), "duckdb") == "unread"


@pytest.mark.parametrize(
    ("dialect", "hidden"),
    [
        ("postgres", 'generate_series(1, CASE WHEN "age" = 12345 THEN 0 ELSE 1 END)'),
        ("duckdb", 'unnest(CASE WHEN "age" = 12345 THEN [] ELSE [1] END)'),
        ("clickhouse", "arrayJoin(if(ifNull(`age`, 0) = 12345, emptyArrayUInt8(), [1]))"),
        ("datafusion", 'unnest(CASE WHEN "age" = 12345 THEN make_array() ELSE make_array(1) END)'),
        ("sqlite", "MAX(`age`)"),
        ("sqlite", "COUNT(1)"),
        ("mariadb", "SLEEP(1)"),
        ("spark", "explode(array(1, 2))"),
    ],
)
def test_a_column_that_is_not_used_is_read_too(dialect, hidden):
    quote = QUOTE.get(dialect, '"')
    old = "SELECT\n    "
    assert is_refused(dialect, old, f"{old}{hidden} AS {quote}zz{quote}, ")


EDITS = {
    "another bound": ('"age" >= 1.5e0', '"age" >= 1.5000000000000002e0'),
    "an open bound": ('"age" >= 1.5e0', '"age" > 1.5e0'),
    "another sign": ('"age" >= 1.5e0', '"age" < 1.5e0'),
    "no guard": (" AND \"age\" <> CAST('NaN' AS DOUBLE)", ""),
    "a guard that takes NaN": ("<> CAST('NaN' AS DOUBLE)", "= CAST('NaN' AS DOUBLE)"),
    "OR for AND": ('1.5e0 AND "age"', '1.5e0 OR "age"'),
    "swapped labels": ("THEN 'yes' ELSE 'no'", "THEN 'no' ELSE 'yes'"),
    "a label of its own": ("ELSE 'no'", "ELSE 'other'"),
    "a NULL label": ("ELSE 'no'", "ELSE NULL"),
    "no ELSE": (" ELSE 'no'", ""),
    "NOT": ('WHEN "age"', 'WHEN NOT "age"'),
    "a filter": ("FROM gbfl_rows", "FROM gbfl_rows WHERE 1 = 1"),
    "a limit": ("FROM gbfl_rows", "FROM gbfl_rows LIMIT 1"),
    "another stage": ("FROM gbfl_rows", "FROM gbfl_others"),
    "the table once more": ("FROM gbfl_rows", 'FROM "data"'),
    "another table": ('FROM "data"', 'FROM "date"'),
    "another schema": ('FROM "data"', 'FROM "s"."data"'),
    "an alias for the table": ('FROM "data"', 'FROM "data" AS "d"'),
    "two tables": ('FROM "data"', 'FROM "data", "data" AS "e"'),
    "a float32": ("AS DOUBLE) AS", "AS FLOAT) AS"),
    "no cast": ('CAST("age" AS DOUBLE) AS "age"', '"age"'),
    "another column": ('CAST("age" AS DOUBLE)', 'CAST("income" AS DOUBLE)'),
    "a string for a number": ("1.5e0", "'1.5e0'"),
    "a decimal": ("1.5e0", "1.5"),
    "a long literal": ("1.5e0", "1.500000000000000000000000000001e0"),
    "too large a literal": ("1.5e0", "1e400"),
    "too small a literal": ("1.5e0", "1e-400"),
    "a sum for a number": ("1.5e0", "(1.0e0 + 0.5e0)"),
    "a product that rounds": ("1.5e0", "(1.0e0 / 3.0e0)"),
    "arithmetic on a feature": ('"age" >= 1.5e0', '"age" + 0.0e0 >= 1.5e0'),
    "a mirrored comparison": ('"age" >= 1.5e0', '1.5e0 <= "age"'),
    "BETWEEN": ('"age" >= 1.5e0', '"age" BETWEEN 1.5e0 AND 1e308'),
    "IN": ('"age" >= 1.5e0', '"age" IN (1.5e0)'),
    "a chain of comparisons": ('"age" >= 1.5e0', '0.0e0 < "age" >= 1.5e0'),
    "IS NULL of a comparison": ('"age" >= 1.5e0', '"age" >= 1.5e0 IS NULL'),
    "IS TRUE": ('"age" >= 1.5e0', '("age" >= 1.5e0) IS TRUE'),
    "another name": ('AS "label"', 'AS "Label"'),
    "another column beside it": ('AS "label"', 'AS "label", 1 AS "more"'),
    "an alias that hides": ('AS "label"', 'AS "age"'),
    "DISTINCT": ("SELECT CASE", "SELECT DISTINCT CASE"),
    "two statements": ("FROM gbfl_rows", "FROM gbfl_rows; SELECT 1"),
    "a recursive stage": ("WITH gbfl_rows", "WITH RECURSIVE gbfl_rows"),
    "a stage with column names": ("WITH gbfl_rows AS", 'WITH gbfl_rows ("income") AS'),
    "a materialized stage": ("gbfl_rows AS (", "gbfl_rows AS MATERIALIZED ("),
    "a schema's stage": ("WITH gbfl_rows", 'WITH "s.data"'),
    "an empty name": ('AS "label"', 'AS ""'),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_a_tree_is_refused_or_refuted(edit):
    old, new = edit
    text = on_one_line(text_of(SMALL, "duckdb", **LABELS))
    assert verdict(SMALL, text, "duckdb", **LABELS) == "proved"
    assert old in text, text
    assert verdict(SMALL, text.replace(old, new), "duckdb", **LABELS) != "proved"


SCORED = {
    "a tie to the other class": ('WHEN "gbfl_points_0" = "gbfl_top"', 'WHEN "gbfl_points_0" > "gbfl_top"'),
    "classes swapped": ("THEN 'a'", "THEN 'b'"),
    "a sum that is not cast": ("AS BIGINT)", "AS INTEGER)"),
    "another bias": ("(-2", "(-3"),
    "other points": (" * 3", " * 4"),
    "points for another rule": ('"gbfl_held_1" * -1', '"gbfl_held_0" * -1'),
    "the greatest of two": (
        'GREATEST("gbfl_points_0", "gbfl_points_1", "gbfl_points_2")',
        'GREATEST("gbfl_points_0", "gbfl_points_1")',
    ),
    "the least": ('GREATEST("gbfl_points_0"', 'LEAST("gbfl_points_0"'),
    "another scale": (" * 0.5e0", " * 0.25e0"),
    "a scale that is not a power of two": (" * 0.5e0", " * 0.3e0"),
    "EXP without a clamp": ("700.0e0), -700.0e0)", "709.0e0), -709.0e0)"),
    "a probability of another class": ('"gbfl_weight_0" / ', '"gbfl_weight_1" / '),
    "a weight left out": ('"gbfl_weight_0" + "gbfl_weight_1"', '"gbfl_weight_0" + "gbfl_weight_0"'),
    "a reason for another rule": ("THEN '0 '", "THEN '1 '"),
    "a flag compared with two": ('"gbfl_held_0" = 1', '"gbfl_held_0" = 2'),
    "a large integer": ("(-2", "(2147483648"),
    "a sum beyond 32 bits": (" * 3", " * 2147483647 * 2"),
    "a score of its own": ('"gbfl_points_0" AS "score_a"', '0 AS "score_a"'),
    "a flag that is two": ('THEN 1 ELSE 0 END AS "gbfl_held_0"', 'THEN 2 ELSE 0 END AS "gbfl_held_0"'),
}


@pytest.mark.parametrize("edit", SCORED.values(), ids=SCORED)
def test_an_edit_of_a_rule_set_is_refused_or_refuted(edit):
    old, new = edit
    options = {"outputs": everything(THREE)}
    text = on_one_line(text_of(THREE, "duckdb", **options))
    assert verdict(THREE, text, "duckdb", **options) == "proved"
    assert old in text, text
    assert verdict(THREE, text.replace(old, new, 1), "duckdb", **options) != "proved"


def test_an_alias_may_not_be_read_by_another_column_of_the_list():
    text = (
        """SELECT CAST(`age` AS REAL) AS `x`, CASE WHEN `x` >= 1.5e0 THEN 'yes' ELSE 'no' END AS `label` FROM `data`"""
    )
    assert verdict(SMALL, text, "sqlite", **LABELS) == "unread"


def test_a_key_column_is_handed_on_as_it_is():
    options = {**LABELS, "key": "id"}
    text = text_of(SMALL, "sqlite", **options)
    assert verdict(SMALL, text, "sqlite", **options) == "proved"
    for old, new in (("`id`,", "CAST(`id` AS REAL) AS `id`,"), ("`id`,", "`age` AS `id`,"), ("`id`,", "1 AS `id`,")):
        assert verdict(SMALL, text.replace(old, new, 1), "sqlite", **options) == "unread"


def test_mixed_null_and_nan_have_no_way_through():
    """True only where one feature is NULL and the other NaN: readings of all NULL and of all NaN would both miss it."""
    hidden = f'{comparison("duckdb")} AND "age" <> CAST(\'NaN\' AS DOUBLE) OR ("age" IS NULL AND "income" = CAST(\'NaN\' AS DOUBLE))'
    assert is_refused("duckdb", f"{comparison('duckdb')} AND \"age\" <> CAST('NaN' AS DOUBLE)", hidden, types="double")


WRONG_ARGUMENTS = {
    "swapped": ('("age", "income")', '("income", "age")'),
    "one too few": ('("age", "income")', '("age")'),
    "one twice": ('("age", "income")', '("age", "age")'),
    "a default": ('("age", "income")', '("age", "income" := 1)'),
}


@pytest.mark.parametrize("edit", WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS)
def test_a_function_takes_the_features_in_order(edit):
    options = {"form": "macro"}
    text = text_of(TREE, "duckdb", **options)
    assert verdict(TREE, text, "duckdb", **options) == "proved"
    assert edit[0] in text
    assert verdict(TREE, text.replace(*edit), "duckdb", **options) == "unread"


def test_a_function_of_mariadb_returns_no_more_than_its_type_holds():
    program = with_reasons(CARD, {0: "a" * 499, 1: "b" * 499})
    options = {"form": "macro", "outputs": "label,reason"}
    with pytest.raises(BadInput, match="1000 characters"):
        text_of(program, "mariadb", **options)
    assert (
        verdict(program, text_of(program, "mariadb", outputs="label,reason"), "mariadb", outputs="label,reason")
        == "proved"
    )


@pytest.mark.parametrize(("dialect", "answer"), [("duckdb", "unread"), ("postgres", "proved")])
def test_columns_that_an_engine_takes_for_one_are_refused(dialect, answer):
    clauses = (Clause((Interval(0, 1.5),)), Clause((Interval(1, 2.5),)))
    program = Program(
        ("a", "A"), ("no", "yes"), clauses, split(0, leaf(0.0, 1.0), split(1, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    )
    text = text_of(program, "postgres", **LABELS)
    if dialect == "duckdb":
        text = text.replace("DOUBLE PRECISION", "DOUBLE")
    assert verdict(program, text, dialect, **LABELS) == answer


def test_a_view_of_an_engine_without_a_catalog_is_unread():
    with pytest.raises(Unread, match="keeps no text"):
        read_strict_view("SELECT 1", "datafusion", expected_of(SMALL, LABELS))


def test_only_unread_is_raised_on_any_cut_of_a_text():
    for dialect in RUN:
        text = body_of(text_of(THREE, dialect, outputs=everything(THREE)))
        for end in range(0, len(text), 41):
            with pytest.raises(Unread):
                read_strict(text[:end].rstrip("; \n")[:-1], dialect, expected_of(THREE, {"outputs": everything(THREE)}))


ALWAYS_NO = Program(("age", "income"), ("no", "yes"), (Clause((Interval(0, 1.5),)),), Scorecard((3, 0), ((0, 0),), 0))


@pytest.mark.parametrize("outputs", ["label,probabilities,score", "label,probabilities", "label,probabilities,reason"])
@pytest.mark.parametrize("dialect", RUN)
def test_probabilities_that_are_written_out_are_compared_too(dialect, outputs):
    """No rule gives points, so the probabilities are numbers in the text."""
    text = text_of(ALWAYS_NO, dialect, outputs=outputs)
    right = next(word for word in text.replace("(", " ").replace(",", " ").split() if word.startswith(("0.95", "9.5")))
    assert verdict(ALWAYS_NO, text, dialect, outputs=outputs) == "proved"
    assert verdict(ALWAYS_NO, text.replace(right, "0.75e0"), dialect, outputs=outputs) == "counterexample"


def test_probabilities_of_a_tree_in_the_place_of_a_rule_sets():
    program = Program(ALWAYS_NO.features, ALWAYS_NO.classes, ALWAYS_NO.clauses, Scorecard((0, 0), ((0, 2),), 0))
    asks = """CASE WHEN "age" >= 1.5e0 AND "age" <> CAST('NaN' AS DOUBLE) THEN"""
    text = f"""WITH gbfl_rows AS (SELECT CAST("age" AS DOUBLE) AS "age" FROM "data")
    SELECT {asks} 'yes' ELSE 'no' END AS "label",
    {asks} 0.25e0 ELSE 0.5e0 END AS "p_no", {asks} 0.75e0 ELSE 0.5e0 END AS "p_yes" FROM gbfl_rows"""
    assert verdict(program, text, "duckdb", outputs="label,probabilities") != "proved"


def test_two_dashes_in_a_comment_before_a_label_of_two_lines():
    """DuckDB takes the dashes for a comment up to the line's end, and then rewrites the no-break space in the label."""
    program = Program(SMALL.features, ("n\n\u00a0o", "yes"), SMALL.clauses, SMALL.decision)
    assert is_refused("duckdb", "'n\n", "/* -- */ 'n\n", program)
