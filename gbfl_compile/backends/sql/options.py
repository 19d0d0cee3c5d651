"""The user's options: form, names of tables and columns, outputs. Every name is checked before a line is written."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

from gbfl_compile.backends.base import Options
from gbfl_compile.backends.sql.conditions import refuse_kinds
from gbfl_compile.backends.sql.dialect import Dialect, Form
from gbfl_compile.backends.sql.text import identifier
from gbfl_compile.errors import BadInput, did_you_mean
from gbfl_compile.ir.nodes import Atom, Label, OneOf, Program, Scorecard
from gbfl_compile.ir.text import label_text

Kind: TypeAlias = Literal["label", "probabilities", "score", "leaf", "reason"]

ROW = "gbfl_row"
"""The row's number in tables that we insert: no stage has it, and it may be a key."""

RESERVED = "gbfl_"
"""How the names of our stages and inner columns begin. SQLite takes a table called like a stage for that stage."""

KNOWN = ("form", "table", "schema", "view", "key", "types", "outputs", "replace")
DEPLOYED = ("view", "table", "dbt")
"""Forms that are left in a database: none is written that would read a table called `data`, should there be one."""
CHOICES = {"form": get_args(Form), "types": ("any", "double"), "replace": ("no", "yes")}


@dataclass(frozen=True, slots=True)
class Output:
    """One output column: the label, a class's probability or score, the leaf, the reason."""

    kind: Kind
    name: str
    index: int = 0
    """The class, for probabilities and scores."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The options, checked."""

    dialect: Dialect
    form: Form
    table: str
    schema: str
    view: str
    """The name of the view, table, dbt model or function to create."""
    keys: tuple[str, ...]
    columns: Mapping[int, str]
    """Feature -> the column of the table, for the features in use."""
    names: Mapping[int, str]
    """Feature -> its name inside the query."""
    typed: bool
    """The columns are known to be doubles: no CAST."""
    replace: bool
    outputs: tuple[Output, ...]


def layout(dialect: Dialect, program: Program, name: str, options: Options, reasons: tuple[str, ...] = ()) -> Layout:
    """The options as a Layout, or BadInput that names the wrong one, or a reason that cannot be written."""
    where = f"target sql:{dialect.name}"
    mapped = {key.removeprefix("column."): value for key, value in options.items() if key.startswith("column.")}
    for key, value in options.items():
        if key not in KNOWN and not key.startswith("column."):
            have = f"it has {', '.join(KNOWN)} and column.FEATURE{did_you_mean(key, KNOWN)}"
            raise BadInput(f"{where}: unknown option {key!r}, {have}")
        if key in CHOICES and value not in CHOICES[key]:
            wrong = f"{key}={value!r} is not one of {', '.join(CHOICES[key])}"
            raise BadInput(f"{where}: {wrong}{did_you_mean(value, CHOICES[key])}")
    for feature in mapped:
        if feature not in program.features:
            raise BadInput(f"{where}: column.{feature}: the program has no such feature")
    refuse_kinds(dialect, program)
    form = cast(Form, options.get("form", "select"))
    if form in DEPLOYED and not options.get("table"):
        raise BadInput(f"{where}: form={form} reads a table of yours: name it with --set sql.table=TABLE, or table=")
    view = options.get("view", name)
    keys = tuple(key.strip() for key in options.get("key", "").split(",") if key.strip())
    if "key" not in options and form in DEPLOYED:
        keys = _known_key(dialect, program, options, mapped)
    tables = (("table", options.get("table", "data")), ("schema", options.get("schema", "")))
    created = "" if form in ("select", "expression") else view
    for option, text in (*tables, ("view", created), *(("key", key) for key in keys)):
        if text.casefold().startswith(RESERVED) and text != ROW:
            raise BadInput(f"{where}: {option}={text!r}: names that begin with {RESERVED} are reserved, choose another")
    _refuse_substituted(dialect, program, (*mapped.values(), *keys, view, *(text for _, text in tables), *reasons))
    used = sorted({atom.feature for atom in _atoms(program)})
    columns = {f: mapped.get(program.features[f], program.features[f]) for f in used}
    _refuse_ambiguous(dialect, keys, tuple(columns.values()))
    outputs = _outputs(dialect, program, options, form, (*keys, *columns.values()) if form == "expression" else keys)
    return Layout(
        dialect=dialect,
        form=form,
        table=_valid_name(dialect, options.get("table", "data")),
        schema=_valid_name(dialect, options["schema"]) if options.get("schema") else "",
        view=_valid_name(dialect, view),
        keys=keys,
        columns=columns,
        names=inner_names(dialect, columns, (*keys, *(output.name for output in outputs))),
        typed=options.get("types") == "double",
        replace=options.get("replace", "yes" if dialect.replaces_views else "no") == "yes",
        outputs=outputs,
    )


def _known_key(dialect: Dialect, program: Program, options: Options, mapped: Mapping[str, str]) -> tuple[str, ...]:
    """The key of the table that the program was mined from, if it is known and can be a column beside the answers.

    The metadata may come from anyone: the key is a column's name, quoted like any other, and is asked for only where
    nothing else in the query has a name like it.
    """
    place: Any = program.metadata.get("mining")
    for name in ("data", "keys"):
        place = place.get(name) if isinstance(place, dict) else None
    if not isinstance(place, list) or not place or not isinstance(place[0], str) or "," in place[0]:
        return ()
    key = place[0]
    others = {
        *program.features,
        *mapped.values(),
        *(output.name for output in _outputs(dialect, program, options, "view", ())),
    }
    folded = {unicodedata.normalize("NFKC", other).casefold() for other in others}
    is_odd = re.fullmatch(r"(?!gbfl_)[A-Za-z][A-Za-z0-9_ ]{0,39}", key, re.IGNORECASE) is None
    if is_odd or key.casefold() in folded or key.lower() in dialect.unusable_aliases:
        return ()
    return (key,)


def _valid_name(dialect: Dialect, name: str) -> str:
    identifier(dialect, name)
    return name


def fold(dialect: Dialect, name: str) -> str:
    """The part of a name by which this engine surely tells names apart."""
    if not dialect.folds_case:
        return name
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _refuse_ambiguous(dialect: Dialect, keys: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Refuse names that are, or may be, one column of this engine. A key may also be a feature."""
    for what, names in (("key columns", keys), ("columns", columns), ("columns", tuple({*keys, *columns}))):
        seen: dict[str, str] = {}
        for name in names:
            identifier(dialect, name)
            if what == "key columns" and name.lower() in dialect.unusable_aliases:
                raise BadInput(f"{dialect.engine} cannot read a key column called {name!r}: rename it in a view")
            if (folded := fold(dialect, name)) in seen:
                both = f"{seen[folded]!r} and {name!r}"
                raise BadInput(f"the {what} {both} are one in {dialect.engine}: map a feature with column.FEATURE=NAME")
            seen[folded] = name


def _refuse_substituted(dialect: Dialect, program: Program, texts: tuple[str, ...]) -> None:
    """Refuse what a client would replace anywhere in the file: the header has every feature, label and reason."""
    if not dialect.substituted:
        return
    labels = (label for label in program.classes if isinstance(label, str))
    listed = (text for atom in _atoms(program) if isinstance(atom, OneOf) for text in atom.values)
    for text in (*texts, *program.features, *labels, *listed):
        if dialect.substituted in text:
            raise BadInput(f"{text!r}: clients of {dialect.engine} substitute {dialect.substituted!r}, rename it")


def _atoms(program: Program) -> Iterator[Atom]:
    return (atom for clause in program.clauses for atom in clause.atoms)


def inner_names(dialect: Dialect, columns: Mapping[int, str], others: Sequence[str]) -> dict[int, str]:
    """A column's own name where it is plain and unique, `x7` otherwise.

    No two names of a query may be equal: in ClickHouse an alias hides a column of the same name.
    """
    taken = Counter(name.casefold() for name in (*columns.values(), *others))
    plain = re.compile(r"(?!gbfl_)[A-Za-z][A-Za-z0-9_]{0,39}", re.IGNORECASE)
    names = {}
    for feature, name in columns.items():
        numbered = f"x{feature}"
        while numbered in taken:
            numbered += "_"
        own = plain.fullmatch(name) and taken[name.casefold()] == 1 and name.lower() not in dialect.unusable_aliases
        names[feature] = name if own else numbered
    return names


def _outputs(
    dialect: Dialect, program: Program, options: Options, form: Form, beside: tuple[str, ...]
) -> tuple[Output, ...]:
    rules = isinstance(program.decision, Scorecard)
    usual = "label" if form in ("expression", "macro") else "label,probabilities" + (",score" if rules else "")
    kinds = [kind.strip() for kind in options.get("outputs", usual).split(",")]
    allowed = ("label", "probabilities", "score", "reason") if rules else ("label", "probabilities", "leaf", "reason")
    outputs: list[Output] = []
    for kind in kinds:
        if kind not in allowed:
            what = "a rule set" if rules else "a tree"
            raise BadInput(f"target sql:{dialect.name}: outputs: {what} has {', '.join(allowed)}, not {kind!r}")
        if kind in ("probabilities", "score"):
            names = answer_columns("p" if kind == "probabilities" else "score", program.classes)
            outputs += [Output(cast(Kind, kind), name, index) for index, name in enumerate(names)]
        else:
            outputs.append(Output(cast(Kind, kind), kind))
    taken = [fold(dialect, name) for name in beside]
    for output in outputs if len(outputs) > 1 or form != "expression" else ():
        if fold(dialect, output.name) in taken:
            raise BadInput(f"the column {output.name!r} has the name of an output: rename it in a view")
    if len({output.name for output in outputs}) < len(outputs):
        raise BadInput(f"target sql:{dialect.name}: outputs names one of {', '.join(kinds)} twice")
    return tuple(outputs)


def answer_columns(prefix: str, classes: tuple[Label, ...]) -> list[str]:
    """One column per class: `p_no`, `p_yes`; `p_0`, `p_1` where a label is not a plain word or two share a column."""
    texts = [label_text(label) for label in classes]
    plain = all(re.fullmatch(r"[A-Za-z0-9_]{1,40}", text) for text in texts)
    if not plain or len({text.casefold() for text in texts}) < len(texts):
        texts = [str(index) for index in range(len(classes))]
    return [f"{prefix}_{text}" for text in texts]
