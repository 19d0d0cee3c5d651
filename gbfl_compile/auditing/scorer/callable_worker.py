"""Imports a Python scorer and calls it on rows. Runs alone: `callable_worker.py MODULE:FUNCTION FOLDER`.

Standard library only (numpy or pandas where the scorer wants a matrix or a table). In FOLDER it finds `order.json` and
`rows.bin`, or `rows.json` where features are words or dates; a line
of `answers.jsonl` is written for each batch, or each row of a batch that failed: its rows, then answers or an error.
Then it calls it again, in the batches that `order.json` has under "again": an answer must depend on its row alone.
A row is answered with a label, with a list of probabilities (one per class, the largest wins), or with a dict that has
"label", "probabilities" or "scores".
"""

from __future__ import annotations

import datetime
import importlib
import json
import math
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 1000


def main(what: str, folder: Path) -> None:
    """Import the scorer, call it, and save its answers."""
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as answers:

        def tell(form: dict[str, Any]) -> None:
            answers.write(json.dumps(form) + "\n")
            answers.flush()

        tell({"importing": what})
        try:
            scorer = _import_scorer(what)
        except Exception as error:  # whatever its module raises
            tell({"problem": f"{what} cannot be imported: {_one_line(error)}"})
            return
        _ask(scorer, order, _rows(order, folder), tell)
        tell({"done": True})


def _import_scorer(what: str) -> Callable[[Any], Any]:
    module, _, path = what.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{path} is not callable")
    return found  # type: ignore[no-any-return]


Row = tuple[Any, ...]


def _rows(order: dict[str, Any], folder: Path) -> list[Row]:
    """The rows: numbers, or values of the kinds that were ordered."""
    features = order["features"]
    if not features:
        return [()] * order["rows"]
    if "kinds" not in order:
        return list(struct.iter_unpack(f"={len(features)}d", (folder / "rows.bin").read_bytes()))
    written = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    return [tuple(_value(kind, value) for kind, value in zip(order["kinds"], row, strict=True)) for row in written]


def _value(kind: str, value: Any) -> Any:
    if value is None or kind not in ("date", "timestamp"):
        return value
    return (datetime.date if kind == "date" else datetime.datetime).fromisoformat(value)


def _ask(
    scorer: Callable[[Any], Any], order: dict[str, Any], rows: list[Row], tell: Callable[[dict[str, Any]], None]
) -> None:
    features, form, failed = order["features"], order["form"], set[int]()
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        tell({"start": start, "count": len(batch)})
        try:
            tell({"start": start, "answers": _answers(scorer(_as_input(batch, features, form)), len(batch))})
        except Exception:  # one row may have spoiled it for all: each alone
            for number, row in enumerate(batch, start):
                tell({"start": number, "count": 1})
                try:
                    tell({"start": number, "answers": _answers(scorer(_as_input([row], features, form)), 1)})
                except Exception as error:
                    failed.add(number)
                    tell({"start": number, "error": _one_line(error)})
    for again, listed in enumerate(order["again"]):
        if not (chosen := [row for row in listed if row not in failed]):
            continue
        tell({"again": again, "rows": chosen})
        try:
            answers = _answers(scorer(_as_input([rows[row] for row in chosen], features, form)), len(chosen))
            tell({"again": again, "rows": chosen, "answers": answers})
        except Exception as error:
            tell({"again": again, "rows": chosen, "error": _one_line(error)})


def _as_input(rows: list[Row], features: list[str], form: str) -> Any:
    if form == "matrix":
        import numpy as np

        return np.array(rows, dtype=np.float64).reshape(len(rows), len(features))
    if form == "frame":
        import pandas as pd

        columns = zip(*rows, strict=True) if rows and features else [()] * len(features)
        return pd.DataFrame(
            {n: list(map(_or_none, c)) for n, c in zip(features, columns, strict=True)}, range(len(rows))
        )
    return [{name: _or_none(value) for name, value in zip(features, row, strict=True)} for row in rows]


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _answers(answered: Any, count: int) -> list[dict[str, Any]]:
    listed = list(answered)
    if len(listed) != count:
        raise ValueError(f"{len(listed)} labels for {count} rows")
    return [_answer_form(answer) for answer in listed]


def _answer_form(answer: Any) -> dict[str, Any]:
    """A row's answer as JSON, which has one number for 1 and 1.0 and none for NaN."""
    if isinstance(answer, dict):
        form = _label_form(_plain(answer["label"])) if "label" in answer else {}
        return form | {key: _number_list(answer[key]) for key in ("probabilities", "scores") if key in answer}
    plain = _plain(answer)
    return {"probabilities": _number_list(plain)} if isinstance(plain, list | tuple) else _label_form(plain)


def _plain(value: Any) -> Any:
    """Values of numpy and similar libraries, as plain Python values."""
    return value.tolist() if hasattr(value, "tolist") else value.item() if hasattr(value, "item") else value


def _number_list(values: Any) -> list[float | int | None]:
    """Numbers, in the order of the classes; anything that is not a finite number becomes null."""
    plain = _plain(values)
    listed = [_plain(value) for value in plain] if isinstance(plain, list | tuple) else []
    return [value if _is_number(value) else None for value in listed]


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _label_form(label: Any) -> dict[str, Any]:
    if label is None or isinstance(label, str | bool | int) or (isinstance(label, float) and math.isfinite(label)):
        return {"label": label}
    return {"other": repr(label)[:200]}


def _one_line(error: Exception) -> str:
    message = (str(error).strip().splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {message}"


if __name__ == "__main__":
    sys.path.insert(0, "")  # the current folder, as `python -m` has it
    main(sys.argv[1], Path(sys.argv[2]))
