"""The SQL target as text: every dialect parses, nothing from outside becomes code, options and limits are refused by name."""

import json
import math
import random
import re
import shutil
import sqlite3
import struct
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings

from gbfl_compile.backends import BACKENDS, backend, emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script
from gbfl_compile.backends.sql.text import identifier, literal, powers, string
from gbfl_compile.checking.artifact import prove_artifact, was_run
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.json import digest, save
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from tests.backends.sql.programs import EACH, HOSTILE, THREE, TREE, hostile_program, text_of
from tests.engines.sizes import rule_list, rule_set, wide_tree
from tests.programs import programs

sqlglot = pytest.importorskip("sqlglot")
from sqlglot import exp  # noqa: E402 - only where sqlglot is installed

EVERY = tuple(DIALECTS)


def parsed(dialect, text, form="select"):
    """The artifact's statements as sqlglot reads them."""
    body = "\n".join(line for line in text.split("\n") if not line.startswith("--"))
    if form == "expression":
        body = f"SELECT {body}"
    return [tree for tree in sqlglot.parse(body, read=DIALECTS[dialect].sqlglot) if tree is not None]


@pytest.mark.parametrize("form", ["expression", "select", "view", "table"])
@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
@pytest.mark.parametrize("dialect", EVERY)
def test_every_dialect_parses(dialect, program, form):
    trees = parsed(dialect, text_of(program, dialect, form=form, key="id"), form)
    assert len(trees) == 1
    assert not list(trees[0].find_all(exp.Command)), "sqlglot gave up on it"


@settings(max_examples=8)
@given(programs(("tree", "scorecard", "banded")))
def test_random_programs_parse_in_every_dialect_or_are_refused(program):
    for dialect in EVERY:
        try:
            text = text_of(program, dialect)
        except BadInput as error:
            assert re.search("takes|one in|beyond what", str(error))  # noqa: PT017 - which are refused depends on them
            continue
        assert len(parsed(dialect, text)) == 1


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_is_one_identifier_and_a_hostile_label_one_string(dialect, hostile):
    try:
        quoted = identifier(DIALECTS[dialect], hostile)
    except BadInput as error:
        assert "takes no" in str(error)  # noqa: PT017
        quoted = None
    read = DIALECTS[dialect].sqlglot
    if quoted is not None:
        (tree,) = parsed(dialect, f"SELECT {quoted} FROM t")
        assert isinstance(tree, exp.Select)
        (column,) = tree.expressions
        assert isinstance(column, exp.Column)
        if dialect not in ("clickhouse", "bigquery") or ("\\" not in hostile and "`" not in hostile):
            assert column.name == hostile  # sqlglot leaves a backslash in a quoted name as it is
    (text,) = sqlglot.parse_one(f"SELECT {string(DIALECTS[dialect], hostile)}", read=read).expressions
    assert isinstance(text, exp.Literal | exp.National | exp.ByteString | exp.RawString), text
    if dialect != "postgres" or "\\" not in hostile:
        assert text.name == hostile


@pytest.mark.parametrize("dialect", EVERY)
def test_a_hostile_program_is_still_one_statement(dialect):
    features = HOSTILE
    options = {f"column.{name}": f"c{number}" for number, name in enumerate(features)}
    text = text_of(hostile_program(), dialect, **options)
    (tree,) = parsed(dialect, text)
    assert isinstance(tree, exp.Select)
    assert not list(tree.find_all(exp.Drop, exp.Command))


def test_no_comment_ends_early():
    for dialect in EVERY:
        options = {f"column.{name}": f"c{number}" for number, name in enumerate(HOSTILE)}
        head = text_of(hostile_program(), dialect, **options).split("WITH gbfl_rows")[0]
        assert all(line.startswith("-- ") for line in head.rstrip("\n").split("\n"))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]", head)


@pytest.mark.parametrize(
    ("dialect", "name", "reason"),
    [
        ("postgres", "n" * 64, "63 bytes"),
        ("postgres", "ö" * 32, "63 bytes"),
        ("mariadb", "ends in ", "space at the end"),
        ("mariadb", "😀", "U\\+FFFF"),
        ("bigquery", "a.b", "takes no '.'"),
        ("oracle", 'a"b', "takes no"),
        ("duckdb", "nul\0", "no database takes"),
        ("sqlite", "", "is empty"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused(dialect, name, reason):
    with pytest.raises(BadInput, match=reason):
        text_of(TREE, dialect, **{"column.age": name})
    with pytest.raises(BadInput, match=reason):
        text_of(TREE, dialect, form="view", view=name)


def test_two_features_that_would_be_one_column_are_refused_unless_mapped():
    program = Program(("a", "A"), *(getattr(TREE, field) for field in ("classes", "clauses", "decision")))
    for dialect in ("sqlite", "duckdb", "mariadb", "spark"):
        with pytest.raises(BadInput, match="'a' and 'A' are one in"):
            text_of(program, dialect)
        assert "`b`" in text_of(program, dialect, **{"column.A": "b"}).replace('"', "`")
    text_of(program, "postgres")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"from": "typo"}, "unknown option 'from'"),
        ({"form": "procedure"}, "form='procedure' is not one of"),
        ({"outputs": "score"}, "a tree has label, probabilities, leaf, reason, not 'score'"),
        ({"outputs": "label,label"}, "twice"),
        ({"key": "label"}, "has the name of an output"),
        ({"key": "id,ID"}, "are one in"),
        ({"column.agee": "x"}, "no such feature"),
        ({"form": "dbt", "table": "a b"}, "cannot name a dbt model"),
        ({"column.age": "label", "form": "expression", "outputs": "label,probabilities"}, "has the name of an output"),
    ],
)
def test_wrong_options_are_refused_by_name(options, reason):
    with pytest.raises(BadInput, match=reason):
        text_of(TREE, "duckdb", **options)


def test_what_an_engine_cannot_take_is_refused_with_the_reason():
    with pytest.raises(BadInput, match="SQL Server takes 9"):
        text_of(deep(11), "tsql", outputs="label")
    with pytest.raises(BadInput, match="a CASE of 1000 WHENs: BigQuery takes 500"):
        text_of(rule_list(), "bigquery")
    with pytest.raises(BadInput, match="Spark does not plan"):
        text_of(rule_set(), "spark")
    with pytest.raises(BadInput, match="once per pair of the 3 classes or band: use form=select"):
        text_of(rule_set(7000), "duckdb", form="expression")
    with pytest.raises(BadInput, match="beyond what Oracle holds"):
        text_of(
            Program(("x",), ("a", "b"), (Clause((Interval(0, 5e-324),)),), split(0, leaf(1.0, 0.0), leaf(0.0, 1.0))),
            "oracle",
        )
    with pytest.raises(BadInput, match="contains a line ';'"):
        text_of(hostile_program(("a", "b"), ("no", "yes\n;\nno")), "duckdb")


def deep(levels):
    """A full binary tree."""
    tree = leaf(1.0, 0.0)
    clauses = tuple(Clause((Interval(0, float(n)),)) for n in range(levels))
    for number in range(levels):
        tree = split(number, tree, tree)
    return Program(("x",), ("no", "yes"), clauses, tree)


@pytest.mark.parametrize("dialect", ["sqlite", "datafusion", "clickhouse", "tsql"])
@pytest.mark.parametrize("large", [rule_set, rule_list, wide_tree])
def test_no_expression_is_nested_deeply(dialect, large):
    nested = depth = 0
    for word in re.findall(r"\bCASE\b|\bEND\b", text_of(large(), dialect)):
        depth += 1 if word == "CASE" else -1
        nested = max(nested, depth)
    assert nested <= min(DIALECTS[dialect].nesting, 12)


def test_literals_are_spelled_exactly():
    choose = random.Random(0)
    doubles = [struct.unpack("<d", choose.randbytes(8))[0] for _ in range(2000)]
    for number in (value for value in doubles if math.isfinite(value)):
        assert float(literal(DIALECTS["duckdb"], number)) == number
        assert eval(powers(number)) == number  # Python multiplies and divides doubles as SQLite does
    assert literal(DIALECTS["sqlite"], 18.0) == "18.0e0"
    assert literal(DIALECTS["sqlite"], 47.36882144582734) == "4.7368821445827344e+01"
    assert literal(DIALECTS["sqlite"], 5e-324).startswith("(1.0e0 / 1125899906842624.0e0")
    assert literal(DIALECTS["postgres"], -0.5) == "CAST(-0.5e0 AS DOUBLE PRECISION)"


def test_short_thresholds_are_spelled_so_that_the_reader_is_certain_of_them():
    """Two in a thousand short decimals lie nearly half-way between two doubles, where SQLite 3.40 may take the other."""
    from decimal import Decimal

    from gbfl_compile.checking.general.sql.engines import ENGINES, nearest

    for number in (k / scale for scale in (100, 10_000) for k in range(1, 40_000)):
        text = literal(DIALECTS["sqlite"], number)
        assert nearest(ENGINES["sqlite"], Decimal(text)) == number, text


def test_the_header_carries_digest_features_and_rules(tmp_path):
    path = tmp_path / "model.sql"
    path.write_bytes(emit(TREE, "sql:postgres", options={"form": "view", "table": "data"}).files["model.sql"])
    header = read_script(path).header
    assert header["digest"] == digest(TREE)
    assert (header["features"], header["classes"], header["form"]) == (["age", "income"], ["no", "yes"], "view")
    assert "-- IF 18 <= age < 65 AND income >= 100000 THEN yes (0.75)" in path.read_text()


def test_a_file_that_is_not_an_artifact_is_refused(tmp_path):
    path = tmp_path / "model.sql"
    for text, reason in (("SELECT 1", "has no line"), ("-- gbfl [1]\nSELECT 1", "cannot be read")):
        path.write_text(text)
        with pytest.raises(BadInput, match=reason):
            BACKENDS["sql:sqlite"].load(path)


@pytest.mark.parametrize("dialect", [name for name, row in DIALECTS.items() if row.not_run])
def test_a_dialect_that_was_never_run_says_so(dialect, tmp_path):
    path = tmp_path / "model.sql"
    path.write_text(text_of(TREE, dialect))
    assert "not run here" in BACKENDS[f"sql:{dialect}"].available().cannot_run
    with pytest.raises(CannotRun, match="not run here"):
        BACKENDS[f"sql:{dialect}"].load(path)


def test_the_command_line_compiles_and_checks_a_view(tmp_path, capsys):
    save(TREE, tmp_path / "program.json")
    out = tmp_path / "build"
    settings_ = ["sql.form=view", "sql.table=everyone", "sql:duckdb.table=people", "sql.column.age=years", "sql.key=id"]
    flags = [word for setting in settings_ for word in ("--set", setting)]
    targets = "sql:duckdb,sql:sqlite"
    assert main(["compile", str(tmp_path / "program.json"), "--to", targets, "-o", str(out), *flags]) == 0
    assert 'FROM "people"' in (out / "sql-duckdb" / "model.sql").read_text()
    assert "FROM `everyone`" in (out / "sql-sqlite" / "model.sql").read_text()
    capsys.readouterr()
    command = ["check", str(tmp_path / "program.json"), str(out), "--json", str(tmp_path / "v.json")]
    assert main(command) == 3  # that `years` holds the feature `age` has to be stated
    assert main([*command, "--set", "sql.column.age=years"]) == 0
    verdict = json.loads((tmp_path / "v.json").read_text())
    assert verdict["targets"]["sql:duckdb"]["execution"]["different"] == 0


@pytest.mark.parametrize(
    "program", [THREE, hostile_program(("a", "{{ b }}"), ("{{ 7*7 }}", "{% raw %}"))], ids=["rules", "hostile"]
)
def test_dbt_accepts_the_model(program, tmp_path):
    dbt = shutil.which("dbt")
    if dbt is None:
        pytest.skip("dbt is not installed: pip install dbt-core dbt-duckdb")
    models = tmp_path / "models"
    models.mkdir()
    for name, content in emit(program, "sql:duckdb", options={"form": "dbt", "table": "people"}).files.items():
        (models / name).write_bytes(content)
    columns = ", ".join(f"{n}.5 AS {identifier(DIALECTS['duckdb'], name)}" for n, name in enumerate(program.features))
    (models / "people.sql").write_text(f"SELECT {columns}".replace("{", "{{ '{' }}"))
    (tmp_path / "dbt_project.yml").write_text("name: gbfl\nversion: '1.0'\nprofile: gbfl\n")
    (tmp_path / "profiles.yml").write_text("gbfl: {target: dev, outputs: {dev: {type: duckdb, path: ':memory:'}}}\n")
    for command in ("parse", "build"):
        flags = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path), "--no-send-anonymous-usage-stats"]
        run = subprocess.run([dbt, *flags[4:], command, *flags[:4]], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout
    assert not re.search("deprecat", run.stdout, re.IGNORECASE), run.stdout


def test_a_scorecard_that_gives_no_points_answers_by_its_bias():
    program = Program(("x",), ("a", "b"), (), Scorecard((1, 2), (), 0))
    assert "'b' AS \"label\"" in text_of(program, "duckdb")


def test_an_artifact_that_gives_the_label_alone_is_checked_by_it(tmp_path):
    artifact = emit(TREE, "sql:sqlite", "m", {"form": "expression"})
    (tmp_path / "m.sql").write_bytes(artifact.files["m.sql"])
    predictor = backend("sql:sqlite").load(tmp_path / "m.sql")
    verdict = compare(expectation(TREE), predictor)
    assert verdict.verdict == "equal"
    assert verdict.execution.rows > 100
    slipped = artifact.files["m.sql"].decode().replace(" >= ", " > ")
    assert slipped != artifact.files["m.sql"].decode()
    (tmp_path / "m.sql").write_text(slipped)
    assert compare(expectation(TREE), backend("sql:sqlite").load(tmp_path / "m.sql")).verdict == "different"


@pytest.mark.parametrize("option", ["table", "schema", "view", "key"])
@pytest.mark.parametrize("name", ["gbfl_rows", "GBFL_points"])
def test_a_name_of_our_own_stages_is_refused(option, name):
    for dialect in DIALECTS:
        with pytest.raises(BadInput, match=rf"{option}='{name}': names that begin with gbfl_ are reserved"):
            text_of(TREE, dialect, form="view", **{option: name})


def test_a_name_is_only_refused_where_it_is_used():
    texts = [text_of(TREE, "sqlite", form="select", **more) for more in ({"view": "gbfl_model"}, {})]
    named, plain = ([line for line in text.splitlines() if not line.startswith("--")] for text in texts)
    assert named == plain != []  # a query makes no view


SUBSTITUTED = {"spark": "${env:HOME}", "databricks": "${x}", "tsql": "$(x)", "oracle": "R&D", "snowflake": "&x"}


@pytest.mark.parametrize("dialect", SUBSTITUTED)
def test_what_a_client_would_substitute_is_refused_wherever_it_is(dialect):
    text = SUBSTITUTED[dialect]
    with_feature = replace(TREE, features=(text, "income"))
    for program, options in {
        "feature": (with_feature, {}),
        "mapped feature": (with_feature, {f"column.{text}": "age"}),  # the header names it
        "label": (replace(TREE, classes=("no", text)), {}),
        "reason": (with_reasons(TREE, {0: text}), {}),
        "column": (TREE, {"column.age": text}),
        "table": (TREE, {"table": text}),
        "schema": (TREE, {"schema": text}),
        "key": (TREE, {"key": text}),
        "view": (TREE, {"view": text, "form": "view", "table": "data"}),
    }.values():
        with pytest.raises(BadInput, match=r"clients of .* substitute"):
            text_of(program, dialect, **options)


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name not in SUBSTITUTED])
def test_other_engines_take_it_as_text(dialect):
    for text in SUBSTITUTED.values():
        assert text in text_of(replace(TREE, classes=("no", text)), dialect)


NORMALISED = {"NFC and NFD": ("\u00e9", "e\u0301"), "compatible": ("x\u00b2", "x2"), "case": ("\u00e9", "\u00c9")}


@pytest.mark.parametrize("names", NORMALISED.values(), ids=NORMALISED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_that_differ_only_in_normalisation_are_refused_or_proved(dialect, names):
    program = Program(names, TREE.classes, TREE.clauses, TREE.decision)
    if not DIALECTS[dialect].folds_case:
        files = emit(program, f"sql:{dialect}").files
        expected = "proved" if was_run(f"sql:{dialect}") else "read as equal"
        assert prove_artifact(program, f"sql:{dialect}", files).answer == expected
        return
    with pytest.raises(BadInput, match=rf"are one in {DIALECTS[dialect].engine}"):
        text_of(program, dialect)
    text_of(program, dialect, **{f"column.{names[0]}": "a"})
    with pytest.raises(BadInput, match=rf"are one in {DIALECTS[dialect].engine}"):
        text_of(TREE, dialect, **{"column.age": names[0], "key": names[1]})


@pytest.mark.parametrize("name", ["true", "FALSE"])
def test_a_sqlite_column_called_true_is_read(name):
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):  # an alias of this name cannot be read
        connection.execute(f"SELECT `{name}` FROM (SELECT 1.5 AS `{name}`)")
    connection.execute(f"CREATE TABLE data (`{name}` REAL, income REAL)")
    connection.execute("INSERT INTO data VALUES (30.0, 2e5)")
    program = replace(TREE, features=(name, "income"))
    with pytest.raises(BadInput, match="cannot read a key column called"):
        text_of(program, "sqlite", key=name)
    for options in ({}, {"types": "double"}):
        answer = connection.execute(text_of(program, "sqlite", **options).removesuffix("\n;\n")).fetchall()
        assert answer[0][-3:] == ("yes", 0.25, 0.75)


NO_POINTS = Program(TREE.features, TREE.classes, TREE.clauses, Scorecard((3, 1), ((0, 0), (0, 0)), 1))


@pytest.mark.parametrize("form", ["select", "expression"])
@pytest.mark.parametrize("dialect", EVERY)
def test_where_no_rule_gives_points_the_answer_is_a_constant(dialect, form):
    text = text_of(NO_POINTS, dialect, form=form, outputs="label,probabilities,score,reason")
    body = text.split("SELECT")[-1] if form == "select" else text
    assert re.search(r"'no' AS .label", body)
    assert "> " not in body.split("label")[0].split("\n")[-1]
    assert "EXP(" not in text


@pytest.mark.parametrize("types", ["any", "double"])
def test_the_header_says_of_which_type_the_columns_must_be(tmp_path, types):
    path = tmp_path / "model.sql"
    path.write_text(text_of(TREE, "duckdb", types=types), encoding="utf-8")
    assert read_script(path).header["types"] == types
