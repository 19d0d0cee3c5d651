"""Reads SQL back, from its text alone: nothing is executed and no database is asked.

The text says what it is in its header, a comment. A view taken from a catalog has lost it, and then the caller says
which features, classes and columns there are (`Told`). Columns of the table are taken to be doubles: a condition on a
column of another type may mean something else, and that is for whoever knows the table to check.

    read_sql(text, "postgres")  ->  (Reading(...),)      one, or one for each way a value can be missing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gbfl_compile.check.readers.limits import limited
from gbfl_compile.check.readers.sql_dbt import refuse_other_schemas, without_templates
from gbfl_compile.check.readers.sql_decisions import Answers, decision
from gbfl_compile.check.readers.sql_engines import ENGINES, Engine
from gbfl_compile.check.readers.sql_header import Told as Told
from gbfl_compile.check.readers.sql_header import told_by_header as told_by_header
from gbfl_compile.check.readers.sql_missing import decisions
from gbfl_compile.check.readers.sql_names import folded_name, refuse_unclear_lines
from gbfl_compile.check.readers.sql_queries import UNNAMED
from gbfl_compile.check.readers.sql_statements import Asked, answer_columns
from gbfl_compile.check.readers.sql_values import Column, Other, Value
from gbfl_compile.check.readers.tables import one_file
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.errors import BadInput, CannotRun, GbflError

KINDS = ("label", "probabilities", "score", "leaf", "reason")


def read_sql(text: str, dialect: str, told: Told | None = None) -> tuple[Reading, ...]:
    """What the text answers: one reading, or several where NULL and NaN are not treated alike.

    The text is the program only if every one of them is.
    """
    engine = ENGINES.get(dialect)
    if engine is None:
        raise BadInput(f"no reader for the SQL of {dialect!r}: there is {', '.join(ENGINES)}")
    _check_for_sqlglot()
    try:
        with limited():
            return _readings(engine, text, told)
    except RecursionError:
        raise Unread("nested too deeply") from None
    except (GbflError, Unread):
        raise
    except Exception as error:  # whatever it trips over, it did not read it
        raise Unread(f"the reader gave up on it: {type(error).__name__}") from error


def _check_for_sqlglot() -> None:
    try:
        import sqlglot  # noqa: F401
    except ModuleNotFoundError:
        raise CannotRun("sqlglot is not installed: pip install 'gbfl-compile[sql]'") from None


def read_sql_files(dialect: str, files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .sql file; a dbt model's schema.yml may say names and tests, and nothing else."""
    name, content = one_file({name: content for name, content in files.items() if name != "schema.yml"}, ".sql")
    try:
        text = content.decode("utf-8")
        readings = read_sql(text, dialect)
    except UnicodeDecodeError:
        raise Unread(f"{name}: is not UTF-8") from None
    except Unread as error:
        raise Unread(f"{name}: {error}") from error.__cause__
    if "schema.yml" in files:
        refuse_other_schemas(files["schema.yml"])
    return readings


def _readings(engine: Engine, text: str, given: Told | None) -> tuple[Reading, ...]:
    told = told_by_header(text) if given is None else given
    if told.form == "dbt":
        text = without_templates(text)
    table = _table(engine, told)
    asked = Asked(told.form, told.columns, [name for _, name in told.outputs])
    found = answer_columns(engine, _without_header(text), asked, table)
    if given is None:
        _refuse_other_columns(engine, found, told, table)
    answers = _answers(engine, found, told)
    place = ", ".join(name for _, name in told.outputs)
    return tuple(
        Reading(
            told.features,
            told.classes,
            one,
            "float64",
            f"{place} ({way})" if way else place,
            told.digest,
        )
        for one, way in decisions(decision(engine, answers, told.classes))
    )


def other_columns(text: str, dialect: str, told: Told) -> tuple[str, ...]:
    """What comes out beside the answers that were told, and is not a column of the table passed on under its own name.

    A text that `read_sql` has read; nobody has looked at what these columns say.
    """
    engine = ENGINES[dialect]
    table = _table(engine, told)
    asked = Asked(told.form, told.columns, [name for _, name in told.outputs])
    answers = {folded_name(engine, name, quoted=True) for _, name in told.outputs}
    found = answer_columns(engine, _without_header(text), asked, table)
    return tuple(name for name, made in found if name not in answers and not _is_passed_on(name, made, table))


def _is_passed_on(name: str, made: Callable[[], Value], table: Callable[[str], Value]) -> bool:
    try:
        return bool(made() == table(name))
    except (Unread, RecursionError):
        return False


def _table(engine: Engine, told: Told) -> Callable[[str], Value]:
    """What a column of the table is, by its name as the engine takes it."""
    columns = _columns(engine, told)

    def column(name: str) -> Value:
        return Column(columns[name]) if name in columns else Other(name)

    return column


def _without_header(text: str) -> str:
    """The text after the comment lines it begins with: they can be longer than the query."""
    start = 0
    while text.startswith("-- ", start) and (end := text.find("\n", start)) >= 0:  # `--1` is no comment to MySQL
        start = end + 1
    refuse_unclear_lines(text[:start])
    return text[start:]


def _columns(engine: Engine, told: Told) -> dict[str, int]:
    """Column -> feature, names as the engine takes them."""
    made: dict[str, int] = {}
    for feature, name in told.columns:
        key = folded_name(engine, name, quoted=True)
        if not 0 <= feature < len(told.features) or key in made or feature in made.values():
            raise Unread(f"column {name!r} is not one column of one feature")
        made[key] = feature
    return made


def _refuse_other_columns(
    engine: Engine, found: Sequence[tuple[str, Callable[[], Value]]], told: Told, table: Callable[[str], Value]
) -> None:
    """What comes out beside the answers is a column of the table under its own name: nothing that passes for one."""
    wanted = {folded_name(engine, name, quoted=True) for name in told.functions or [name for _, name in told.outputs]}
    if len(found) == len(told.outputs) == 1 and found[0][0].startswith(UNNAMED):
        return
    for name, made in found:
        if name in wanted:
            continue
        if told.form == "macro":
            raise Unread(f"the function {name!r}, which its header does not name")
        if name.startswith(UNNAMED) or name.casefold() == "label" or made() != table(name):
            said = "without a name" if name.startswith(UNNAMED) else repr(name)
            raise Unread(f"the column {said}, which is no answer its header names and no column of the table")


def _answers(engine: Engine, found: Sequence[tuple[str, Callable[[], Value]]], told: Told) -> Answers:
    """The columns by what they say; one that is not asked for is not looked at."""
    by_name = dict(found)
    if len(by_name) != len(found):
        raise Unread("two columns have the same name")
    said: dict[str, list[Value]] = {kind: [] for kind in KINDS}
    alone = len(told.outputs) == len(found) == 1 and found[0][0].startswith(UNNAMED)
    for number, (kind, name) in enumerate(told.outputs):
        if kind not in said:
            raise Unread(f"an output of the kind {kind!r}")
        key = told.functions[number] if number < len(told.functions) else name
        made = found[0][1] if alone else by_name.get(folded_name(engine, key, quoted=True))
        if made is None:
            raise Unread(f"has no column {key!r}")
        said[kind].append(made())
    for kind in ("label", "leaf", "reason"):
        if len(said[kind]) > 1 or (kind == "label" and not said[kind]):
            raise Unread(f"{len(said[kind])} columns for the {kind}")
    return Answers(
        said["label"][0],
        tuple(said["probabilities"]),
        tuple(said["score"]),
        next(iter(said["leaf"]), None),
        next(iter(said["reason"]), None),
    )


SQL_READERS = {f"sql:{name}": partial(read_sql_files, name) for name in ENGINES}
