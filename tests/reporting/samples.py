"""Programs, verdicts and audits for the tests of reports: a tree, a rule set of 300 clauses, hostile names."""

import itertools
import math
import random
from html.parser import HTMLParser

from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.validate import validate

VOID = {"meta", "rect", "path", "circle", "br"}


class Page(HTMLParser):
    """The elements of a page, its text, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.words, self.open, self.headings = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


HOSTILE = "<script>alert(1)</script>"
"""A name that would run if it were ever taken for markup."""

ATTRIBUTE = '"><img src=x onerror=alert(2)>'
"""A name that would end an attribute."""


def histogram(draw):
    values = sorted(draw.gauss(0, 1) for _ in range(200))
    edges = [values[0] + (values[-1] - values[0]) * step / 12 for step in range(13)]
    counts = [sum(a <= value < b for value in values) for a, b in itertools.pairwise(edges)]
    return {"edges": edges, "counts": counts}


def random_clause(draw, features):
    atoms = []
    for feature in draw.sample(range(features), draw.randint(1, 4)):
        lo, hi = sorted((draw.gauss(0, 1), draw.gauss(0, 1)))
        side = draw.randrange(3)
        atoms.append(
            Interval(feature, lo if side else None, hi if side != 1 else None, if_missing=draw.random() < 0.05)
        )
    return Clause(tuple(atoms))


def rule_set(clauses=300, classes=("galaxy", "quasar", "star"), features=30, seed=1):
    """A large rule set with all the metadata that a report can show."""
    draw = random.Random(seed)
    names = tuple(f"feature_{number:02d}_mean" for number in range(features))
    rules = tuple(random_clause(draw, features) for _ in range(clauses))
    points = tuple(tuple(int(draw.gauss(0, 700)) for _ in classes) for _ in rules)
    figures = {
        "test": {"c_tb": 88.9, "c_tb_right": 889, "c_tb_of": 1000, "c_pp": 95.0, "accuracy": 0.931},
        "baselines": {"tree on the data": {"c_tb": 3.6, "accuracy": 0.92}, "distilled": {"c_tb": 5.3}},
        "by_clauses": [
            {"clauses": n, "c_tb": 90 * (1 - math.exp(-n / 40)), "accuracy": 0.93} for n in (1, 5, 20, 80, 300)
        ],
    }
    metadata = {
        "name": "sky survey",
        "figures": figures,
        "histograms": {name: histogram(draw) for name in names},
        "reasons": {"0": "Too far from the ecliptic"},
        "mining": {"clause_support": list(range(clauses))},
    }
    return validate(Program(names, classes, rules, Scorecard((0,) * len(classes), points, 10), metadata))


def small_tree(features=("age", "income"), classes=("no", "yes"), metadata=None):
    """Two questions, three answers."""
    clauses = (Clause((Interval(0, 30.0),)), Clause((Interval(1, None, 2.5, if_missing=True), Interval(0, 1.0, 70.0))))
    tree = split(0, leaf(0.25, 0.75, rows=40), split(1, leaf(1.0, 0.0, rows=7), leaf(0.5, 0.5, rows=3)))
    return validate(Program(features, classes, clauses, tree, metadata or {}))


def rule_list(rules=300):
    """A tree as deep as it has rules."""
    draw = random.Random(3)
    tree = leaf(0.5, 0.5, rows=9)
    for number in range(rules):
        tree = split(number, leaf(1.0, 0.0, rows=number), tree)
    clauses = tuple(random_clause(draw, 8) for _ in range(rules))
    return validate(Program(tuple(f"x{number}" for number in range(8)), ("no", "yes"), clauses, tree))


RAN = {"engine": "CPython 3.11", "rows": 5612, "different": 0, "first": None}
PROVED = {"answer": "proved", "readings": [{"place": "predict", "answer": "proved", "aspects": {}, "seconds": 0.01}]}


def target(program, verdict="equal", proof="not run", execution="not run", **more):
    form = {"verdict": verdict, "digest": digest(program), "digest_matches": True, "proof": proof}
    return {**form, "execution": execution, "consistency": "not run", **more}


def verdict_of(program, **targets):
    return {"verdict": "equal", "program": digest(program), "targets": targets}


def different(program):
    """A target that differs, with the row that shows it."""
    row = dict.fromkeys(program.features, 0.1) | {program.features[0]: None}
    sides = {"source": {"label": 1, "leaf": 0}, "target": {"label": "1", "leaf": 2}}
    execution = {"engine": "gcc 12", "rows": 5612, "different": 3, "first": {"row": row, **sides}}
    aspects = {"labels": {"answer": "counterexample", "row": {name: (2.5).hex() for name in row}, **sides}}
    proof = {"answer": "counterexample", "readings": [{"place": "x", "answer": "counterexample", "aspects": aspects}]}
    return target(program, "different", proof, execution)


def audit_of(program, changes=1):
    """An audit that found differences, in the form `gbfl audit --json` has."""
    first = program.features[0]
    listed = [
        {"where": f"clause {n}", "approved": f"{first} < 0.74", "deployed": f"{first} <= 0.74", "text": "…"}
        for n in range(changes)
    ]
    audited = {
        "what": "view scores in DuckDB",
        "kind": "view",
        "verdict": "different" if changes else "equal",
        "evidence": "counterexample" if changes else "proved",
        "reason": None,
        "digest": None,
        "digest_matches": None,
        "fingerprint": "ab" * 32,
        "engine": "DuckDB",
        "proof": "not run" if changes else PROVED,
        "execution": "not run",
        "rows": "not run",
        "consistency": "not run",
        "differences": listed,
        "region": {"rule": f"{first} = 0.74", "row": {first: 0.74}, "approved": "star", "deployed": "quasar"}
        if changes
        else None,
        "moved": {"rows": 12, "of": 1000, "moves": [{"approved": "star", "deployed": "quasar", "rows": 12}]}
        if changes
        else None,
    }
    return {
        "schema": 1,
        "verdict": audited["verdict"],
        "source": digest(program),
        "audited": [audited],
    }
