"""Random small programs, the same programs written differently, and programs with one slip: inputs for the provers."""

import math
from dataclasses import replace

from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import And, Ask, Not, Or, Outcome, PointDecision, Reading, StepDecision, Test
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import Values, above, below
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.validate import validate
from gbfl_compile.passes import optimise

CUTS = (-1.5, 0.0, 0.1, 1.0, 1.0000000000000002, 2.0)
MISSING_ONLY = Values(math.inf, -math.inf, True)


def random_interval(choose, feature, cuts=CUTS):
    ends = sorted(choose.sample(cuts, 2))
    lo, hi = choose.choice([(ends[0], None), (None, ends[1]), (ends[0], ends[1]), (ends[0], ends[0]), (None, None)])
    closed = choose.choice(("left", "left", "right", "both", "neither"))
    if lo is not None and lo == hi:
        closed = "both"
    if closed == "neither" and lo is not None and hi is not None and above(lo) == hi:
        closed = "left"
    return Interval(feature, lo, hi, closed, choose.random() < 0.25)


def random_clause(choose, features, cuts=CUTS):
    used = choose.sample(range(features), choose.randint(0 if choose.random() < 0.1 else 1, min(3, features)))
    return Clause(tuple(random_interval(choose, feature, cuts) for feature in used))


def random_tree(choose, clauses, classes, depth):
    if depth == 0 or choose.random() < 0.15:
        weights = [choose.randint(0, 2) for _ in range(classes)]
        weights[choose.randrange(classes)] += 1
        return leaf(*(weight / sum(weights) for weight in weights))
    sides = [random_tree(choose, clauses, classes, depth - 1) for _ in range(2)]
    return split(choose.randrange(clauses), *sides)


def random_list(choose, clauses, classes):
    tree = random_tree(choose, clauses, classes, 0)
    for clause in choose.sample(range(clauses), clauses):
        tree = split(clause, random_tree(choose, clauses, classes, 0), tree)
    return tree


def random_program(choose, kind, features=3, most_clauses=5, cuts=CUTS):
    """A legal program of a `kind`: tree, list or scorecard."""
    classes = choose.choice((2, 2, 3))
    clauses = tuple(random_clause(choose, features, cuts) for _ in range(choose.randint(1, most_clauses)))
    if kind in ("scorecard", "banded"):
        row = lambda: tuple(choose.randint(-4, 4) for _ in range(classes))  # noqa: E731
        decision = Scorecard(row(), tuple(row() for _ in clauses), choose.randint(0, 3))
        if kind == "banded":
            decision = replace(decision, bands=tuple(random_bands(choose, classes) for _ in range(classes)))
    elif kind == "list":
        decision = random_list(choose, len(clauses), classes)
    else:
        decision = random_tree(choose, len(clauses), classes, choose.randint(1, 4))
    return validate(Program(tuple(f"x{i}" for i in range(features)), tuple(range(classes)), clauses, decision))


def random_bands(choose, classes):
    """The bands of one class; few different constants, so that neighbours are often equal."""
    leads = [0, *sorted(choose.sample(range(1, 9), choose.randint(0, 4)))]
    weights = [[choose.randint(0, 2) for _ in range(classes - 1)] + [1] for _ in leads]
    return tuple(Band(least, tuple(w / sum(own) for w in own)) for least, own in zip(leads, weights, strict=True))


def respelled(choose, program):
    """A reading equal to the program by construction."""
    if choose.random() < 0.3:
        smaller = optimise(program)
        same_leaves = as_reading(smaller) if isinstance(program.decision, Scorecard) else _without_leaves(smaller)
        return _respelled_reading(choose, same_leaves)
    return _respelled_reading(choose, as_reading(program))


def _without_leaves(program):
    """The passes number leaves anew: what an optimised tree says is labels and probabilities."""
    reading = as_reading(program)
    steps = (replace(step, leaf=None) if isinstance(step, Outcome) else step for step in reading.decision.steps)
    return replace(reading, decision=StepDecision(tuple(steps)))


def _respelled_reading(choose, reading):
    if isinstance(reading.decision, PointDecision):
        terms = [(condition_respelled(choose, condition), points) for condition, points in reading.decision.terms]
        bias = reading.decision.bias
        if terms and choose.random() < 0.4:  # p points where it holds: p to begin with, and -p where it does not
            condition, points = terms.pop(choose.randrange(len(terms)))
            terms.append((Not(condition), tuple(-p for p in points)))
            bias = tuple(b + p for b, p in zip(bias, points, strict=True))
        if terms and choose.random() < 0.4:  # half of the points twice
            condition, points = terms.pop(choose.randrange(len(terms)))
            terms += [(condition, tuple(p - 1 for p in points)), (condition, (1,) * len(points))]
        choose.shuffle(terms)
        return replace(reading, decision=replace(reading.decision, bias=bias, terms=tuple(terms)))
    decided = reading.decision
    if choose.random() < 0.3:
        decided = flattened(choose, decided)
    return replace(reading, decision=StepDecision(tuple(_step_respelled(choose, step) for step in decided.steps)))


def flattened(choose, decided):
    """A tree as a list of cases, one per leaf, in any order: each tests its whole path."""
    cases = []
    waiting = [(0, ())]
    while waiting:
        index, path = waiting.pop()
        step = decided.steps[index]
        if isinstance(step, Outcome):
            cases.append((And(path), step))
        else:
            waiting.append((step.then, (*path, step.condition)))
            waiting.append((step.otherwise, (*path, Not(step.condition))))
    choose.shuffle(cases)
    steps = []
    for condition, outcome in cases[:-1]:
        steps += [Ask(condition, len(steps) + 1, len(steps) + 2), outcome]
    return StepDecision((*steps, cases[-1][1]))


def _step_respelled(choose, step):
    if isinstance(step, Outcome):
        return step
    condition = condition_respelled(choose, step.condition)
    if choose.random() < 0.3:
        return Ask(Not(condition), step.otherwise, step.then)
    return Ask(condition, step.then, step.otherwise)


def condition_respelled(choose, condition):
    """The same condition in other words."""
    match condition:
        case Test(feature, values):
            respelling = _test_respelled(choose, feature, values)
        case Not(part):
            respelling = Not(condition_respelled(choose, part))
        case And(parts):
            inner = [condition_respelled(choose, part) for part in parts]
            choose.shuffle(inner)
            if inner and choose.random() < 0.3:
                inner = [inner[0], And(tuple(inner[1:])), inner[0]]
            respelling = Not(Or(tuple(Not(part) for part in inner))) if choose.random() < 0.3 else And(tuple(inner))
        case Or(parts):
            respelling = Not(And(tuple(Not(condition_respelled(choose, part)) for part in parts)))
    return Not(Not(respelling)) if choose.random() < 0.1 else respelling


def _test_respelled(choose, feature, values):
    if len(values) != 1 or choose.random() < 0.5:
        return Test(feature, values)
    [piece] = values
    outside = []
    if piece.least > piece.most:
        outside.append(Values(-math.inf, math.inf, not piece.missing))
    else:
        if piece.least > -math.inf:
            outside.append(Values(-math.inf, below(piece.least), False))
        if piece.most < math.inf:
            outside.append(Values(above(piece.most), math.inf, False))
        if not piece.missing:
            outside.append(MISSING_ONLY)
    if choose.random() < 0.5:
        return Not(Test(feature, tuple(outside)))
    parts = tuple(Not(Test(feature, (part,))) for part in outside)
    return And(parts)


FLIPPED = {"left": "right", "right": "both", "both": "neither", "neither": "left"}


def mutated(choose, program):
    """A reading of the program with one slip in it (which may by luck change no answer)."""
    while True:
        slip = _slip(choose, program)
        if isinstance(slip, Reading):
            return slip
        try:
            return as_reading(validate(slip))
        except BadInput:
            continue


def _slip(choose, program):
    places = [(c, a) for c, clause in enumerate(program.clauses) for a in range(len(clause.atoms))]
    what = choose.random()
    if what < 0.6 and places:
        c, a = choose.choice(places)
        atoms = list(program.clauses[c].atoms)
        atoms[a] = _atom_slip(choose, atoms[a])
        if choose.random() < 0.1:
            del atoms[a]
        return replace(program, clauses=(*program.clauses[:c], Clause(tuple(atoms)), *program.clauses[c + 1 :]))
    if isinstance(program.decision, Scorecard):
        return _card_slip(choose, program, program.decision)
    nodes = list(program.decision.nodes)
    n = choose.randrange(len(nodes))
    if isinstance(nodes[n], Leaf):
        nodes[n] = Leaf(nodes[n].probabilities[::-1])
        return replace(program, decision=Tree(tuple(nodes)))
    if choose.random() < 0.5:
        nodes[n] = Split(choose.randrange(len(program.clauses)), nodes[n].then, nodes[n].otherwise)
        return replace(program, decision=Tree(tuple(nodes)))
    reading = as_reading(program)
    steps = list(reading.decision.steps)
    steps[n] = Ask(steps[n].condition, steps[n].otherwise, steps[n].then)
    return replace(reading, decision=StepDecision(tuple(steps)))


def _atom_slip(choose, atom):
    bounds = [side for side in ("lo", "hi") if getattr(atom, side) is not None]
    what = choose.random()
    if what < 0.5 and bounds:
        side = choose.choice(bounds)
        return replace(atom, **{side: choose.choice((above, below))(getattr(atom, side))})
    if what < 0.7:
        return replace(atom, closed=FLIPPED[atom.closed])
    if what < 0.9:
        return replace(atom, if_missing=not atom.if_missing)
    return replace(atom, **{choose.choice(bounds): None}) if bounds else replace(atom, lo=0.1)


def band_slip(choose, card):
    """The rule set with one slip in its bands: an edge moved, constants swapped, a last bit, a band left out."""
    c = choose.randrange(len(card.bands))
    own = list(card.bands[c])
    i = choose.randrange(len(own))
    match choose.randrange(4):
        case 0:
            own[i] = replace(own[i], least=own[i].least + choose.choice((-1, 1)))
        case 1:
            own[i] = replace(own[i], probabilities=own[i].probabilities[::-1])
        case 2:
            first, *rest = own[i].probabilities
            own[i] = replace(own[i], probabilities=(below(first) if first else above(first), *rest))
        case _:
            del own[i]
    return replace(card, bands=(*card.bands[:c], tuple(own), *card.bands[c + 1 :]))


def _card_slip(choose, program, card):
    reading = as_reading(program)
    if card.bands and choose.random() < 0.7:
        return replace(program, decision=band_slip(choose, card))
    if choose.random() < 0.3:
        return replace(reading, decision=replace(reading.decision, tie_to="higher"))
    if choose.random() < 0.2 and not card.bands:
        return replace(reading, decision=replace(reading.decision, scale=card.scale + 1))
    i, c = choose.randrange(len(card.points)), choose.randrange(len(card.bias))
    row = list(card.points[i])
    row[c] += choose.choice((-1, 1))
    return replace(program, decision=replace(card, points=(*card.points[:i], tuple(row), *card.points[i + 1 :])))


def as_tree(choose, program):
    """A rule set's labels as a tree that asks every clause, in any order."""
    order = choose.sample(range(len(program.clauses)), len(program.clauses))

    def grown(question, scores):
        if question == len(order):
            best = max(range(len(scores)), key=lambda c: (scores[c], -c))
            return leaf(*(1.0 if c == best else 0.0 for c in range(len(scores))))
        clause = order[question]
        more = [score + p for score, p in zip(scores, program.decision.points[clause], strict=True)]
        return split(clause, grown(question + 1, more), grown(question + 1, scores))

    return replace(program, decision=grown(0, list(program.decision.bias)))
