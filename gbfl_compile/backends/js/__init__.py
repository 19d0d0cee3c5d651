"""The JavaScript target: one ES module without dependencies, its types, and a package.json that makes it a module."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from gbfl_compile.backends.base import Artifact, Backend, Options, render, take_options
from gbfl_compile.backends.js.run import available, load
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import (
    Atom,
    Clause,
    Interval,
    Kind,
    Label,
    Leaf,
    OneOf,
    Program,
    Scorecard,
    Tree,
    deep_splits,
    leaf_numbers,
)
from gbfl_compile.ir.text import clause_text, listing, reasons_of
from gbfl_compile.version import GENERATOR

EXTENSION = ".js"

DEEP = 16
"""Beyond this many nested ifs the shallower side is indented."""

MOST_USED = 10_000
"""Features that the rules may use: each is a parameter of one function, and engines allow 65,535."""

LONGEST_CHAIN = 8
"""Texts compared one by one; more of them make a Set."""

EXACT = 2**53
"""Whole labels and leads up to this are numbers in JavaScript."""

RESERVED = frozenset(
    (
        *(
            "arguments",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "debugger",
            "default",
            "delete",
            "do",
            "else",
        ),
        *(
            "enum",
            "eval",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
        ),
        *(
            "interface",
            "let",
            "new",
            "null",
            "package",
            "private",
            "protected",
            "public",
            "return",
            "static",
            "super",
            "switch",
            "this",
        ),
        *("throw", "true", "try", "typeof", "var", "void", "while", "with", "yield"),
    )
)

TYPES: Mapping[Kind, str] = {
    "number": "number",
    "category": "string",
    "boolean": "boolean",
    "date": "string",
    "timestamp": "string | Date",
}
"""What a value of a kind is in JavaScript."""

PACKAGE = b'{\n  "private": true,\n  "type": "module"\n}\n'
"""Without it Node takes NAME.js for a CommonJS module."""


def literal(value: object) -> str:
    """A text, number or truth value. ASCII alone, and no `<` in a text: it can be put into a page as it is.

    repr of a double reads back as the same double; JavaScript has the same literals.
    """
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value).replace("<", "\\u003c")


def literals(values: Sequence[object]) -> str:
    """Literals with commas between them."""
    return ", ".join(literal(value) for value in values)


def comment(text: str) -> str:
    """Text for a comment: ASCII, because U+2028 ends a line in JavaScript, and nothing that closes a script.

    A label @ts-nocheck may begin the line: it would be no comment to TypeScript.
    """
    ascii_text = text.encode("ascii", "backslashreplace").decode("ascii")
    ascii_text = re.sub("^( *)([#@])", lambda match: f"{match[1]}\\u{ord(match[2]):04x}", ascii_text)
    return re.sub(r"<(?![ =])", r"\\u003c", ascii_text)


def atom(node: Atom, name: str, kind: Kind, sets: Mapping[tuple[str, ...], str]) -> str:
    """One atom. A missing number or date is NaN, a missing category or boolean null: the functions around see to it."""
    match node:
        case Interval():
            return between(node, name)
        case OneOf():
            return truth(node, name) if kind == "boolean" else one_of(node, name, sets)
        case _:
            assert_never(node)


def truth(node: OneOf, name: str) -> str:
    """A boolean is true, false or null."""
    if not node.values:
        return presence(node, name)
    if node.if_missing:
        return f"{name} !== {'true' if node.negated else 'false'}"
    return f"{name} === {'false' if node.negated else 'true'}"


def presence(node: OneOf, name: str) -> str:
    """An atom that lists no text tests whether the value is there."""
    if node.negated:
        return "true" if node.if_missing else f"{name} !== null"
    return f"{name} === null" if node.if_missing else "false"


def one_of(node: OneOf, name: str, sets: Mapping[tuple[str, ...], str]) -> str:
    """One set of texts. null is in no set: it needs a test where that is not what a missing value answers."""
    if not node.values:
        return presence(node, name)
    joint = " && " if node.negated else " || "
    if node.values in sets:
        text = f"{'!' if node.negated else ''}{sets[node.values]}.has({name})"
    else:
        sign = "!==" if node.negated else "==="
        text = joint.join(f"{name} {sign} {literal(value)}" for value in node.values)
    if node.negated != node.if_missing:
        text = f"{name} {'!==' if node.negated else '==='} null{joint}{text}"
    return f"({text})" if " || " in joint and joint in text else text


def between(interval: Interval, name: str) -> str:
    """One interval. NaN fails every comparison but `!==`, so only a missing value that *holds* needs a test."""
    if interval.lo is None and interval.hi is None:
        return "true" if interval.if_missing else f"{name} === {name}"
    parts = []
    if interval.lo is not None:
        parts.append(f"{name} {'>=' if interval.lo_closed else '>'} {literal(interval.lo)}")
    if interval.hi is not None:
        parts.append(f"{name} {'<=' if interval.hi_closed else '<'} {literal(interval.hi)}")
    text = " && ".join(parts)
    if not interval.if_missing:
        return text
    return f"({name} !== {name} || {f'({text})' if len(parts) == 2 else text})"


Names = Mapping[int, str]
"""The parameter of each feature in use."""


def condition(program: Program, clause: Clause, names: Names, sets: Mapping[tuple[str, ...], str]) -> str:
    """A clause as one expression."""
    atoms = (atom(node, names[node.feature], program.kind(node.feature), sets) for node in clause.atoms)
    return " && ".join(atoms) or "true"


def decision(program: Program, conditions: Sequence[str]) -> list[str]:
    """The body of `rules`: an if for each split, or one boolean per clause."""
    match program.decision:
        case Tree():
            return list(_tree_lines(program.decision, conditions))
        case Scorecard():
            return ["return [", *(f"  {text}," for text in conditions), "];"]
        case _:
            assert_never(program.decision)


def _tree_lines(tree: Tree, conditions: Sequence[str]) -> Iterator[str]:
    """Both sides return, so the second needs no else and a rule list is a flat sequence of ifs."""
    inverted, number = deep_splits(tree, DEEP), leaf_numbers(tree)
    waiting: list[tuple[int, int] | str] = [(0, 0)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            yield entry
            continue
        index, depth = entry
        node, indent = tree.nodes[index], "  " * depth
        if isinstance(node, Leaf):
            yield f"{indent}return {number[index]};"
            continue
        test, first, second = conditions[node.clause], node.then, node.otherwise
        if index in inverted:
            test, first, second = f"!({test})", second, first
        yield f"{indent}if ({test}) {{"
        waiting += ((second, depth), f"{indent}}}", (first, depth + 1))


def parameter_names(program: Program) -> dict[int, str]:
    """A parameter for each feature in use: its own name where that is safe, `x7` otherwise."""
    used = sorted({node.feature for clause in program.clauses for node in clause.atoms})
    if len(used) > MOST_USED:
        raise BadInput(f"target js: the rules use {len(used)} features, at most {MOST_USED} are supported")
    cleaned = {feature: re.sub(r"[^A-Za-z0-9]+", "_", program.features[feature]).strip("_") for feature in used}
    times = Counter(cleaned.values())
    return {f: name if _is_safe(name) and times[name] == 1 else f"x{f}" for f, name in cleaned.items()}


def _is_safe(name: str) -> bool:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,39}", name) is not None
    return plain and name not in RESERVED and re.fullmatch(r"x\d*|SET\d*", name) is None


def set_names(program: Program) -> dict[tuple[str, ...], str]:
    """A name for each long list of texts, in the order in which the clauses mention them."""
    atoms = (node for clause in program.clauses for node in clause.atoms)
    long = (node.values for node in atoms if isinstance(node, OneOf) and len(node.values) > LONGEST_CHAIN)
    return {texts: f"SET{place}" for place, texts in enumerate(dict.fromkeys(long))}


def emit(program: Program, name: str, options: Options) -> Artifact:
    """NAME.js, NAME.d.ts and package.json. The heart of the module looks like this::

    function rules(worst_area, worst_smoothness) {
      if (worst_area >= 863.33 && worst_smoothness < 0.2) {
        return 0;
      }
      return 1;
    }
    """
    take_options("js", options, {})
    _refuse_labels(program.classes)
    _refuse_leads(program)
    source, names, sets = digest(program), parameter_names(program), set_names(program)
    conditions = [condition(program, clause, names, sets) for clause in program.clauses]
    used = [(literal(program.features[feature]), program.kind(feature)) for feature in names]
    values = {
        "name": name,
        "generator": GENERATOR,
        "digest": literal(source),
        "rules": [comment(line) for line in listing(program).split("\n")],
        "features": [(literal(each), literal(program.kind(i))) for i, each in enumerate(program.features)],
        "kinds": program.kinds,
        "classes": literals(program.classes),
        "clauses": [literal(clause_text(clause, program.features, program.kinds)) for clause in program.clauses],
        "reasons": [(clause, literal(text)) for clause, text in reasons_of(program).items()],
        "sets": [(set_name, literals(texts)) for texts, set_name in sets.items()],
        "variables": ", ".join(names.values()),
        "used": used,
        "body": decision(program, conditions),
        **_tables(program),
    }
    files = {
        f"{name}{EXTENSION}": render("js/module.js.jinja", values),
        f"{name}.d.ts": render("js/types.d.ts.jinja", {**values, **_types(program, names)}),
        "package.json": PACKAGE,
    }
    return Artifact("js", name, files, source)


def _refuse_labels(classes: tuple[Label, ...]) -> None:
    for label in classes:
        if type(label) is int and abs(label) > EXACT:
            raise BadInput(f"target js: class {label} is not a number in JavaScript, which has doubles: use texts")


def _refuse_leads(program: Program) -> None:
    """Points are below 2^53 and their difference need not be: past it the lead is rounded, and so is a band's bound."""
    bands = program.decision.bands if isinstance(program.decision, Scorecard) else ()
    for band in (band for own in bands for band in own if band.least > EXACT):
        raise BadInput(f"target js: a band from a lead of {band.least} points on: JavaScript has doubles, at most 2^53")


def _types(program: Program, names: Names) -> dict[str, Any]:
    """Features that no rule uses may be left out of a row. Labels that are not texts are numbers or booleans."""
    by_type = {str: " | ".join(map(literal, program.classes)), bool: "boolean", int: "number", float: "number"}
    rows = [
        (literal(feature), "" if i in names else "?", TYPES[program.kind(i)])
        for i, feature in enumerate(program.features)
    ]
    return {"labels": by_type[type(program.classes[0])], "rows": rows}


def _tables(program: Program) -> dict[str, Any]:
    match program.decision:
        case Tree():
            return {"kind": "tree", **_leaf_paths(program.decision)}
        case Scorecard(bias, points, scale, bands):
            return {
                "kind": "scorecard",
                "bias": literals(bias),
                "points": [literals(row) for row in points],
                "bands": [[(band.least, literals(band.probabilities)) for band in own] for own in bands],
                "worth": literal(2.0**-scale),
            }
        case _:
            assert_never(program.decision)


def _leaf_paths(tree: Tree) -> dict[str, list[Any]]:
    """For each leaf its class, its probabilities and its last step; a step is (the step before, clause, held).

    Steps are shared: a path written out for every leaf of a rule list would grow with the square of its rules.
    """
    steps: list[str] = []
    last = {0: -1}
    leaves = []
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            leaves.append(
                {
                    "winner": node.winner,
                    "probabilities": literals(node.probabilities),
                    "step": last[index],
                }
            )
            continue
        for child, held in ((node.then, True), (node.otherwise, False)):
            last[child] = len(steps)
            steps.append(literals((last[index], node.clause, held)))
    return {"leaves": leaves, "steps": steps}


BACKEND = Backend(
    "js", "one ES module with types, for browsers and Node.js", EXTENSION, emit, load, available, emits_bands=True
)
