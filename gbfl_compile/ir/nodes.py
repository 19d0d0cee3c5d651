"""The rule language: what a rule program is made of.

A program is features, classes, clauses and one decision over the clauses::

    Interval   lo <= x < hi on one feature, and what a missing value answers
    OneOf      one feature is (not) one of a list of texts, and what a missing value answers
    Clause     all of its atoms hold; the empty clause is true
    Tree       Split(clause, then, otherwise) nodes ending in Leaf(probabilities)
    Scorecard  integer points per class for each clause that holds

A feature is a number unless the program says another kind: a category (text), a boolean, a date or a timestamp.
Dates are compared as days and timestamps as microseconds since 1970-01-01 (UTC), both exact integers, by intervals.

Nodes are plain frozen data. `evaluate` says what they mean, `validate` which of them are legal,
`readable`, `json_form` and `digest` how they are written down.
Trees are built here and nowhere else, so that equal trees have equal node tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Label: TypeAlias = str | int | float | bool
"""A class label as the user has it."""

Closed: TypeAlias = Literal["left", "right", "both", "neither"]
"""Which ends of an interval belong to it."""


Kind: TypeAlias = Literal["number", "category", "boolean", "date", "timestamp"]
"""What the values of a feature are."""

TRUE = "true"
"""The one text that an atom on a boolean feature lists."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One feature lies between two bounds; `None` is not a bound on that side.

    What the miner makes is half-open, `lo <= x < hi` (closed="left"). A missing value (NaN, None,
    NULL) answers `if_missing`, here and nowhere else: above this atom logic has two values.
    With no bound at all it tests only whether the value is there.
    """

    feature: int
    lo: float | None = None
    hi: float | None = None
    closed: Closed = "left"
    if_missing: bool = False

    @property
    def lo_closed(self) -> bool:
        """Whether x == lo is inside."""
        return self.closed in ("left", "both")

    @property
    def hi_closed(self) -> bool:
        """Whether x == hi is inside."""
        return self.closed in ("right", "both")


@dataclass(frozen=True, slots=True)
class OneOf:
    """A category is one of the listed texts, or with `negated` none of them.

    Texts are equal when their code points are: nothing is trimmed, folded or normalised. A text not listed is an
    ordinary value: it is in no plain set and in every negated one. The empty text is a value, not a missing one; a
    missing value answers `if_missing`. `OneOf(f, (TRUE,))` asks whether a boolean is true. With no text at all the
    atom asks only whether the value is there (`negated`) or whether it is not (`if_missing`).
    """

    feature: int
    values: tuple[str, ...]
    """In the order of their code points."""
    negated: bool = False
    if_missing: bool = False


Atom: TypeAlias = Interval | OneOf


@dataclass(frozen=True, slots=True)
class Clause:
    """A conjunction of atoms, at most one per feature; `Clause(())` is true."""

    atoms: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """An answer: one probability per class. `rows` is how many training rows ended here, for readers only.

    The class it answers is the most probable one, the lower of equal ones, unless `answer` names another: a leaf may
    answer class 1 where 40 % of its rows were observed to be of class 1.
    """

    probabilities: tuple[float, ...]
    rows: int | None = None
    answer: int | None = None
    """The class answered, where that is not the most probable one."""

    @property
    def winner(self) -> int:
        """The class the leaf answers."""
        return self.probabilities.index(max(self.probabilities)) if self.answer is None else self.answer


@dataclass(frozen=True, slots=True)
class Split:
    """Go to node `then` where the clause holds, to node `otherwise` where it does not."""

    clause: int
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree as one flat tuple of nodes in preorder: node, its `then` side, its `otherwise` side.

    Flat, because a rule list of a thousand rules is a thousand levels deep, and because preorder makes
    a walk down a loop forwards and a walk up a loop backwards. `preorder` numbers them.
    """

    nodes: tuple[Split | Leaf, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """One probability per class, for the rows on which a class wins by `least` points or more, up to the next band."""

    least: int
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scorecard:
    """A weighted rule set: class c scores bias[c] plus points[i][c] for each clause i that holds.

    Points are integers, and a point is worth 2**-scale of a logit: sums are exact in any order.
    Probabilities are the softmax of the scores in logits, so a binary rule set is
    bias (0, b) and points (0, w). With `bands` they are constants instead, observed rates: those of the
    winning class's band that has its lead, its points less the runner-up's.
    """

    bias: tuple[int, ...]
    points: tuple[tuple[int, ...], ...]
    scale: int = 0
    bands: tuple[tuple[Band, ...], ...] = ()
    """For each class its bands, the first of which begins at 0; `()` where probabilities are the softmax."""


Decision: TypeAlias = Tree | Scorecard


@dataclass(frozen=True, slots=True)
class Program:
    """A whole rule model. `metadata` is JSON about it (seed, figures, histograms) and never changes an answer."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    clauses: tuple[Clause, ...]
    decision: Decision
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers, and written only so."""

    def kind(self, feature: int) -> Kind:
        """What the values of a feature are."""
        return self.kinds[feature] if self.kinds else "number"

    @property
    def has_exact_probabilities(self) -> bool:
        """Whether probabilities are constants, the same in every target, or go through exp."""
        return isinstance(self.decision, Tree) or bool(self.decision.bands)

    def __repr__(self) -> str:
        kind = "tree" if isinstance(self.decision, Tree) else "rule set"
        size = f"{_count(self.clauses, 'clause')}, {_count(self.features, 'feature')}"
        return f"Program({kind}, {size}, classes {list(self.classes)})"

    def _repr_html_(self) -> str:
        """The rules, for a notebook. Names come from anyone and are escaped."""
        from html import escape

        from gbfl_compile.ir.text import readable

        return f"<p>{escape(repr(self))}</p><pre>{escape(readable(self))}</pre>"


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def preorder(nodes: Sequence[Split | Leaf], root: int = 0) -> Tree:
    """The tree below `root`, renumbered so that each node comes before its `then` and `otherwise` sides.

    >>> first, *leaves = preorder([Leaf((1.0,)), Leaf((0.5,)), Split(0, 1, 0)], root=2).nodes
    >>> first
    Split(clause=0, then=1, otherwise=2)
    >>> [leaf.probabilities for leaf in leaves]
    [(0.5,), (1.0,)]
    """
    order: list[int] = []
    number: dict[int, int] = {}
    waiting = [root]
    while waiting:
        index = waiting.pop()
        if index in number:
            raise ValueError(f"node {index} is reached twice: a tree shares nothing")
        number[index] = len(order)
        order.append(index)
        node = nodes[index]
        if isinstance(node, Split):
            waiting += (node.otherwise, node.then)
    return Tree(tuple(_renumber(nodes[index], number) for index in order))


def _renumber(node: Split | Leaf, number: dict[int, int]) -> Split | Leaf:
    if isinstance(node, Leaf):
        return node
    return Split(node.clause, number[node.then], number[node.otherwise])


def is_rule_list(tree: Tree) -> bool:
    """Whether each question, where it holds, is answered at once: IF, ELSE IF, ELSE; two questions at least."""
    splits = [node for node in tree.nodes if isinstance(node, Split)]
    return len(splits) > 1 and all(isinstance(tree.nodes[node.then], Leaf) for node in splits)


def leaf(*probabilities: float, rows: int | None = None) -> Tree:
    """A tree of one leaf."""
    return Tree((Leaf(probabilities, rows),))


def split(clause: int, then: Tree, otherwise: Tree) -> Tree:
    """A tree that tests `clause` and goes on in one of two trees."""
    first, second = 1, 1 + len(then.nodes)
    return Tree((Split(clause, first, second), *_shift(then, first), *_shift(otherwise, second)))


def _shift(tree: Tree, by: int) -> Iterator[Split | Leaf]:
    for node in tree.nodes:
        yield node if isinstance(node, Leaf) else Split(node.clause, node.then + by, node.otherwise + by)


def leaf_numbers(tree: Tree) -> dict[int, int]:
    """Node index -> leaf number; leaves are numbered from 0 in reading order."""
    leaves = (index for index, node in enumerate(tree.nodes) if isinstance(node, Leaf))
    return {index: number for number, index in enumerate(leaves)}


def paths(tree: Tree) -> dict[int, tuple[tuple[int, bool], ...]]:
    """Node index -> the (split, held) steps from the root to it."""
    steps_to: dict[int, tuple[tuple[int, bool], ...]] = {0: ()}
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            steps_to[node.then] = (*steps_to[index], (index, True))
            steps_to[node.otherwise] = (*steps_to[index], (index, False))
    return steps_to


def deep_splits(tree: Tree, deep: int) -> set[int]:
    """The splits to write the other way round, `otherwise` indented, where `then` is nested `deep` levels or more.

    Written so, no text of a tree is nested much deeper than that: languages and compilers have their limits.
    """
    inverted = set()
    height = [0] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Split):
            inner, outer = height[node.then], height[node.otherwise]
            if inner >= deep and inner > outer:
                inverted.add(index)
                inner, outer = outer, inner
            height[index] = max(inner + 1, outer)
    return inverted
