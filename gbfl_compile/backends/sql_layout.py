"""What the user chose: form, names of tables and columns, outputs. Every name is checked before a line is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from gbfl_compile.backends.base import Options
from gbfl_compile.backends.sql_dialects import Dialect, Form
from gbfl_compile.backends.sql_text import identifier
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Label, Program, Scorecard
from gbfl_compile.ir.readable import label_text

Kind: TypeAlias = Literal["label", "probabilities", "score", "leaf", "reason"]

KNOWN = ("form", "table", "schema", "view", "key", "types", "outputs", "replace")
CHOICES = {"form": get_args(Form), "types": ("any", "double"), "replace": ("no", "yes")}


@dataclass(frozen=True, slots=True)
class Output:
    """One column that comes out: the label, a class's probability or score, the leaf, the reason."""

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
    """What is made: the name of a view, table, dbt model or function."""
    keys: tuple[str, ...]
    columns: Mapping[int, str]
    """Feature -> the column of the table, for the features the rules ask."""
    names: Mapping[int, str]
    """Feature -> what it is called inside the query."""
    typed: bool
    """The columns are known to be doubles: no CAST."""
    replace: bool
    outputs: tuple[Output, ...]


def layout(dialect: Dialect, program: Program, name: str, options: Options) -> Layout:
    """The options as a Layout, or BadInput that names the one that is wrong."""
    where = f"target sql:{dialect.name}"
    mapped = {key.removeprefix("column."): value for key, value in options.items() if key.startswith("column.")}
    for key, value in options.items():
        if key not in KNOWN and not key.startswith("column."):
            raise BadInput(f"{where}: unknown option {key!r}, it has {', '.join(KNOWN)} and column.FEATURE")
        if key in CHOICES and value not in CHOICES[key]:
            raise BadInput(f"{where}: {key}={value!r} is not one of {', '.join(CHOICES[key])}")
    for feature in mapped:
        if feature not in program.features:
            raise BadInput(f"{where}: column.{feature}: the program has no such feature")
    form = cast(Form, options.get("form", "select"))
    keys = tuple(key.strip() for key in options.get("key", "").split(",") if key.strip())
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    columns = {f: mapped.get(program.features[f], program.features[f]) for f in used}
    outputs = _outputs(dialect, program, options, form, (*keys, *columns.values()) if form == "expression" else keys)
    return Layout(
        dialect=dialect,
        form=form,
        table=_checked(dialect, options.get("table", "data")),
        schema=_checked(dialect, options["schema"]) if options.get("schema") else "",
        view=_checked(dialect, options.get("view", name)),
        keys=_distinct(dialect, keys, "key columns"),
        columns=dict(zip(used, _distinct(dialect, tuple(columns.values()), "columns"), strict=True)),
        names=inner_names(columns, (*keys, *(output.name for output in outputs))),
        typed=options.get("types") == "double",
        replace=options.get("replace") == "yes",
        outputs=outputs,
    )


def _checked(dialect: Dialect, name: str) -> str:
    identifier(dialect, name)
    return name


def folded(dialect: Dialect, name: str) -> str:
    """What two names must differ in to be two names."""
    return name.casefold() if dialect.folds_case else name


def _distinct(dialect: Dialect, names: tuple[str, ...], what: str) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for name in names:
        identifier(dialect, name)
        if (key := folded(dialect, name)) in seen:
            both = f"{seen[key]!r} and {name!r}"
            raise BadInput(f"the {what} {both} are one in {dialect.engine}: map a feature with column.FEATURE=NAME")
        seen[key] = name
    return names


def inner_names(columns: Mapping[int, str], others: Sequence[str]) -> dict[int, str]:
    """A column's own name where it is plain and nothing else is called so, `x7` where not.

    No two names of a query may meet: ClickHouse lets an alias stand before a column of the same name.
    """
    taken = Counter(name.casefold() for name in (*columns.values(), *others))
    plain = re.compile(r"(?!gbfl_)[A-Za-z][A-Za-z0-9_]{0,39}", re.IGNORECASE)
    names = {}
    for feature, name in columns.items():
        made = f"x{feature}"
        while made in taken:
            made += "_"
        names[feature] = name if plain.fullmatch(name) and taken[name.casefold()] == 1 else made
    return names


def _outputs(
    dialect: Dialect, program: Program, options: Options, form: Form, beside: tuple[str, ...]
) -> tuple[Output, ...]:
    rules = isinstance(program.decision, Scorecard)
    usual = "label" if form in ("expression", "macro") else "label,probabilities" + (",score" if rules else "")
    asked = [kind.strip() for kind in options.get("outputs", usual).split(",")]
    allowed = ("label", "probabilities", "score", "reason") if rules else ("label", "probabilities", "leaf", "reason")
    made: list[Output] = []
    for kind in asked:
        if kind not in allowed:
            what = "a rule set" if rules else "a tree"
            raise BadInput(f"target sql:{dialect.name}: outputs: {what} has {', '.join(allowed)}, not {kind!r}")
        if kind in ("probabilities", "score"):
            names = class_names("p" if kind == "probabilities" else "score", program.classes)
            made += [Output(cast(Kind, kind), name, index) for index, name in enumerate(names)]
        else:
            made.append(Output(cast(Kind, kind), kind))
    taken = [folded(dialect, name) for name in beside]
    for output in made if len(made) > 1 or form != "expression" else ():
        if folded(dialect, output.name) in taken:
            raise BadInput(f"the column {output.name!r} has the name of an output: rename it in a view of its own")
    if len({output.name for output in made}) < len(made):
        raise BadInput(f"target sql:{dialect.name}: outputs names one of {', '.join(asked)} twice")
    return tuple(made)


def class_names(prefix: str, classes: tuple[Label, ...]) -> list[str]:
    """`p_no`, `p_yes`; `p_0`, `p_1` where a label is not a plain word or two would be one column."""
    texts = [label_text(label) for label in classes]
    plain = all(re.fullmatch(r"[A-Za-z0-9_]{1,40}", text) for text in texts)
    if not plain or len({text.casefold() for text in texts}) < len(texts):
        texts = [str(index) for index in range(len(classes))]
    return [f"{prefix}_{text}" for text in texts]
