"""The batch functions of emitted C: which columns they take, and what their kernels make of a row.

ifelse   the function of one row, called row after row
select   a loop without branches over a block of rows
bits     bins and bit masks (c_bits)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gbfl_compile.check.readers.c_artifact import Artifact, hole, recognise
from gbfl_compile.check.readers.c_batch_forms import (
    GATHER,
    SELECT_SUMS,
    SUMS,
    blocks_of_answers,
    blocks_of_sums,
    row_by_row,
)
from gbfl_compile.check.readers.c_bits import bits_scored
from gbfl_compile.check.readers.c_expressions import Locals, Name, Setting
from gbfl_compile.check.readers.c_match import Hole
from gbfl_compile.check.readers.c_rules import followed
from gbfl_compile.check.readers.c_source import line_of, refuse
from gbfl_compile.check.readers.c_values import (
    Columns,
    Feature,
    Known,
    Place,
    Plus,
    Pointer,
    Real,
    Row,
    Unclear,
    bounds,
    resolved,
    terms,
)
from gbfl_compile.check.readers.choices import FALL, Choice
from gbfl_compile.check.reading import Condition, Decided, Scored, Unread

Slots = tuple[int | None, ...]
"""The feature at each place of an array, None where there is none."""

INT32 = (-(2**31), 2**31 - 1)
SUM = 2**63
PURE = {"ID", "Constant", "BinaryOp", "Cast", "Typename", "TypeDecl", "IdentifierType", "UnaryOp", "ExprList"}
"""What the arguments of a prefetch may be made of."""


def setting_of(artifact: Artifact) -> Setting:
    """What holds for all rules of an artifact."""
    return Setting(artifact.name, artifact.real, artifact.constants)


def every_feature(artifact: Artifact) -> Slots:
    """A row as the caller gives it."""
    return tuple(range(artifact.constant("FEATURES")))


def straight(setting: Setting, found: Hole, given: Mapping[Name, Known]) -> Locals:
    """The locals after the statements in a hole, which do not return."""
    value, known = followed(setting, found, given)
    if value is not FALL:
        refuse(line_of(found.nodes[0]), "returns where it should go on")
    return known


def filled_rows(artifact: Artifact, verb: str) -> Slots:
    """Which feature stands where in the row that a function by columns fills for the function of one row."""
    before, filling = hole(artifact, f"{verb}_unused"), hole(artifact, f"{verb}_fill")
    called = filling.called
    setting = replace(setting_of(artifact), counters=frozenset({"i"}), types={called["row"]: artifact.real})
    columns: Locals = {called["columns"]: Columns(every_feature(artifact)), called["i"]: Place(frozenset({"i"}))}
    straight(setting, before, {})
    cells: Locals = {(called["row"], f): Real(0.0) for f in every_feature(artifact) if f is not None}
    known = straight(setting, filling, {**columns, **cells})
    slots: list[int | None] = []
    for cell in cells:
        match known[cell]:
            case Feature(feature):
                slots.append(feature)
            case Real(0.0):
                slots.append(None)
            case _:
                raise Unread(f"{artifact.name}_{verb}_columns fills its row with something else")
    return tuple(slots)


def block_slots(artifact: Artifact) -> dict[str, Slots]:
    """Which feature each column of a block is: as rows are gathered, and as columns are picked."""
    count = artifact.found.numbers["slots"]
    return {"rows": _gathered(artifact, count), "columns": _readable(artifact, _picked(artifact, count))}


def _readable(artifact: Artifact, slots: Slots) -> Slots:
    """A column that the caller need not give is not read."""
    if unread := [feature for feature in slots if feature is not None and not artifact.used[feature]]:
        raise Unread(f"reads the column of feature {unread[0]}, which {artifact.name}_uses denies")
    return slots


def _gathered(artifact: Artifact, count: int) -> Slots:
    found = hole(artifact, "gather")
    here = Place(frozenset({"i"}))
    block = found.called["block"]
    nodes = [node for node in found.nodes if not _is_prefetch(node)]
    cells: Locals = {(block, slot, here): Unclear() for slot in range(count)}
    given: Locals = {found.called["x"]: Row(every_feature(artifact)), found.called["i"]: here}
    setting = replace(setting_of(artifact), types={block: artifact.real})
    known = straight(setting, Hole(nodes, found.called), {**given, **cells})
    return _features([known[cell] for cell in cells])


def _is_prefetch(node: Any) -> bool:
    """A hint to the processor: it reads nothing, so it may say what it likes, as long as it does nothing."""
    if type(node).__name__ != "FuncCall" or getattr(node.name, "name", "") != "GBFL_PREFETCH":
        return False
    waiting = [node.args]
    while waiting:
        inner = waiting.pop()
        kind = type(inner).__name__
        if kind not in PURE or (kind in ("UnaryOp", "BinaryOp") and inner.op not in ("sizeof", "+", "*")):
            refuse(line_of(node), "a prefetch that is not understood")
        if kind == "UnaryOp" and inner.op != "sizeof":
            refuse(line_of(node), "a prefetch that reads something")
        waiting += [] if kind == "UnaryOp" else [child for _, child in inner.children()]
    return True


def _picked(artifact: Artifact, count: int) -> Slots:
    found = hole(artifact, "pick")
    picked, columns = found.called["picked"], found.called["columns"]
    cells: Locals = {(picked, slot): Unclear() for slot in range(count)}
    given: Locals = {columns: Columns(every_feature(artifact))}
    setting = replace(setting_of(artifact), types={picked: f"{artifact.real} *"})
    known = straight(setting, found, {**given, **cells})
    return _features([known[cell] for cell in cells])


def _features(found: Sequence[Known]) -> Slots:
    slots: list[int | None] = []
    for value in found:
        match value:
            case Feature(feature):
                slots.append(feature)
            case Pointer(feature, counters) if not counters:
                slots.append(feature)
            case _:
                slots.append(None)
    return tuple(slots)


def _kernel_locals(artifact: Artifact, which: str, row: str, slots: Slots) -> tuple[Setting, Locals]:
    """What a kernel's loop starts with: its columns, and where in them it is."""
    start, turn = hole(artifact, f"{which}_start"), hole(artifact, row)
    counters = [counter for counter in ("first", "done", "i") if counter in turn.called]
    setting = replace(setting_of(artifact), counters=frozenset(counters))
    given: Locals = {start.called["columns"]: Columns(slots), start.called["first"]: Place(frozenset({"first"}))}
    known = straight(setting, start, given)
    return setting, {**known, **{turn.called[c]: Place(frozenset({c})) for c in counters[1:]}}


def selected(artifact: Artifact, kind: str, slots: Slots) -> int | Choice:
    """The number that a tree's kernel leaves for a row."""
    wide = f"H_{kind}_wide_row" in artifact.found.holes
    row = f"{kind}_wide_row" if wide else f"{kind}_row"
    setting, known = _kernel_locals(artifact, kind, row, slots)
    turn = hole(artifact, row)
    target = turn.called["found" if wide else "out"]
    cell = (target, Place(frozenset({"i"})))
    setting = replace(setting, types={target: "int64_t" if wide else "int32_t"})
    after = straight(setting, turn, {**known, cell: Unclear()})
    if isinstance(after[cell], Unclear):
        raise Unread(f"{artifact.name}_{kind}_block leaves some rows without an answer")
    value = resolved(after[cell])
    if bounds(value)[0] < INT32[0] or bounds(value)[1] > INT32[1]:
        raise Unread(f"{artifact.name}_{kind}_block: an answer may not fit in 32 bits")
    return value


def select_scored(artifact: Artifact, slots: Slots) -> Scored:
    """The points that a rule set's kernel adds up for a row."""
    setting, known = _kernel_locals(artifact, "sums", "sums_row", slots)
    turn = hole(artifact, "sums_row")
    sums = turn.called["sums"]
    cells: Locals = {(sums, c, Place(frozenset({"i"}))): Unclear() for c in range(artifact.constant("CLASSES"))}
    after = straight(replace(setting, types={sums: "int64_t"}), turn, {**known, **cells})
    return scored_sums([_sum(artifact, after[cell]) for cell in cells])


def _sum(artifact: Artifact, value: Known) -> int | Plus:
    if not isinstance(value, int | Plus):
        raise Unread(f"{artifact.name}_sums_block: the points of a class are not a sum")
    return value


def scored_sums(sums: Sequence[int | Plus]) -> Scored:
    """A sum a class as one scorecard; what several classes get for the same condition is put together."""
    points: dict[Condition, list[int]] = {}
    bias = []
    for c, total in enumerate(sums):
        if bounds(total)[0] <= -SUM or bounds(total)[1] >= SUM:
            raise Unread("the points may add up past 64 bits")
        start, more = terms(total)
        bias.append(start)
        for condition, worth in reversed(more):
            points.setdefault(condition, [0] * len(sums))[c] += worth
    return Scored(tuple(bias), tuple((condition, tuple(worth)) for condition, worth in points.items()))


def read_batch(
    artifact: Artifact,
    verbs: Mapping[str, str],
    one_row: Callable[[str, Slots], Decided | Scored],
    kernel: Callable[[str, Slots], Decided | Scored],
) -> list[tuple[str, Decided | Scored]]:
    """(function, decision) for each batch function; `one_row` and `kernel` make one of a verb and its columns."""
    prefix = artifact.name
    if not artifact.has("gather"):
        for verb in verbs:
            recognise(artifact, row_by_row(verb))
        rows = [(f"{prefix}_{verb}_rows", one_row(verb, every_feature(artifact))) for verb in verbs]
        ways = {verb: _readable(artifact, filled_rows(artifact, verb)) for verb in verbs}
        return rows + [(f"{prefix}_{verb}_columns", one_row(verb, slots)) for verb, slots in ways.items()]
    recognise(artifact, GATHER)
    for verb, kind in verbs.items():
        recognise(artifact, blocks_of_sums(verb) if kind == "sums" else blocks_of_answers(verb, kind))
    slots = block_slots(artifact)
    return [(f"{prefix}_{verb}_{way}", kernel(verb, slots[way])) for verb in verbs for way in ("rows", "columns")]


def sums_kernel(artifact: Artifact) -> Callable[[Slots], Scored]:
    """The kernel of a rule set, by bits or by selects."""
    recognise(artifact, SUMS)
    if artifact.has("find_bins"):
        return bits_scored(artifact)
    recognise(artifact, SELECT_SUMS)
    return lambda slots: select_scored(artifact, slots)
