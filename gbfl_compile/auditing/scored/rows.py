"""Single rows of a scored table: which row has which key, and a file of all rows that differ."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gbfl_compile.auditing.scored.source import Batch
from gbfl_compile.files.atomic import whole_file

KEYS_SHOWN = 5


@dataclass(slots=True)
class KeyCount:
    """The keys of all rows so far. They are kept: a key that comes twice may come a million rows apart."""

    names: tuple[str, ...]
    parts: list[Any] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Keep the keys of a batch."""
        if self.names:
            self.parts.append(batch.keys)

    def summary(self) -> dict[str, Any] | None:
        """How many keys are missing or occur more than once, and the first of them; None without a key."""
        if not self.names:
            return None
        import pandas as pd

        keys = pd.concat(self.parts, ignore_index=True) if self.parts else pd.DataFrame(columns=list(self.names))
        missing = keys.isna().any(axis=1)
        repeated = keys[~missing & keys.duplicated(keep=False)]
        distinct = repeated.drop_duplicates()
        return {
            "columns": list(self.names),
            "missing": int(missing.sum()),
            "duplicated": len(distinct),
            "rows_of_duplicated": len(repeated),
            "first_duplicated": [key_text(row) for row in distinct.head(KEYS_SHOWN).to_dict("records")],
        }


def key_problem(summary: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the keys, in words."""
    if summary is None:
        return None
    parts = []
    if summary["missing"]:
        parts.append(f"{summary['missing']:,} rows have no key")
    if summary["duplicated"]:
        example = f", for example {summary['first_duplicated'][0]}"
        parts.append(f"{summary['duplicated']:,} keys occur more than once{example}")
    return "; ".join(parts) or None


def key_at(batch: Batch, place: int) -> dict[str, Any]:
    """The key of a row."""
    row: dict[str, Any] = batch.keys.iloc[place].to_dict()
    return {name: None if value is None or value != value else str(value) for name, value in row.items()}


def key_text(key: Mapping[str, Any]) -> str:
    """A key as people write it: `id = 17`."""
    return ", ".join(f"{name} = {value}" for name, value in key.items())


@dataclass(slots=True)
class DifferenceFile:
    """A CSV file of all differing rows; without a path nothing is written."""

    writer: Any = None
    header: tuple[str, ...] = ()

    def add(self, form: Mapping[str, Any]) -> None:
        """One row, in the form that the report shows it."""
        if self.writer is None:
            return
        flat = {**form.get("key", {}), "row_number": form["row_number"], **form["row"]}
        flat |= {"approved_label": form["approved"], "deployed_label": form["deployed"]}
        self.writer.writerow(["" if flat.get(name) is None else flat[name] for name in self.header])


@contextmanager
def difference_file(path: Path | None, keys: tuple[str, ...], features: tuple[str, ...]) -> Iterator[DifferenceFile]:
    """The file is there, whole, when the block has ended well."""
    if path is None:
        yield DifferenceFile()
        return
    header = (*keys, "row_number", *features, "approved_label", "deployed_label")
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        yield DifferenceFile(writer, header)
