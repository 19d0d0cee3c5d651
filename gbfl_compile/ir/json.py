"""Programs as JSON: written the same way every time, loaded strictly, because a file may come from anyone.

A program is called by its digest, the SHA-256 of what it means, carried by every artifact made from it. It covers
meaning alone (features, classes, clauses, decision), so respelling a program does not change it: atoms are sorted,
and a bound that is not there has no open or closed end. A second hash covers what is only recorded about the program:
metadata and leaf row counts.

Programs whose features are all numbers are written as schema 1, those with other kinds as schema 2. Thresholds are
written as float.hex() beside a readable decimal, open bounds are left out, and the file carries both digests. Unknown
keys, other schema versions, oversized or deeply nested input are errors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import read_whole, write_whole
from gbfl_compile.files.formats import A_PROGRAM, wrong_file
from gbfl_compile.ir.nodes import Atom, Band, Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.validate import validate

DIGEST_FORM = 1
"""The version of the form that is hashed for programs whose features are all numbers."""

DIGEST_FORM_KINDS = 2
"""The version for programs whose features have kinds."""


def digest(program: Program) -> str:
    """SHA-256 of what the program means."""
    kinds = {"form": DIGEST_FORM_KINDS, "kinds": program.kinds} if program.kinds else {"form": DIGEST_FORM}
    return _sha256(
        {
            **kinds,
            "features": program.features,
            "classes": [[type(label).__name__, label] for label in program.classes],
            "clauses": [sorted(_meaning(atom) for atom in clause.atoms) for clause in program.clauses],
            "decision": _decision_meaning(program),
        }
    )


def metadata_digest(program: Program) -> str:
    """SHA-256 of what is recorded about the program: metadata and leaf row counts."""
    nodes = program.decision.nodes if isinstance(program.decision, Tree) else ()
    rows = [node.rows for node in nodes if isinstance(node, Leaf)]
    return _sha256({"metadata": program.metadata, "rows": rows})


def _sha256(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _meaning(atom: Atom) -> list[Any]:
    if isinstance(atom, OneOf):
        return [atom.feature, "not in" if atom.negated else "in", atom.values, atom.if_missing]
    lo = None if atom.lo is None else [">=" if atom.lo_closed else ">", atom.lo.hex()]
    hi = None if atom.hi is None else ["<=" if atom.hi_closed else "<", atom.hi.hex()]
    return [atom.feature, lo, hi, atom.if_missing]


def _decision_meaning(program: Program) -> Any:
    match program.decision:
        case Tree(nodes):
            return [_node_meaning(node) for node in nodes]
        case Scorecard(bias, points, scale, bands):
            form: dict[str, Any] = {"bias": bias, "points": points, "scale": scale}
            rates = [[[band.least, *(p.hex() for p in band.probabilities)] for band in own] for own in bands]
            return {**form, "bands": rates} if bands else form
        case _:
            assert_never(program.decision)


def _node_meaning(node: Split | Leaf) -> list[Any]:
    if isinstance(node, Leaf):
        shares = [probability.hex() for probability in node.probabilities]
        return shares if node.answer is None else [{"answer": node.answer}, *shares]
    return [node.clause, node.then, node.otherwise]


SCHEMAS = (1, 2)
"""The versions of the JSON form: for numbers alone, and with kinds. Others are refused, never guessed at."""

LARGEST_FILE = 256 * 2**20
MOST_VALUES = 25_000_000
"""Commas and colons in the text: `[],[],…` would take twenty times the file's size in memory."""

LONGEST_NUMBER = 400
"""Characters of a number in hexadecimal or decimal."""


def to_json(program: Program) -> str:
    """The program as a JSON document, one clause or node per line, the same bytes every time."""
    validate(program)
    parts = [
        ("schema", _line(SCHEMAS[bool(program.kinds)])),
        ("digest", _line(digest(program))),
        ("metadata_digest", _line(metadata_digest(program))),
        ("features", _line(program.features)),
        *((("kinds", _line(program.kinds)),) if program.kinds else ()),
        ("classes", _line(program.classes)),
        ("clauses", _lines(_clause_form(clause) for clause in program.clauses)),
        ("decision", _decision_form(program)),
        ("metadata", _line(program.metadata, sort_keys=True)),
    ]
    return "{\n" + ",\n".join(f'"{key}": {text}' for key, text in parts) + "\n}\n"


def _line(form: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(form, ensure_ascii=True, allow_nan=False, sort_keys=sort_keys)


def _lines(forms: Iterable[Any]) -> str:
    rows = [f"  {_line(form)}" for form in forms]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


def _clause_form(clause: Clause) -> list[dict[str, Any]]:
    return [_atom_form(atom) for atom in clause.atoms]


def _atom_form(atom: Atom) -> dict[str, Any]:
    if isinstance(atom, OneOf):
        shown = {"values": atom.values, "negated": atom.negated, "if_missing": atom.if_missing}
        return {"feature": atom.feature, **shown}
    form: dict[str, Any] = {"feature": atom.feature}
    for side, bound in (("lo", atom.lo), ("hi", atom.hi)):
        if bound is not None:
            form[side] = _number_form(bound)
    return {**form, "closed": atom.closed, "if_missing": atom.if_missing}


def _number_form(number: float) -> dict[str, str]:
    """Hexadecimal is the number; the decimal beside it is for people, and loading insists that they agree."""
    return {"hex": number.hex(), "decimal": repr(number)}


def _decision_form(program: Program) -> str:
    match program.decision:
        case Tree(nodes):
            return '{"kind": "tree", "nodes": ' + _lines(_node_form(node) for node in nodes) + "}"
        case Scorecard(bias, points, scale, bands):
            head = f'{{"kind": "scorecard", "scale": {scale}, "bias": {_line(bias)}, "points": '
            rates = [[_band_form(band) for band in own] for own in bands]
            return head + _lines(points) + (f', "bands": {_lines(rates)}' if rates else "") + "}"
        case _:
            assert_never(program.decision)


def _node_form(node: Split | Leaf) -> dict[str, Any]:
    match node:
        case Split(clause, then, otherwise):
            return {"clause": clause, "then": then, "otherwise": otherwise}
        case Leaf(probabilities, rows, answer):
            known = {key: value for key, value in (("rows", rows), ("answer", answer)) if value is not None}
            return {"probabilities": [_number_form(p) for p in probabilities], **known}
        case _:
            assert_never(node)


def _band_form(band: Band) -> dict[str, Any]:
    return {"least": band.least, "probabilities": [_number_form(p) for p in band.probabilities]}


def save(program: Program, path: str | Path) -> None:
    """Write a program as JSON, whole or not at all."""
    write_whole(Path(path), to_json(program).encode("ascii"))


def as_program(source: Program | str | os.PathLike[str]) -> Program:
    """A program as it is, or the one in a file."""
    if isinstance(source, Program):
        return source
    if isinstance(source, str | os.PathLike):
        return load(Path(source))
    raise BadInput(f"a program is a Program or the path of its file, not {type(source).__name__}")


def load(path: str | Path) -> Program:
    """The program in a JSON file, or a BadInput that names the file and what is wrong."""
    if Path(path).is_dir():
        raise BadInput(f"{path}: {wrong_file(Path(path), A_PROGRAM)}")
    content = read_whole(Path(path), LARGEST_FILE)
    try:
        return from_bytes(content)
    except BadInput as error:
        raise BadInput(f"{path}: {wrong_file(Path(path), A_PROGRAM, content) or error}") from None


def from_bytes(content: bytes) -> Program:
    """The program a file's bytes say."""
    try:
        return from_json(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


def from_json(text: str) -> Program:
    """The program a JSON document says, refused unless every key, type and hash is as it should be."""
    if len(text) > LARGEST_FILE:
        raise BadInput(f"{len(text)} characters, a program has at most {LARGEST_FILE}")
    if text.count(",") + text.count(":") > MOST_VALUES:
        raise BadInput(f"more than {MOST_VALUES} values, which no program has")
    try:
        form = json.loads(text, object_pairs_hook=_no_duplicate_keys, parse_constant=_no_constant)
    except RecursionError:
        raise BadInput("the JSON is nested too deeply to be a program") from None
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from None
    return _program(form)


def _no_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise BadInput(f"the key {twice!r} appears twice in one object")
    return form


def _no_constant(constant: str) -> NoReturn:
    raise BadInput(f"{constant} is not JSON: leave an open bound out")


_KEYS = ("schema", "digest", "metadata_digest", "features", "classes", "clauses", "decision", "metadata")


def _program(form: Any) -> Program:
    if not isinstance(form, dict) or "schema" not in form:
        raise BadInput("not a rule program: there is no 'schema' key")
    if form["schema"] not in SCHEMAS or type(form["schema"]) is not int:
        raise BadInput(f"schema {form['schema']!r}: this version reads the schemas {' and '.join(map(str, SCHEMAS))}")
    has_kinds = form["schema"] == 2
    _take_keys(form, "the program", (*_KEYS, "kinds") if has_kinds else _KEYS)
    program = Program(
        features=tuple(_a_list(form["features"], "features")),
        classes=tuple(_a_list(form["classes"], "classes")),
        clauses=tuple(_clause(clause, f"clause {i}") for i, clause in enumerate(_a_list(form["clauses"], "clauses"))),
        decision=_decision(form["decision"]),
        metadata=_a_dict(form["metadata"], "metadata"),
        kinds=tuple(_a_list(form["kinds"], "kinds")) if has_kinds else (),
    )
    if has_kinds and not program.kinds:
        raise BadInput("kinds: the list is empty; a program whose features are all numbers has schema 1")
    validate(program)
    for key, value in (("digest", digest(program)), ("metadata_digest", metadata_digest(program))):
        if form[key] is not None and form[key] != value:  # null: a draft that nobody has sealed
            raise BadInput(f"{key} is {form[key]!r}, but the contents give {value}: the file was changed")
    return program


def _a_list(form: Any, where: str) -> list[Any]:
    if not isinstance(form, list):
        raise BadInput(f"{where}: expected a list, found {type(form).__name__}")
    return form


def _a_dict(form: Any, where: str) -> dict[str, Any]:
    if not isinstance(form, dict):
        raise BadInput(f"{where}: expected an object, found {type(form).__name__}")
    return form


def _take_keys(form: Any, where: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    value = _a_dict(form, where)
    if absent := [key for key in needed if key not in value]:
        raise BadInput(f"{where}: the key {absent[0]!r} is missing")
    if unknown := [key for key in value if key not in needed and key not in optional]:
        raise BadInput(f"{where}: unknown key {unknown[0]!r}")
    return value


def _clause(form: Any, where: str) -> Clause:
    return Clause(tuple(_atom(atom, where) for atom in _a_list(form, where)))


def _atom(form: Any, where: str) -> Atom:
    if "values" in _a_dict(form, where):
        form = _take_keys(form, where, ("feature", "values", "negated", "if_missing"))
        values = tuple(_a_list(form["values"], f"{where}: values"))
        return OneOf(form["feature"], values, form["negated"], form["if_missing"])
    form = _take_keys(form, where, ("feature", "closed", "if_missing"), ("lo", "hi"))
    lo, hi = (_number(form[side], f"{where}: {side}") if side in form else None for side in ("lo", "hi"))
    return Interval(form["feature"], lo, hi, form["closed"], form["if_missing"])


def _number(form: Any, where: str) -> float:
    form = _take_keys(form, where, ("hex", "decimal"))
    if type(form["hex"]) is not str or type(form["decimal"]) is not str:
        raise BadInput(f"{where}: {form!r} is not a number in hexadecimal and decimal, both as text")
    if max(len(text) for text in form.values()) > LONGEST_NUMBER:
        raise BadInput(f"{where}: a number of more than {LONGEST_NUMBER} characters")
    try:
        exact, readable = float.fromhex(form["hex"]), float(form["decimal"])
    except (ValueError, OverflowError):
        raise BadInput(f"{where}: {form!r} is not a number in hexadecimal and decimal") from None
    if exact != readable and exact == exact:  # NaN is left to validate, which says why not
        raise BadInput(f"{where}: hex {form['hex']} is {exact!r}, but decimal says {form['decimal']}")
    return exact


def _decision(form: Any) -> Tree | Scorecard:
    match _a_dict(form, "decision").get("kind"):
        case "tree":
            form = _take_keys(form, "decision", ("kind", "nodes"))
            return Tree(tuple(_node(node, f"node {i}") for i, node in enumerate(_a_list(form["nodes"], "nodes"))))
        case "scorecard":
            form = _take_keys(form, "decision", ("kind", "scale", "bias", "points"), ("bands",))
            points = tuple(tuple(_a_list(row, "points")) for row in _a_list(form["points"], "points"))
            return Scorecard(tuple(_a_list(form["bias"], "bias")), points, form["scale"], _bands(form))
        case kind:
            raise BadInput(f"decision: unknown kind {kind!r}, use 'tree' or 'scorecard'")


def _bands(form: dict[str, Any]) -> tuple[tuple[Band, ...], ...]:
    if "bands" not in form:
        return ()
    classes = [_a_list(own, "bands") for own in _a_list(form["bands"], "bands")]
    if not classes:
        raise BadInput("bands: the list is empty; leave it out")
    bands = []
    for own in classes:
        taken = [_take_keys(band, "bands", ("least", "probabilities")) for band in own]
        bands.append(tuple(Band(band["least"], _numbers(band["probabilities"], "bands")) for band in taken))
    return tuple(bands)


def _numbers(form: Any, where: str) -> tuple[float, ...]:
    return tuple(_number(number, where) for number in _a_list(form, where))


def _node(form: Any, where: str) -> Split | Leaf:
    if "probabilities" in _a_dict(form, where):
        form = _take_keys(form, where, ("probabilities",), ("rows", "answer"))
        if form.get("answer", 0) is None:
            raise BadInput(f"{where}: answer is null: leave it out")
        return Leaf(_numbers(form["probabilities"], where), form.get("rows"), form.get("answer"))
    form = _take_keys(form, where, ("clause", "then", "otherwise"))
    return Split(form["clause"], form["then"], form["otherwise"])
