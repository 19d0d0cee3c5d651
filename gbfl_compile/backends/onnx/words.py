"""Categories in a graph: a text becomes its code, and a code is looked up in a table of what each atom says of it.

For `contract in {a, b}`, where the rules mention a, b and c::

    code = LabelEncoder(contract)              a: 1, b: 2, c: 3, any other text: 0
    code or missing = Where(contract is missing, 4, code)
    contract in {a, b} = Gather([False, True, True, False, False], code or missing)

LabelEncoder compares the bytes of UTF-8, which are equal where code points are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gbfl_compile.backends.onnx.graph import Graph, add, constant, numbers
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Atom, Clause, Interval, OneOf, Program
from gbfl_compile.ir.text import atom_text, printable


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of one category in a graph: `[rows]`, 0 any other text, then those listed, then missing."""

    column: str
    texts: tuple[str, ...]

    def truths(self, atom: OneOf) -> list[bool]:
        """What an atom says of each code."""
        listed = [(text in atom.values) != atom.negated for text in self.texts]
        return [atom.negated, *listed, atom.if_missing]


def encode(graph: Graph, program: Program, feature: int, text: str, missing: str) -> Codes:
    """The codes of a category, given its texts and its missing values, each `[rows]`."""
    import numpy as np

    name = printable(program.features[feature])
    texts = codebook(program).texts[feature]
    # an encoder without keys is no ONNX: where rules ask only whether a value is there, one key says what all others do
    keys, codes = (texts, range(1, len(texts) + 1)) if texts else (("",), range(1))
    code = add(
        graph,
        "LabelEncoder",
        [text],
        f"code of {name}",
        domain="ai.onnx.ml",
        keys_strings=list(keys),
        values_int64s=list(codes),
        default_int64=0,
    )
    last = constant(graph, np.array(len(texts) + 1, dtype=np.int64), f"{name}: the code of a missing value")
    return Codes(add(graph, "Where", [missing, last, code], f"code of {name} or missing"), texts)


def word_column(graph: Graph, program: Program, codes: Codes, atom: OneOf) -> str:
    """Whether an atom holds, `[rows]`."""
    import numpy as np

    name = atom_text(atom, program.features, program.kinds)
    table = constant(graph, np.array(codes.truths(atom)), f"{name}: by code")
    return add(graph, "Gather", [table, codes.column], name, axis=0)


def word_matrix(graph: Graph, program: Program, codes: Codes, atoms: Sequence[OneOf]) -> str:
    """1 where an atom on one category holds and 0 where not, `[rows, atoms]`, as numbers for a TreeEnsemble."""
    import numpy as np

    name = printable(program.features[atoms[0].feature])
    by_code: Any = np.array([codes.truths(atom) for atom in atoms], dtype=numbers(graph)).T.copy()
    table = constant(graph, by_code, f"{name}: rules by code")
    return add(graph, "Gather", [table, codes.column], f"{name} in rules", axis=0)


def boolean_interval(atom: OneOf) -> Interval:
    """An atom on a boolean, which is 1, 0 or missing, as an interval."""
    if atom.values:
        lo, hi = (None, 1.0) if atom.negated else (1.0, None)
    else:
        lo, hi = (None, None) if atom.negated else (2.0, None)  # no boolean is
    return Interval(atom.feature, lo, hi, if_missing=atom.if_missing)


def is_word(program: Program, atom: Atom) -> bool:
    """Whether an atom asks a category."""
    return program.kind(atom.feature) == "category"


def word_atoms(program: Program) -> dict[int, tuple[OneOf, ...]]:
    """The different atoms on each category, in the order in which the rules ask them."""
    atoms: dict[int, dict[OneOf, None]] = {}
    for clause in program.clauses:
        for atom in clause.atoms:
            if isinstance(atom, OneOf) and is_word(program, atom):
                atoms.setdefault(atom.feature, {})[atom] = None
    return {feature: tuple(atoms[feature]) for feature in sorted(atoms)}


def as_numbers(program: Program) -> Program:
    """The program over the columns that a tree compares: numbers, then 1 or 0 for each atom on each category."""
    if not program.kinds:
        return program
    plain = [feature for feature, kind in enumerate(program.kinds) if kind != "category"]
    place = {feature: column for column, feature in enumerate(plain)}
    atoms = [atom for several in word_atoms(program).values() for atom in several]
    column = {atom: len(plain) + index for index, atom in enumerate(atoms)}

    def interval(atom: Atom) -> Interval:
        if isinstance(atom, Interval):
            return replace(atom, feature=place[atom.feature])
        if not is_word(program, atom):
            return replace(boolean_interval(atom), feature=place[atom.feature])
        if not atom.values and atom.negated and atom.if_missing:
            return Interval(column[atom], if_missing=True)  # which always holds, and is not asked
        return Interval(column[atom], 1.0)

    names = [program.features[feature] for feature in plain]
    texts = [atom_text(atom, program.features, program.kinds) for atom in atoms]
    clauses = tuple(Clause(tuple(map(interval, clause.atoms))) for clause in program.clauses)
    return replace(program, features=(*names, *texts), clauses=clauses, kinds=())
