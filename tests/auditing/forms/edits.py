"""Random programs as people write them in SQL, with one edit: a bound moved, a sign, a condition or a branch left out.

The edit is made to the program before it is written as SQL, so which clause was changed is known by construction.
"""

import random
import re
from dataclasses import dataclass, replace

from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Tree, leaf, split
from gbfl_compile.ir.validate import validate

FEATURES = ("income", "debt", "age", "years")
CLASSES = ("decline", "refer", "approve")
POOLS = ((20000.0, 30000.0, 45000.0, 60000.0), (0.2, 0.35, 0.5, 0.8), (18.0, 25.0, 40.0, 65.0), (1.0, 2.0, 5.0, 10.0))


@dataclass(frozen=True)
class Edited:
    """An approved program, the SQL that is deployed for it, and what was changed in it."""

    approved: Program
    sql: str
    edit: str
    places: frozenset
    """What a report should name: numbers of clauses, `start`, or `leaf 2`."""


def edited_program(seed):
    """A random program, written as SQL after one random edit."""
    choose = random.Random(seed)
    approved = _list(choose) if choose.random() < 0.6 else _card(choose)
    kinds = LIST_EDITS if isinstance(approved.decision, Tree) else CARD_EDITS
    edit = choose.choice(list(kinds))
    changed, places = kinds[edit](approved, choose)
    return Edited(approved, sql_of(changed), edit, frozenset(places))


def _atom(feature, choose):
    low, high = sorted(choose.sample(POOLS[feature], 2))
    form = choose.choice(["low", "high", "both"])
    lo, hi = (low if form != "high" else None), (high if form != "low" else None)
    closed = choose.choice(["both", "left", "right", "neither"])
    return Interval(feature, lo, hi, closed)


def _clauses(choose, count):
    return tuple(
        Clause(tuple(_atom(f, choose) for f in sorted(choose.sample(range(4), choose.choice([1, 2, 2, 3])))))
        for _ in range(count)
    )


def _leaf(label):
    return leaf(*(float(each == label) for each in range(3)))


def _list(choose):
    """A list of rules: the first that holds decides."""
    count = choose.choice([2, 3, 4])
    labels = [choose.randrange(3)]
    while len(labels) <= count:
        labels.append(choose.choice([each for each in range(3) if each != labels[-1]]))
    node = _leaf(labels[-1])
    for number in reversed(range(count)):
        node = split(number, _leaf(labels[number]), node)
    return validate(Program(FEATURES, CLASSES, _clauses(choose, count), node))


def _card(choose):
    count = choose.choice([3, 4])
    points = tuple((0, choose.choice([2, 3, 4, 5, 6, 7])) for _ in range(count))
    most = sum(worth for _, worth in points)
    bias = -choose.randrange(2, most)
    return validate(Program(FEATURES, ("decline", "approve"), _clauses(choose, count), Scorecard((0, bias), points, 1)))


def _with_clause(program, number, *atoms):
    clauses = list(program.clauses)
    clauses[number] = Clause(tuple(atoms))
    return replace(program, clauses=tuple(clauses)), {number}


def _some_atom(program, choose):
    number = choose.randrange(len(program.clauses))
    atoms = list(program.clauses[number].atoms)
    return number, atoms, choose.randrange(len(atoms))


def _bound_moved(program, choose):
    number, atoms, place = _some_atom(program, choose)
    atom = atoms[place]
    end = choose.choice([name for name in ("lo", "hi") if getattr(atom, name) is not None])
    moved = (
        getattr(atom, end) * choose.choice([1.1, 0.9, 0.5, 10.0]) if choose.random() < 0.7 else getattr(atom, end) + 1
    )
    other = atom.hi if end == "lo" else atom.lo
    if other is not None and (moved >= other if end == "lo" else moved <= other):
        moved = other - 0.001 if end == "lo" else other + 0.001
    atoms[place] = replace(atom, **{end: moved})
    return _with_clause(program, number, *atoms)


def _sign(program, choose):
    number, atoms, place = _some_atom(program, choose)
    atom = atoms[place]
    ends = [atom.lo_closed, atom.hi_closed]
    end = choose.choice([each for each in (0, 1) if (atom.lo, atom.hi)[each] is not None])
    ends[end] = not ends[end]
    closed = {(True, True): "both", (True, False): "left", (False, True): "right", (False, False): "neither"}
    atoms[place] = replace(atom, closed=closed[tuple(ends)])
    return _with_clause(program, number, *atoms)


def _condition_left_out(program, choose):
    number, atoms, place = _some_atom(program, choose)
    if len(atoms) == 1:
        return _sign(program, choose)
    del atoms[place]
    return _with_clause(program, number, *atoms)


def _missing_passes(program, choose):
    number, atoms, place = _some_atom(program, choose)
    atoms[place] = replace(atoms[place], if_missing=True)
    return _with_clause(program, number, *atoms)


def _other_column(program, choose):
    number, atoms, place = _some_atom(program, choose)
    free = [f for f in range(4) if f not in {atom.feature for atom in atoms}]
    if not free:
        return _sign(program, choose)
    atoms[place] = replace(atoms[place], feature=choose.choice(free))
    return _with_clause(program, number, *atoms)


def _rules(program):
    """The clauses and answers of a list, in its order."""
    nodes = program.decision.nodes
    rules, at = [], 0
    while not isinstance(nodes[at], Leaf):
        rules.append((nodes[at].clause, nodes[nodes[at].then].winner))
        at = nodes[at].otherwise
    return rules, nodes[at].winner


def _from_rules(program, rules, last):
    node = _leaf(last)
    for clause, label in reversed(rules):
        node = split(clause, _leaf(label), node)
    return replace(program, decision=node)


def _branches_swapped(program, choose):
    rules, last = _rules(program)
    at = choose.randrange(len(rules) - 1)
    rules[at], rules[at + 1] = rules[at + 1], rules[at]
    return _from_rules(program, rules, last), {rules[at][0], rules[at + 1][0]}


def _branch_left_out(program, choose):
    rules, last = _rules(program)
    clause, _ = rules.pop(choose.randrange(len(rules)))
    return _from_rules(program, rules, last), {clause}


def _other_answer(program, choose):
    rules, last = _rules(program)
    at = choose.randrange(len(rules) + 1)
    if at == len(rules):
        return _from_rules(program, rules, choose.choice([each for each in range(3) if each != last])), {f"leaf {at}"}
    clause, label = rules[at]
    rules[at] = (clause, choose.choice([each for each in range(3) if each != label]))
    return _from_rules(program, rules, last), {f"leaf {at}", clause}


def _other_points(program, choose):
    number = choose.randrange(len(program.clauses))
    points = list(program.decision.points)
    points[number] = (0, max(0, points[number][1] + choose.choice([-2, -1, 1, 2])))
    return replace(program, decision=replace(program.decision, points=tuple(points))), {number}


def _other_threshold(program, choose):
    bias = (0, program.decision.bias[1] + choose.choice([-2, -1, 1, 2]))
    return replace(program, decision=replace(program.decision, bias=bias)), {"start"}


SHARED = {
    "bound moved": _bound_moved,
    "sign": _sign,
    "condition left out": _condition_left_out,
    "missing passes": _missing_passes,
    "other column": _other_column,
}
LIST_EDITS = {
    **SHARED,
    "branches swapped": _branches_swapped,
    "branch left out": _branch_left_out,
    "other answer": _other_answer,
}
CARD_EDITS = {**SHARED, "points": _other_points, "threshold": _other_threshold}


def sql_of(program):
    """The program as a person would write it."""
    if isinstance(program.decision, Tree):
        rules, last = _rules(program)
        lines = [f"    WHEN {_clause_text(program.clauses[n])} THEN '{CLASSES[label]}'" for n, label in rules]
        return "\n".join(["SELECT id, CASE", *lines, f"    ELSE '{CLASSES[last]}' END AS label", "FROM applications"])
    lines = [
        f"    CASE WHEN {_clause_text(clause)} THEN {worth} ELSE 0 END"
        for clause, (_, worth) in zip(program.clauses, program.decision.points, strict=True)
    ]
    score = " +\n".join(lines)
    least = 1 - program.decision.bias[1]
    return (
        f"SELECT id, CASE WHEN\n{score}\n    >= {least} THEN 'approve' ELSE 'decline' END AS label\nFROM applications"
    )


def _clause_text(clause):
    return " AND ".join(map(_atom_text, clause.atoms))


def _atom_text(atom):
    name, parts = FEATURES[atom.feature], []
    if atom.lo is not None:
        parts.append(f"{name} {'>=' if atom.lo_closed else '>'} {_number(atom.lo)}")
    if atom.hi is not None:
        parts.append(f"{name} {'<=' if atom.hi_closed else '<'} {_number(atom.hi)}")
    text = " AND ".join(parts)
    return f"({text} OR {name} IS NULL)" if atom.if_missing else text


def _number(value):
    return f"{value:.0f}" if value == int(value) else repr(value)


def named_places(changes):
    """What a report names: numbers of clauses, `start`, or `leaf 2`."""
    places = set()
    for change in changes:
        clauses = re.findall(r"clauses? (\d+)(?: and (\d+))?", change.where)
        places |= {int(number) for pair in clauses for number in pair if number}
        places |= set(re.findall(r"leaf \d+", change.where))
        if "start with" in change.where:
            places.add("start")
        if not places:
            places.add(change.where)
    return places


def is_named_right(places, changes):
    """Whether what is named is what was changed, and nothing else."""
    named = named_places(changes)
    return bool(named) and named <= places
