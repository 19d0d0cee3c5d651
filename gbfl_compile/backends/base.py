"""What a target is: a Backend emits an Artifact from a Program and loads one as a Predictor.

Templates are rendered here: names and labels are passed only as values, so none of them can become template code.
Of a table with words, dates or texts that mean missing, each column is read as the kind that the artifact takes.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gbfl_compile.errors import BadInput, did_you_mean
from gbfl_compile.files import resource_folder
from gbfl_compile.files.atomic import refuse_leading_out
from gbfl_compile.ir.kinds import Codebook, Columns, decode_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.kinds import Value
    from gbfl_compile.ir.nodes import Kind, Label, Program

    Vector: TypeAlias = NDArray[np.float64]

Options: TypeAlias = Mapping[str, str]
"""A target's settings, as `--set c.dtype=float32` gives them: names and texts."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """The output of a target: a few files that belong in one folder, and the digest of their source."""

    target: str
    name: str
    files: Mapping[str, bytes]
    digest: str
    options: Options = field(default_factory=dict)
    """The settings it was emitted with: a check expects an artifact with these."""


@dataclass(frozen=True, slots=True)
class ByColumn:
    """How an artifact scores columns in place, from any thread."""

    asks: tuple[bool, ...]
    """Which features it reads: the columns of the others may be None."""
    answer: Callable[[Sequence[Vector | None], int], tuple[NDArray[np.int32], Sequence[Vector]]]
    """Columns of doubles and their length -> a class number per row, and a column of probabilities per class."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A loaded artifact. `answer` takes a float64 matrix (NaN is missing), columns in the order of `features`."""

    target: str
    engine: str
    """What runs it, with its version, as every verdict shows it."""
    digest: str
    """The digest in the artifact itself."""
    features: tuple[str, ...]
    classes: tuple[Label, ...]
    answer: Callable[[Matrix], Answers]
    dtype: Literal["float64", "float32"] = "float64"
    """What a row's values are rounded to first. A float32 artifact equals its source on every float32 row."""
    holds_infinity: bool = True
    """Whether it accepts infinities. If not (MariaDB), the largest doubles replace them."""
    other_ways: Mapping[str, Callable[[Matrix], Answers]] = field(default_factory=dict)
    """Other code of the same artifact that answers (C has single rows and columns): a check runs it as well."""
    threads: bool = False
    """Whether `answer` may be called from several threads at once."""
    columns: ByColumn | None = None
    """A faster entry point, if there is one, with the same answers as `answer`."""
    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""
    asks: tuple[bool, ...] = ()
    """Which features it uses, where that is known: a table need not have the others. `()` is all."""
    book: Codebook | None = None
    """Where `answer` takes words as codes: which text each code means."""
    answer_rows: Callable[[Sequence[Sequence[Value]]], Answers] | None = None
    """Where features are words or dates: rows of Python values -> answers. `answer` is for numbers alone."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a target can be emitted and run here. A reason names what is missing and how to get it."""

    engine: str
    cannot_emit: str | None = None
    cannot_run: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """One target: how to write a program in its language, and how to run it."""

    target: str
    summary: str
    extension: str
    emit: Callable[[Program, str, Options], Artifact]
    load: Callable[[Path], Predictor]
    available: Callable[[], Availability]
    emits_bands: bool = False
    """Whether it writes the probabilities of a rule set that has bands; where not, such a program is refused."""


def take_options(target: str, options: Options, known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The options, checked against the `known` names and their allowed values (the first one is the default)."""
    for key, value in options.items():
        if key not in known:
            have = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise BadInput(f"target {target}: unknown option {key!r}, {have}{did_you_mean(key, known)}")
        if value not in known[key]:
            wrong = f"{key}={value!r} is not one of {', '.join(known[key])}"
            raise BadInput(f"target {target}: {wrong}{did_you_mean(value, known[key])}")
    return {key: options.get(key, values[0]) for key, values in known.items()}


LONGEST_ARTIFACT_NAME = 64


def artifact_name(name: str) -> str:
    """The name itself, if it can name a file, a Python module and a C prefix; otherwise it is refused."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or len(name) > LONGEST_ARTIFACT_NAME:
        near = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        such_as = f", such as {near}" if near and not near[0].isdigit() and len(near) <= LONGEST_ARTIFACT_NAME else ""
        raise BadInput(
            f"the name {name!r}: use letters, digits and _, {LONGEST_ARTIFACT_NAME} at most, no digit first{such_as}"
        )
    if keyword.iskeyword(name):
        raise BadInput(f"the name {name!r} is a Python keyword: choose another")
    return name


def only_file(folder: Path, extension: str, name: str | None = None) -> Path:
    """The only file with this ending in an artifact's folder, or the one called `name`."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: there is no such folder")
    paths = sorted(path for path in folder.glob(f"*{extension}") if path.is_file() and path.name[0] != ".")
    if name is not None:
        paths = [path for path in paths if path.name == f"{name}{extension}"]
    if not paths:
        raise BadInput(f"{folder}: has no {name or '*'}{extension} file")
    if len(paths) > 1:
        raise BadInput(f"{folder}: has {len(paths)} {extension} files, choose one with --name")
    refuse_leading_out(paths[0], folder)
    return paths[0]


def render(name: str, values: Mapping[str, Any]) -> bytes:
    """The template `name` filled in, as UTF-8 with line feeds."""
    text: str = _environment().get_template(name).render(**values)
    return text.encode("utf-8")


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(resource_folder("templates"), encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is code; each backend quotes per target
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )


def as_frame(batch: Any, names: Sequence[str]) -> Any:
    """A batch of a file as a pandas table of these columns. An empty field of a CSV file is not a text."""
    import pandas as pd

    if hasattr(batch, "schema"):
        from gbfl_compile.tables.batches import decode

        return pd.DataFrame({name: decode(batch.column(name)).to_pandas() for name in names})
    return batch[list(names)].where(batch[list(names)] != "")


def answer_frame(
    predictor: Predictor,
    frame: Any,
    where: str,
    marks: Sequence[str] | None = None,
    places: NDArray[np.int64] | None = None,
) -> Answers:
    """What the artifact answers for the rows of a pandas table; a feature that it does not use may be absent.

    `marks` are the texts that mean a missing number or date; `places` gives each row's place in its file.
    """
    import numpy as np

    from gbfl_compile.tables.kinds import encode_rows, known_texts, marks_of

    number: Kind = "number"
    kinds: tuple[Kind, ...] = predictor.kinds or (number,) * len(predictor.features)
    asks = predictor.asks or (True,) * len(kinds)
    used = [feature for feature, is_asked in enumerate(asks) if is_asked]
    codes: Any = predictor.book
    if codes is None:
        codes = Codebook(
            tuple(
                known_texts(frame[name]) if kind == "category" and is_asked else ()
                for name, kind, is_asked in zip(predictor.features, kinds, asks, strict=True)
            )
        )
    columns = Columns(
        tuple(predictor.features[feature] for feature in used),
        tuple(kinds[feature] for feature in used),
        Codebook(tuple(codes.texts[feature] for feature in used)),
        ((),) * len(used),
        (False,) * len(used),
    )
    matrix = np.full((len(frame), len(kinds)), np.nan)
    if used:
        matrix[:, used] = encode_rows(frame, columns, where, marks_of(marks or None), places)
    if predictor.book is not None or not predictor.kinds:
        return predictor.answer(matrix)
    if predictor.answer_rows is None:
        raise BadInput(f"{predictor.target}: the artifact takes words or dates and cannot be called with them yet")
    rows = [
        [decode_value(kind, value, texts) for kind, value, texts in zip(kinds, row, codes.texts, strict=True)]
        for row in matrix.tolist()
    ]
    return predictor.answer_rows(rows)
