"""What a text is supposed to read and to answer. The caller says so: a text's own header is a comment, and not read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Kind, Label, Program, Scorecard
from gbfl_compile.ir.text import label_text

HEADER = "-- gbfl ["
CLAIMS = ("form", "table", "schema", "view", "keys")

Form: TypeAlias = Literal["expression", "select", "view", "table", "dbt", "macro"]


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """The table and columns a text should read, and the columns it should give."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table, in the order in which a function takes them."""
    outputs: tuple[tuple[str, str], ...]
    """Kind (label, probabilities, score, leaf, reason) and name of each answer, classes in order."""
    table: str = "data"
    schema: str = ""
    form: Form = "select"
    made: str = "model"
    """What a view, table or dbt model is called; a function's name begins with it."""
    keys: tuple[str, ...] = ()
    """Columns of the table that come out beside the answers, before them."""
    doubles: frozenset[str] = frozenset()
    """The columns that are known to be doubles. Every other number must be made a double before it is compared."""

    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""

    def kind(self, feature: int) -> Kind:
        """What the values of a feature are."""
        return self.kinds[feature] if self.kinds else "number"

    @property
    def functions(self) -> tuple[str, ...]:
        """`model` for the label, `model_p_yes` for a probability."""
        return tuple(self.made if kind == "label" else f"{self.made}_{name}" for kind, name in self.outputs)


def expected_of(program: Program, options: Mapping[str, str], name: str = "model") -> ExpectedText:
    """What an artifact of this program should read and answer, by the options it was asked for with.

    The options are those of the SQL targets (`form`, `table`, `schema`, `view`, `key`, `types`, `outputs`,
    `column.FEATURE`); what they mean is worked out here anew, not taken from the emitter.
    """
    form = options.get("form", "select")
    if form not in get_args(Form):
        raise BadInput(f"form={form!r} is not one of {', '.join(get_args(Form))}")
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    columns = tuple((f, options.get(f"column.{program.features[f]}", program.features[f])) for f in used)
    scored = isinstance(program.decision, Scorecard)
    usual = "label" if form in ("expression", "macro") else "label,probabilities" + (",score" if scored else "")
    kinds = [kind.strip() for kind in options.get("outputs", usual).split(",")]
    return ExpectedText(
        program.features,
        program.classes,
        columns,
        tuple(output for kind in kinds for output in _outputs_of(kind, program.classes)),
        options.get("table", "data"),
        options.get("schema", ""),
        cast(Form, form),
        options.get("view", name),
        tuple(key.strip() for key in options.get("key", "").split(",") if key.strip()),
        frozenset(column for f, column in columns if options.get("types") == "double" and program.kind(f) == "number"),
        kinds=program.kinds,
    )


def expected_from(text: str, program: Program, options: Mapping[str, str]) -> ExpectedText:
    """What an artifact should read and answer, where the caller states less than everything.

    The form, the table, the key columns and the choice of answers may come from the header: a proof is about whatever
    they are, and the verdict names them. Which column holds a feature, and that columns are doubles, only the caller
    may state: a header that exchanged two columns would otherwise vouch for itself.
    """
    claims = _claims(text)
    stated = {**{name: value for name, value in claims.items() if isinstance(value, str)}, **options}
    expected = expected_of(program, stated)
    keys = claims.get("keys")
    if "key" not in options and isinstance(keys, list) and all(isinstance(key, str) for key in keys):
        expected = replace(expected, keys=tuple(keys))
    return expected


def _claims(text: str) -> dict[str, Any]:
    """What the header says of these, as far as it is understood; the text itself is read in any case."""
    lines = [line for line in text.split("\n") if line.startswith(HEADER)]
    if len(lines) != 1:
        return {}
    try:
        header = {str(name): value for name, value in json.loads(lines[0][len(HEADER) - 1 :])}
        kinds = list(dict.fromkeys(str(kind) for kind, _ in header["outputs"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    claims: dict[str, Any] = {name: header[name] for name in CLAIMS if name in header}
    return {**claims, "outputs": ",".join(kinds)}


def _outputs_of(kind: str, classes: tuple[Label, ...]) -> list[tuple[str, str]]:
    prefix = {"probabilities": "p", "score": "score"}.get(kind)
    return [(kind, kind)] if prefix is None else [(kind, column) for column in class_columns(prefix, classes)]


def class_columns(prefix: str, classes: Sequence[Label]) -> list[str]:
    """The columns of the classes: called by their labels where these are plain words and differ, else by number."""
    texts = [label_text(label) for label in classes]
    plain = all(re.fullmatch(r"[A-Za-z0-9_]{1,40}", text) for text in texts)
    if not plain or len({text.casefold() for text in texts}) < len(texts):
        texts = [str(number) for number in range(len(texts))]
    return [f"{prefix}_{text}" for text in texts]
