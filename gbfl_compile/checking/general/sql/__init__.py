"""Reads SQL from its text alone: nothing is executed, and no database is needed.

The text says what it is in its header, a comment. A view taken from a catalog has lost it, and then the caller says
which features, classes and columns there are (`Told`). Columns of the table are taken to be doubles: a condition on a
column of another type may mean something else, which someone who knows the table has to check.

    read_sql(text, "postgres")  ->  (Reading(...),)      one, or one for each way a value can be missing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.checking.general.sql.decisions import Answers, decision, where_it_answers
from gbfl_compile.checking.general.sql.engines import ENGINES, Engine
from gbfl_compile.checking.general.sql.frames import Reader, structure
from gbfl_compile.checking.general.sql.functions import Functions as Functions
from gbfl_compile.checking.general.sql.functions import KnownFunction as KnownFunction
from gbfl_compile.checking.general.sql.logic import TRUE, opposite
from gbfl_compile.checking.general.sql.missing import decisions
from gbfl_compile.checking.general.sql.parsing import folded_name, parse, refuse_unclear_lines
from gbfl_compile.checking.general.sql.queries import UNNAMED, query_relation
from gbfl_compile.checking.general.sql.relations import KnownTable as KnownTable
from gbfl_compile.checking.general.sql.relations import Tables as Tables
from gbfl_compile.checking.general.sql.relations import can_hold
from gbfl_compile.checking.general.sql.statements import Answer, answer_relation, answers_of
from gbfl_compile.checking.general.sql.statements import TextLayout as TextLayout
from gbfl_compile.checking.general.sql.statements import layout_in_header as layout_in_header
from gbfl_compile.checking.general.sql.values import USES, Column, Constant, Other, Uses, Value, Word
from gbfl_compile.checking.general.sql.words import UNKNOWN_TEXTS as UNKNOWN_TEXTS
from gbfl_compile.checking.reading.nodes import Reading, Unread, limit_work, one_file
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Label
from gbfl_compile.version import install_command

KINDS = ("label", "probabilities", "score", "leaf", "reason")


def read_sql(
    text: str, dialect: str, layout: TextLayout | None = None, labels: tuple[Label, ...] | None = None
) -> tuple[Reading, ...]:
    """What the text answers: one reading, or several where NULL and NaN are not treated alike.

    The text is the program only if every one of them is. `labels` is how it writes the classes of its header, in the
    header's order.
    """
    engine = ENGINES.get(dialect)
    if engine is None:
        raise BadInput(f"no reader for the SQL of {dialect!r}: there are readers for {', '.join(ENGINES)}")
    _check_for_sqlglot()
    try:
        with limit_work():
            return _readings(engine, text, layout, labels)
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
        raise CannotRun(f"sqlglot is not installed: {install_command('sql')}") from None


def read_sql_files(
    dialect: str, files: Mapping[str, bytes], labels: tuple[Label, ...] | None = None
) -> tuple[Reading, ...]:
    """The reading of the one .sql file; `labels` is how it should write the classes that its header names."""
    name, content = one_file(files, ".sql")
    try:
        text = content.decode("utf-8")
        return read_sql(text, dialect, labels=labels)
    except UnicodeDecodeError:
        raise Unread(f"{name}: is not UTF-8") from None
    except Unread as error:
        raise Unread(f"{name}: {error}") from error.__cause__


@dataclass(frozen=True, slots=True)
class DeployedText:
    """What was read of a deployed query, and what it does to rows."""

    readings: tuple[Reading, ...]
    others: tuple[str, ...]
    """What comes out beside the answers, and is not a column of a table passed on."""
    notes: tuple[str, ...]
    """What drops, doubles or merges rows."""
    unclear: bool
    """Whether a filter that is not understood may leave out rows by their features."""
    passes: bool
    """Whether every row of features gets an answer, as far as filters on features go."""
    uses: Uses


def read_deployed(text: str, dialect: str, layout: TextLayout) -> DeployedText:
    """A view or query as it is deployed: it may read other views, join tables, and leave rows out."""
    engine = replace(ENGINES[dialect], known_texts=layout.known_texts, zone=layout.zone)
    _check_for_sqlglot()
    try:
        return _read_once(engine, text, layout, constants=True)
    except Unread as error:
        first = error
    try:
        return _read_once(engine, text, layout, constants=False)
    except Unread:
        raise first from None


def _read_once(engine: Engine, text: str, layout: TextLayout, constants: bool) -> DeployedText:
    uses = Uses()
    token = USES.set(uses)
    try:
        with limit_work():
            return _read_deployed(engine, text, layout, constants, uses)
    except RecursionError:
        raise Unread("nested too deeply") from None
    except (GbflError, Unread):
        raise
    except Exception as error:  # whatever it trips over, it did not read it
        raise Unread(f"the reader gave up on it: {type(error).__name__}") from error
    finally:
        USES.reset(token)


def _read_deployed(engine: Engine, text: str, layout: TextLayout, constants: bool, uses: Uses) -> DeployedText:
    stated = {_structure(engine, text, names): feature for feature, text, names in layout.expressions}
    book = [list(texts) for texts in _own_texts(layout)]
    feature = _feature(engine, layout, book)
    reader = Reader(
        engine,
        _table(engine, layout, feature),
        query_relation,
        layout.tables,
        feature=feature,
        expressions=stated,
        functions=layout.functions,
        types=layout.types,
        constants=constants,
    )
    relation = answer_relation(engine, _without_header(text), _names(layout), reader)
    found = answers_of(relation)
    answers = _answers(engine, found, layout)
    wanted = {folded_name(engine, name, quoted=True) for _, name in layout.outputs}
    others = tuple(
        name for name, value in found if name not in wanted and not isinstance(value, Other | Column | Word | Constant)
    )
    holds = relation.holds()
    if can_hold(opposite(holds)) and layout.approved is not None:
        answers = where_it_answers(holds, answers, layout.elsewhere or layout.approved)
    else:
        holds = TRUE
    readings = _as_readings(engine, answers, layout)
    if layout.kinds:
        texts = tuple(map(tuple, book))
        readings = tuple(replace(reading, kinds=layout.kinds, book=texts) for reading in readings)
    return DeployedText(
        readings,
        others,
        (*relation.notes, *uses.keys.values(), *uses.constants.values()),
        relation.unclear,
        holds is TRUE,
        uses,
    )


def _own_texts(layout: TextLayout) -> tuple[tuple[str, ...], ...]:
    """The texts that the approved program mentions, which have the first codes."""
    return ((),) * len(layout.features) if layout.approved is None else codebook(layout.approved).texts


FLOATS = ("float", "real", "float4")


def _feature(engine: Engine, layout: TextLayout, book: list[list[str]]) -> Callable[[int], Value]:
    """What a feature is, by its kind."""

    def feature(place: int) -> Value:
        kind, declared = layout.kinds[place] if layout.kinds else "number", layout.types.get(place, "")
        if kind == "number":
            return Column(place, is_single=engine.narrows_literals and declared in FLOATS)
        return Word(place, kind, layout.features[place], declared, book[place], place in layout.exact)

    return feature


def _structure(engine: Engine, text: str, names: Mapping[str, str]) -> str:
    from sqlglot import parse_one

    node = parse(lambda: parse_one(text, read=engine.parsed_as))
    return structure(node, lambda column: names.get(column.name, column.name))


def _readings(
    engine: Engine, text: str, stated: TextLayout | None, labels: tuple[Label, ...] | None
) -> tuple[Reading, ...]:
    layout = layout_in_header(text) if stated is None else stated
    engine = replace(engine, known_texts=layout.known_texts, zone=layout.zone)
    if labels is not None:
        layout = replace(layout, classes=labels)
    if layout.form not in (None, "select", "view", "table"):
        raise Unread(f"the form {layout.form!r}, which is read only in its strict form")
    table = _table(engine, layout)
    found = answers_of(
        answer_relation(engine, _without_header(text), _names(layout), Reader(engine, table, query_relation))
    )
    if stated is None:
        _refuse_other_columns(engine, found, layout, table)
    return _as_readings(engine, _answers(engine, found, layout), layout)


def _as_readings(engine: Engine, answers: Answers, layout: TextLayout) -> tuple[Reading, ...]:
    place = ", ".join(name for _, name in layout.outputs)
    return tuple(
        Reading(
            layout.features,
            layout.classes,
            one,
            "float64",
            f"{place} ({way})" if way else place,
            layout.digest,
            nan_features=nan,
        )
        for one, way, nan in decisions(decision(engine, answers, layout.classes))
    )


def other_columns(text: str, dialect: str, layout: TextLayout) -> tuple[str, ...]:
    """Columns beside the answers that are not columns of the table passed on under their own names.

    A text that `read_sql` has read; what these columns say was not examined.
    """
    engine = ENGINES[dialect]
    table = _table(engine, layout)
    answers = {folded_name(engine, name, quoted=True) for _, name in layout.outputs}
    found = answers_of(
        answer_relation(engine, _without_header(text), _names(layout), Reader(engine, table, query_relation))
    )
    return tuple(name for name, value in found if name not in answers and value != table(name))


def _names(layout: TextLayout) -> list[str]:
    return [name for _, name in (*layout.columns, *layout.outputs)]


def _table(engine: Engine, layout: TextLayout, feature: Callable[[int], Value] | None = None) -> Callable[[str], Value]:
    """What a column of the table is, by its name as the engine takes it."""
    columns = _columns(engine, layout)
    feature = feature or _feature(engine, layout, [])

    def column(name: str) -> Value:
        return feature(columns[name]) if name in columns else Other(name)

    return column


def _without_header(text: str) -> str:
    """The text after the comment lines it begins with: they can be longer than the query."""
    start = 0
    while text.startswith("-- ", start) and (end := text.find("\n", start)) >= 0:  # `--1` is not a comment to MySQL
        start = end + 1
    refuse_unclear_lines(text[:start])
    return text[start:]


def _columns(engine: Engine, layout: TextLayout) -> dict[str, int]:
    """Column -> feature, names as the engine takes them."""
    made: dict[str, int] = {}
    for feature, name in layout.columns:
        key = folded_name(engine, name, quoted=True)
        if not 0 <= feature < len(layout.features) or key in made or feature in made.values():
            raise Unread(f"column {name!r} is not one column of one feature")
        made[key] = feature
    return made


def _refuse_other_columns(
    engine: Engine, found: Sequence[Answer], layout: TextLayout, table: Callable[[str], Value]
) -> None:
    """What comes out beside the answers is a column of the table under its own name: nothing that passes for one."""
    wanted = {folded_name(engine, name, quoted=True) for _, name in layout.outputs}
    for name, value in found:
        if name in wanted:
            continue
        if name.startswith(UNNAMED) or name.casefold() == "label" or value != table(name):
            words = "without a name" if name.startswith(UNNAMED) else repr(name)
            raise Unread(f"the column {words}, which is not an answer its header names and no column of the table")


def _answers(engine: Engine, found: Sequence[Answer], layout: TextLayout) -> Answers:
    """The columns by their role."""
    by_name = dict(found)
    if len(by_name) != len(found):
        raise Unread("two columns have the same name")
    columns_by_kind: dict[str, list[Value]] = {kind: [] for kind in KINDS}
    for kind, name in layout.outputs:
        if kind not in columns_by_kind:
            raise Unread(f"an output of the kind {kind!r}")
        value = by_name.get(folded_name(engine, name, quoted=True))
        if value is None:
            raise Unread(f"has no column {name!r}")
        if isinstance(value, Unread):
            raise value
        columns_by_kind[kind].append(value)
    for kind in ("label", "leaf", "reason"):
        if len(columns_by_kind[kind]) > 1 or (kind == "label" and not columns_by_kind[kind]):
            raise Unread(f"{len(columns_by_kind[kind])} columns for the {kind}")
    return Answers(
        columns_by_kind["label"][0],
        tuple(columns_by_kind["probabilities"]),
        tuple(columns_by_kind["score"]),
        next(iter(columns_by_kind["leaf"]), None),
        next(iter(columns_by_kind["reason"]), None),
    )
