"""The first screen: what the program decides, how good it is beside the black box, and its most important rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.ir.nodes import Clause, Kind, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.text import atom_text, clause_text
from gbfl_compile.reporting.figures import in_percent
from gbfl_compile.reporting.text import class_names, count, distinct, one_line, percent, signed_text

RULES_SHOWN = 3
FAILED_SHOWN = 5
GROUPS_SHOWN = 5
MOST_CLASSES = 8
"""A confusion matrix of more classes is not shown: it cannot be read at a glance."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What a manager reads first; what the metadata does not have is empty."""

    decides: str
    figures: tuple[tuple[str, str], ...]
    """Name and value, on held-out rows."""
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """One row per true class, one column per answer."""
    rules: tuple[tuple[tuple[str, ...], str], ...]
    """The conditions of a rule in words, which must all hold, and what it does."""
    groups: Groups | None = None
    """Who is treated differently, where it was measured."""


@dataclass(frozen=True, slots=True)
class Group:
    """One group of held-out rows beside all others."""

    name: str
    rows: str
    answered: str
    """What share of the group gets which answer, and of all others."""
    true: str
    """Of what share the answer is true, in the group and among all others."""
    wrong: str
    """What share of the answers is wrong, in the group and among all others."""
    note: str


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that differ most, and how many were compared."""

    rows: int
    compared: int
    shown: tuple[Group, ...]


def overview(program: Program) -> Overview:
    """The first screen of a program, from itself and its metadata."""
    names, classes = distinct(program.features), class_names(program.classes)
    test = _at(program.metadata, "figures", "test")
    known: Mapping[str, Any] = test if isinstance(test, Mapping) else {}
    confusion = _confusion(known.get("confusion"), len(classes))
    match program.decision:
        case Tree() as tree:
            rules = _leaves(program, tree, names, classes)
        case Scorecard() as card:
            rules = _clauses(program, card, names, classes)
    groups = _groups(_at(program.metadata, "mining", "groups"), classes)
    return Overview(_decides(program, names, classes), tuple(_figures(known)), classes, confusion, tuple(rules), groups)


def _either(names: Sequence[str]) -> str:
    """`no or yes`; `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _groups(form: Any, classes: Sequence[str]) -> Groups | None:
    """The groups with the largest differences, one per feature; None where the metadata has none that can be read."""
    try:
        shown: dict[str, Group] = {}
        for each in form["groups"]:
            if len(shown) < GROUPS_SHOWN and each["feature"] not in shown:
                shown[each["feature"]] = _group(each, classes)
        return Groups(int(form["rows"]), int(form["compared"]), tuple(shown.values()))
    except (TypeError, KeyError, ValueError, IndexError, ZeroDivisionError, OverflowError, AttributeError):
        return None


def _group(form: Mapping[str, Any], classes: Sequence[str]) -> Group:
    answers, errors = form["answers"], form["errors"]
    label = classes[int(form["class"])]
    own, others = (int(total) for total in answers["of"])
    low, high = (100 * float(end) for end in answers["gap"])
    sure = (
        f"{signed_text(round(low))} to {signed_text(round(high))} points" if max(low, -high) > 0 else "could be chance"
    )
    through = "" if form["tested"] is True else "no rule tests this feature; the difference comes through others"
    return Group(
        one_line(form["group"], 80),
        f"{own:,}",
        f"{_share(answers['counts'][0], own)} {label}; others {_share(answers['counts'][1], others)} ({sure})",
        f"{_share(form['true'][0], own)} {label}; others {_share(form['true'][1], others)}",
        f"{_share(errors['counts'][0], own)}; others {_share(errors['counts'][1], others)}"
        + ("" if max(float(errors["gap"][0]), -float(errors["gap"][1])) > 0 else " (could be chance)"),
        through,
    )


def _share(count_in: Any, total: int) -> str:
    if not 0 <= int(count_in) <= total:
        raise ValueError
    return f"{100 * int(count_in) / total:.0f}\N{NO-BREAK SPACE}%"


def _decides(program: Program, names: tuple[str, ...], classes: Sequence[str]) -> str:
    target = _at(program.metadata, "mining", "data", "target")
    what = f"{one_line(target, 60)}: " if isinstance(target, str) else ""
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    listed = ", ".join(names[feature] for feature in used[:6]) + (" and others" if len(used) > 6 else "")
    answers = ", ".join(classes[:6]) + " and others" if len(classes) > 6 else _either(classes)
    source = f" It looks at {count(len(used), 'feature')}: {listed}." if used else " It looks at nothing."
    return f"Decides {what}{answers}.{source}"


def _figures(test: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Accuracy beside the two that it is read against, and fidelity."""
    for key, name in (
        ("accuracy", "the rules are right"),
        ("black_box_accuracy", "the black box is right"),
        ("base_rate", "always the commonest class"),
        ("fidelity", "same answer as the black box"),
    ):
        if (value := in_percent(test, key)) is not None:
            yield name, percent(value)


def _confusion(form: Any, classes: int) -> tuple[tuple[int, ...], ...]:
    """The matrix, where it is one of this many classes; metadata may come from anyone."""
    if not isinstance(form, Sequence) or isinstance(form, str) or len(form) != classes or classes > MOST_CLASSES:
        return ()
    rows = [tuple(row) for row in form if isinstance(row, Sequence) and not isinstance(row, str)]
    fits = len(rows) == classes and all(len(row) == classes for row in rows)
    return tuple(rows) if fits and all(type(each) is int for row in rows for each in row) else ()


def _leaves(
    program: Program, tree: Tree, names: tuple[str, ...], classes: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The answers that most rows get, each with the questions on its way."""
    parent = {
        child: index
        for index, node in enumerate(tree.nodes)
        if isinstance(node, Split)
        for child in (node.then, node.otherwise)
    }
    ends = [(-(node.rows or 0), index, node) for index, node in enumerate(tree.nodes) if isinstance(node, Leaf)]
    for rows, index, leaf in sorted(ends, key=lambda end: end[:2])[:RULES_SHOWN]:
        holds: list[tuple[str, ...]] = []
        fails: list[str] = []
        place = index
        while place in parent:
            split = tree.nodes[parent[place]]
            assert isinstance(split, Split)  # noqa: S101 - only splits have children
            clause = program.clauses[split.clause]
            if split.then == place:
                holds.append(_conditions(clause, names, program.kinds))
            else:
                fails.append(clause_text(clause, names, program.kinds))
            place = parent[place]
        yield (
            _way([text for each in holds[::-1] for text in each], fails[::-1]),
            f"{classes[leaf.winner]}, {count(-rows, 'training row')}",
        )


def _way(holds: Sequence[str], fails: Sequence[str]) -> tuple[str, ...]:
    """The questions on the way to an answer; many that failed are only counted, as in a long rule list."""
    if len(fails) > FAILED_SHOWN:
        failed = [f"none of {len(fails)} other conditions holds"]
    else:
        failed = [f"not ({text})" for text in fails]
    return (*holds, *failed) or ("always",)


def _clauses(
    program: Program, card: Scorecard, names: tuple[str, ...], classes: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The clauses that move most points over the training rows."""
    support = _at(program.metadata, "mining", "clause_support")
    counts = support if isinstance(support, Sequence) and len(support) == len(card.points) else [1] * len(card.points)

    def weight(clause: int) -> float:
        points, rows = card.points[clause], counts[clause]
        return (max(points) - min(points)) * (rows if type(rows) is int else 1)

    for clause in sorted(range(len(card.points)), key=lambda each: (-weight(each), each))[:RULES_SHOWN]:
        points = card.points[clause]
        if len(classes) == 2:
            effect = f"{signed_text(points[1] - points[0])} points for {classes[1]}"
        else:
            best = max(range(len(points)), key=lambda each: (abs(points[each]), -each))
            effect = f"{signed_text(points[best])} points for {classes[best]}"
        yield _conditions(program.clauses[clause], names, program.kinds), effect


def _conditions(clause: Clause, names: tuple[str, ...], kinds: tuple[Kind, ...]) -> tuple[str, ...]:
    return tuple(atom_text(atom, names, kinds) for atom in clause.atoms) or ("always",)


def _at(form: Any, *path: str) -> Any:
    for key in path:
        form = form.get(key) if isinstance(form, Mapping) else None
    return form
