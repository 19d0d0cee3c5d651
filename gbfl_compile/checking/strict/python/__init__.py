"""Reads an emitted Python module back, from its text alone: nothing of it is run or imported.

The functions around the rules must be known ones (known/): the same syntax tree, but for docstrings and the names of
locals. The tables must be literals, and the rules themselves are followed (rules.py). One reading: every function of
the module answers by the same rules.
"""

from __future__ import annotations

import ast
import builtins
import io
import sys
import tokenize
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import get_args

from gbfl_compile.checking.reading.conditions import FALL, decision_of
from gbfl_compile.checking.reading.nodes import (
    Outcome,
    PointDecision,
    Reading,
    Step,
    StepDecision,
    Unread,
    bands_by_class,
    class_labels,
    feature_names,
    known_scale,
    leaf_outcome,
    one_file,
    reasons_by_clause,
    rows_of_points,
    way_to,
)
from gbfl_compile.checking.strict.python.rules import Known, Locals, Row, answer, condition, refuse
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import TRUE, Kind

RULES = ("_leaf", "_held")

IMPORTS = ("_math", "_datetime")

ON_IMPORT = {"math": ("math",), "datetime": ("datetime", "_datetime", "_pydatetime", "math", "operator", "time")}
"""The modules that an import takes in, in some version of Python: a file of such a name may be taken for one."""

PYTHONS_OWN = sys.stdlib_module_names.union(("sitecustomize", "usercustomize"), *ON_IMPORT.values())
"""What Python itself may import before a model or with it. A file of such a name comes first where its folder is in
PYTHONPATH, and can change what any later import gives."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module taken apart: its functions, and what its other names are bound to."""

    functions: Mapping[str, ast.FunctionDef]
    values: Mapping[str, object]


def read_python(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .py file."""
    name, content = one_file(files, ".py")
    try:
        module = _module(_parse(content))
        _refuse_own_import(name, module)
        return (_reading(module),)
    except Unread as error:
        raise Unread(f"{name}: {error}") from None


def _refuse_own_import(name: str, module: Module) -> None:
    """Refuse a file that its own imports would find in place of Python's modules."""
    imported = (*ON_IMPORT["math"], *(ON_IMPORT["datetime"] if "KINDS" in module.values else ()))
    if name.lower().removesuffix(".py") in imported:
        raise Unread("has the name of a module that it imports")


def _parse(content: bytes) -> ast.Module:
    """The module's syntax tree. Only UTF-8 is read: in other encodings a comment may hold the end of its line."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        if encoding not in ("utf-8", "utf-8-sig"):
            raise Unread(f"says that it is written in {encoding}: only UTF-8 is read")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape in a string is a warning to who runs it
            tree = ast.parse(content)
            compile(tree, "model.py", "exec", dont_inherit=True)  # parses, and is still no module: __debug__ = 1
            return tree
    except (SyntaxError, ValueError, MemoryError) as error:  # a MemoryError means nested too deeply
        raise Unread(f"is not Python: {error}") from None


def _module(tree: ast.Module) -> Module:
    """Every statement at the top level binds one new name, to a literal, a function or the module math."""
    functions: dict[str, ast.FunctionDef] = {}
    values: dict[str, object] = {}
    bound: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Expr(ast.Constant(str())) if node is tree.body[0]:
                continue
            case ast.Import([ast.alias("math" | "datetime" as imported, str() as name)]) if name == f"_{imported}":
                pass
            case ast.FunctionDef(name):
                functions[name] = node
            case ast.Assign([ast.Name(name)], value) if name not in IMPORTS:
                values[name] = _numbered_texts(value) if name == "REASONS" else literal(value)
            case _:
                refuse(node, "a statement that is not understood")
        if name in bound or hasattr(builtins, name) or name.startswith("__"):
            refuse(node, f"{name} means something else already")
        bound.add(name)
    needed = IMPORTS if "KINDS" in values else ("_math",)
    for name in IMPORTS:
        if (name in bound) != (name in needed) or name in functions:
            raise Unread(f"imports are not those of such a module: {name}")
    return Module(functions, values)


def literal(node: ast.expr) -> object:
    """A string, number or truth value, or a tuple of such."""
    match node:
        case ast.Constant(str() | int() | float() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not isinstance(value, bool):
            return -value
        case ast.Tuple(items):
            return tuple(literal(item) for item in items)
        case _:
            refuse(node, "is not a literal")


def _numbered_texts(node: ast.expr) -> object:
    """A dictionary of texts by number, each number once."""
    match node:
        case ast.Dict(keys, values):
            texts: dict[int, str] = {}
            for key, value in zip(keys, values, strict=True):
                match key, value:
                    case ast.Constant(int() as number), ast.Constant(str() as text) if type(number) is int:
                        if number in texts:
                            refuse(node, f"REASONS has {number} twice")
                        texts[number] = text
                    case _:
                        refuse(node, "REASONS is not one text per clause")
            return texts
        case _:
            refuse(node, "REASONS is not one text per clause")


def _reading(module: Module) -> Reading:
    rules = [name for name in RULES if name in module.functions]
    if len(rules) != 1:
        raise Unread(f"a module has one of {' and '.join(RULES)}, this one has {len(rules)}")
    is_tree = rules[0] == "_leaf"
    kind = "tree" if is_tree else "rule_set"
    bands = not is_tree and "_BANDS" in module.values
    kinds = _kinds(module)
    parts = ["rows_of_kinds" if kinds else "rows", kind] + [f"{kind}_with_bands"] * bands
    parts += [f"{kind}_with_bands_and_reasons" if bands else f"{kind}_with_reasons"] * ("REASONS" in module.values)
    around = {name: function for part in parts for name, function in known_functions(part).items()}
    if bands:
        del around["_softmax"]
    _recognise(module, around, rules[0])
    features = feature_names(_value(module, "FEATURES"))
    classes = class_labels(_value(module, "CLASSES"))
    clauses = _value(module, "CLAUSES")
    if not isinstance(clauses, tuple) or not all(isinstance(text, str) for text in clauses):
        raise Unread("CLAUSES is not a tuple of texts")
    tables = {"_LEAVES", "_STEPS"} if is_tree else {"_BIAS", "_POINTS", "_BANDS" if bands else "_SCALE"}
    if kinds and len(kinds) != len(features):
        raise Unread("KINDS does not have one kind per feature")
    texts = {"category": _texts_in(module.functions[rules[0]]), "boolean": (TRUE,)}
    row = Row(len(features), kinds, Codebook(tuple(texts.get(kind, ()) for kind in kinds)))
    known = _initial_locals(
        module, tables | {"FEATURES", "KINDS", "CLASSES", "CLAUSES", "DIGEST", "REASONS"}, rules[0], row
    )
    read = _tree if is_tree else _rule_set
    decision = read(module, known, len(classes), len(clauses))
    place = "_leaf" if is_tree else "_held and _score"
    reasons = reasons_by_clause(module.values.get("REASONS", {}), len(clauses))
    book = row.book.texts if kinds else ()
    return Reading(
        features, classes, decision, "float64", place, _digest(module), clauses, reasons, kinds=kinds, book=book
    )


def _kinds(module: Module) -> tuple[Kind, ...]:
    kinds = module.values.get("KINDS", ())
    if not isinstance(kinds, tuple) or not all(kind in get_args(Kind) for kind in kinds):
        raise Unread("KINDS is not a tuple of kinds")
    if "KINDS" in module.values and not kinds:
        raise Unread("KINDS is empty")
    return kinds


def _texts_in(function: ast.FunctionDef) -> tuple[str, ...]:
    """The texts that the rules mention."""
    nodes = (node for statement in without_docstring(function) for node in ast.walk(statement))
    return tuple(
        dict.fromkeys(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    )


def _recognise(module: Module, forms: Mapping[str, ast.FunctionDef], rules: str) -> None:
    """Every function but the rules is a known one, and none is missing."""
    for name, function in module.functions.items():
        if name == rules:
            continue
        if name not in forms:
            refuse(function, f"a function that is not known: {name}")
        if not same_function(forms[name], function):
            refuse(function, f"{name} is not the function known by this name")
    if lacking := sorted(set(forms) - set(module.functions)):
        raise Unread(f"has no {lacking[0]}")


def _value(module: Module, name: str) -> object:
    if name not in module.values:
        raise Unread(f"has no {name}")
    return module.values[name]


def _digest(module: Module) -> str:
    digest = _value(module, "DIGEST")
    if not isinstance(digest, str):
        raise Unread("DIGEST is not a text")
    return digest


def _initial_locals(module: Module, tables: set[str], rules: str, values: Row) -> Locals:
    """What the rules start from: the row, and numbers that have a name."""
    function = module.functions[rules]
    known: dict[str, Known] = {}
    for name, value in module.values.items():
        if name in tables:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unread(f"{name}: a value that is not understood")
        known[name] = value
    match function:
        case ast.FunctionDef(
            args=ast.arguments([], [ast.arg(row, None)], None, [], [], None, []), decorator_list=[], returns=None
        ) if not getattr(function, "type_params", None):  # annotations are code that runs when the module is loaded
            own = {
                node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            if row in IMPORTS or own & set(IMPORTS):
                refuse(function, f"{' or '.join(IMPORTS)} is not the module here")
            return {**{name: value for name, value in known.items() if name not in own}, row: values}
        case _:
            refuse(function, f"{rules} takes one row and nothing else")


def _tree(module: Module, known: Locals, classes: int, clauses: int) -> StepDecision:
    value, _ = answer(without_docstring(module.functions["_leaf"]), known)
    steps = _steps(_value(module, "_STEPS"))
    outcomes = [
        _outcome(leaf, row, steps, classes, clauses)
        for leaf, row in enumerate(_rows(_value(module, "_LEAVES"), "_LEAVES"))
    ]

    def outcome(leaf: int) -> Outcome:
        if not 0 <= leaf < len(outcomes):
            raise Unread(f"_leaf returns {leaf}, there are {len(outcomes)} leaves")
        return outcomes[leaf]

    return decision_of(value, outcome)


def _rows(table: object, where: str) -> list[tuple[object, object, object]]:
    """A table of three columns."""
    if not isinstance(table, tuple) or not all(isinstance(row, tuple) and len(row) == 3 for row in table):
        raise Unread(f"{where} is not a table of three columns")
    return list(table)


def _steps(table: object) -> list[Step]:
    steps: list[Step] = []
    for before, clause, held in _rows(table, "_STEPS"):
        if type(before) is not int or type(clause) is not int or not isinstance(held, bool):
            raise Unread(f"_STEPS: step {len(steps)} is not a step, a clause and whether it held")
        steps.append((before, clause, held))
    return steps


def _outcome(leaf: int, row: tuple[object, object, object], steps: list[Step], classes: int, clauses: int) -> Outcome:
    winner, probabilities, last = row
    if type(last) is not int:
        raise Unread(f"_LEAVES: leaf {leaf} has no last step")
    outcome = leaf_outcome(f"_LEAVES: leaf {leaf}", winner, probabilities, classes, leaf)
    way = way_to(steps, last, clauses)
    return replace(outcome, held=tuple(sorted(clause for clause, held in way if held)), way=way)


def _rule_set(module: Module, known: Locals, classes: int, clauses: int) -> PointDecision:
    statements = without_docstring(module.functions["_held"])
    match statements:
        case [*first, ast.Return(ast.Tuple(asked))]:
            value, known = answer(first, known)
        case _:
            refuse(module.functions["_held"], "_held does not end by returning one truth value per rule")
    if value is not FALL:
        refuse(statements[0], "_held returns before its end")
    conditions = tuple(condition(node, known) for node in asked)
    points = rows_of_points(_value(module, "_POINTS"), "_POINTS", classes)
    (bias,) = rows_of_points((_value(module, "_BIAS"),), "_BIAS", classes)
    bands = bands_by_class(module.values["_BANDS"], classes) if "_BANDS" in module.values else ()
    scale = None if bands else known_scale(_value(module, "_SCALE"))
    if not len(conditions) == len(points) == clauses:
        raise Unread(f"{len(conditions)} rules in _held, {len(points)} in _POINTS, {clauses} in CLAUSES")
    return PointDecision(bias, tuple(zip(conditions, points, strict=True)), scale, held=conditions, bands=bands)


KNOWN = Path(__file__).parent / "known"

UNSAID = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}
"""Fields without a meaning here; that there are no type parameters is checked below."""


@dataclass(slots=True)
class Names:
    """What each local of the known function is called in the one found, and the names that are not local there."""

    local: set[str]
    called: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


@cache
def known_functions(name: str) -> Mapping[str, ast.FunctionDef]:
    """The functions of one of the files in known/, by name: what our modules have around their rules."""
    source = (KNOWN / f"{name}.py.txt").read_text(encoding="utf-8")
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def same_function(known: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Whether `found` does what `known` does, read off their syntax trees."""
    names = Names(local_names(known))
    if known.name != other.name or other.decorator_list or other.returns or getattr(other, "type_params", None):
        return False
    if not _same(known.args, other.args, names) or not _same(without_docstring(known), without_docstring(other), names):
        return False
    called = list(names.called.values())
    return len(set(called)) == len(called) and not set(called) & names.shared


def without_docstring(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function but for its docstring."""
    if ast.get_docstring(function, clean=False) is None:
        return function.body
    return function.body[1:]


def local_names(function: ast.FunctionDef) -> set[str]:
    """What a function assigns, and its parameters."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _same(known: object, other: object, names: Names) -> bool:
    if isinstance(known, list) and isinstance(other, list):
        return len(known) == len(other) and all(_same(a, b, names) for a, b in zip(known, other, strict=True))
    if type(known) is not type(other):
        return False
    if isinstance(known, ast.Name) and isinstance(other, ast.Name):
        return _same_name(known.id, other.id, names)
    if isinstance(known, ast.arg) and isinstance(other, ast.arg):
        return other.annotation is None and _same_name(known.arg, other.arg, names)
    if isinstance(known, ast.AST):
        fields = [name for name in known._fields if name not in UNSAID]
        return all(_same(getattr(known, name, None), getattr(other, name, None), names) for name in fields)
    return known == other


def _same_name(known: str, other: str, names: Names) -> bool:
    if known not in names.local:
        names.shared.add(known)
        return known == other
    return names.called.setdefault(known, other) == other
