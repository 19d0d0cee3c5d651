"""Reads SQL back, from its text alone: nothing is executed and no database is asked.

The text says what it is in its header, a comment. A view taken from a catalog has lost it, and then the caller says
which features, classes and columns there are (`Told`). Columns of the table are taken to be doubles: a condition on a
column of another type may mean something else, and that is for whoever knows the table to check.

    read_sql(text, "postgres")  ->  (Reading(...),)      one, or one for each way a value can be missing
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gbfl_compile.check.readers.limits import limited
from gbfl_compile.check.readers.sql_decisions import Answers, decision
from gbfl_compile.check.readers.sql_engines import ENGINES, Engine
from gbfl_compile.check.readers.sql_missing import decisions
from gbfl_compile.check.readers.sql_queries import UNNAMED, folded_name
from gbfl_compile.check.readers.sql_statements import answer_columns, without_templates
from gbfl_compile.check.readers.sql_values import Column, Other, Value
from gbfl_compile.check.readers.tables import class_labels, feature_names, one_file
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Label

OPENING = "-- gbfl ["
KINDS = ("label", "probabilities", "score", "leaf", "reason")


@dataclass(frozen=True, slots=True)
class Told:
    """What the text itself does not say: which columns are features and which are answers."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table, in the order in which a function takes them."""
    outputs: tuple[tuple[str, str], ...]
    """Kind (label, probabilities, score, leaf, reason) and name of each column that comes out, classes in order."""
    form: str | None = None
    """expression and dbt are read in their own way; everything else says itself what it is."""
    digest: str | None = None
    functions: tuple[str, ...] = ()


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
            return _readings(engine, text, told if told is not None else told_by_header(text))
    except RecursionError:
        raise Unread("nested too deeply") from None


def _check_for_sqlglot() -> None:
    try:
        import sqlglot  # noqa: F401
    except ModuleNotFoundError:
        raise CannotRun("sqlglot is not installed: pip install 'gbfl-compile[sql]'") from None


def read_sql_files(dialect: str, files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .sql file; a dbt model's schema.yml says nothing of its answers."""
    name, content = one_file({name: content for name, content in files.items() if name != "schema.yml"}, ".sql")
    try:
        text = content.decode("utf-8")
        return read_sql(text, dialect)
    except UnicodeDecodeError:
        raise Unread(f"{name}: is not UTF-8") from None
    except Unread as error:
        raise Unread(f"{name}: {error}") from None


def told_by_header(text: str) -> Told:
    """What the header says."""
    lines = [line for line in text.split("\n") if line.startswith(OPENING)]
    if len(lines) != 1:
        raise Unread("has no header, or more than one: say which features, classes and columns there are")
    try:
        pairs = json.loads(lines[0][len(OPENING) - 1 :])
        found: dict[str, Any] = {str(key): value for key, value in pairs}
        if len(found) != len(pairs):
            raise Unread("its header says something twice")
        return Told(
            feature_names(found["features"]),
            class_labels(found["classes"]),
            tuple((_place(feature), _text(name)) for feature, name in found["columns"]),
            tuple((_text(kind), _text(name)) for kind, name in found["outputs"]),
            _text(found["form"]),
            _text(found["digest"]),
            tuple(_text(name) for name in found["functions"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unread(f"its header is not understood: {error}") from None


def _place(found: object) -> int:
    if type(found) is not int:
        raise Unread(f"its header has {found!r} where a feature's number belongs")
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise Unread(f"its header has {found!r} where a text belongs")
    return found


def _readings(engine: Engine, text: str, told: Told) -> tuple[Reading, ...]:
    if told.form == "dbt":
        text = without_templates(text)
    columns = _columns(engine, told)

    def table(name: str) -> Value:
        return Column(columns[name]) if name in columns else Other(name)

    found = answer_columns(engine, _without_header(text), told.form, [feature for feature, _ in told.columns], table)
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


def _without_header(text: str) -> str:
    """The text after the comment lines it begins with: they can be longer than the query."""
    start = 0
    while text.startswith("--", start) and (end := text.find("\n", start)) >= 0:
        start = end + 1
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
