"""The attacks on each target: names and labels that try to become code, and how to tell whether they succeed.

Each attack is in a table of its target, with the text, a way to weaken the target, and what happens then. It must hold
against the target as it is, and be seen to succeed against the weakened one: a test that cannot fail shows nothing.
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

KINDS = (
    "single quote",
    "double quote",
    "backslash",
    "newline",
    "carriage return",
    "comment",
    "template",
    "template block",
    "format",
    "percent",
    "nul",
    "surrogate",
    "escape sequence",
    "form feed",
    "next line",
    "line separator",
    "right to left",
    "trigraph",
    "names meet",
    "markup",
)

# Makes a folder "9" where it is rendered, without a quote that some target would escape, and short enough for a report.
TEMPLATE = "{{lipsum.__globals__.os.mkdir(9|string)}}"

RAW = {
    "escape sequence": "\x1b[2J\x1b[31mred",
    "form feed": "a\x0cb",
    "next line": "a\x85b",
    "line separator": "a\u2028b\u2029c",
    "right to left": "a\u202eb\u2066c",
}
"""Characters that a terminal, an editor or a reviewer takes for something else."""

BENIGN = {
    "single quote": "it's 'so'",
    "double quote": 'say "hi"',
    "backslash": "back\\slash\\",
    "newline": "a\nb",
    "carriage return": "a\rb",
    "comment": '*/ -- # // /* """ <!--',
    "template": TEMPLATE,
    "template block": "{% raw %}{# x",
    "format": "{0} {name} {column!r:>{width}}",
    "percent": "100%% %s %(x)d %n",
    "nul": "a\0b",
    "surrogate": "a\ud800b",
    **RAW,
    "trigraph": "??/ ??' ??<",
    "names meet": "label",
    "markup": "<script>window.canary = 1</script>",
}
"""A text of each kind that asks for nothing: it has to come out as it went in."""


REFUSED = ("nul", "surrogate")
"""What no target can write is not a name at all."""


@dataclass(frozen=True)
class Attack:
    """One text in the place of a feature's name, a label, or both; how the target is weakened, and what is then seen."""

    text: str
    weakened: Callable
    """Takes pytest's monkeypatch."""
    seen: str
    place: str = "both"
    beside: str = "plain"
    """The other feature's name."""
    sound: str = "held"
    """What comes of it in the target as it is: it is held off, or refused with a reason."""


@dataclass(frozen=True)
class Harmless:
    """Why a kind of attack has nothing to break in a target; its text still has to come out as it went in."""

    because: str


ROWS = np.array(list(itertools.product((0.0, 1.0, math.nan), repeat=2)))


def program_of(text, place="both", beside="plain"):
    """A tree that asks two features and gives two labels, one of each being the text; only the second appears once."""
    feature = text if place in ("both", "feature") else "asked"
    label = text if place in ("both", "label") else "yes"
    clauses = (Clause((Interval(0, 0.5),)), Clause((Interval(1, 0.5),)))
    tree = split(0, leaf(1.0, 0.0), split(1, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    metadata = {"name": text} if place == "name" else {}
    return Program((feature, beside), (label, text if place == "second label" else "no"), clauses, tree, metadata)


def labels_of(program):
    """What the program answers on the rows, by its definition."""
    from gbfl_compile.ir.evaluate import evaluate

    return [evaluate(program, row).label for row in ROWS.tolist()]


def every_kind(attacks):
    """A target's table, complete: no kind is forgotten."""
    assert list(attacks) == list(KINDS)
    return attacks


def texts(attacks):
    """(text, place, beside, outcome) of all that a target must hold against: each attack, and a plain text of each kind."""
    made = []
    for kind, attack in attacks.items():
        plainly = "refused" if kind in REFUSED else "held"
        made.append(pytest.param(BENIGN[kind], "both", "plain", plainly, id=kind))
        if isinstance(attack, Attack):
            sound = plainly if attack.sound == "held" else attack.sound
            made.append(pytest.param(attack.text, attack.place, attack.beside, sound, id=f"{kind}, armed"))
    return made


def armed(attacks):
    """Those that can be seen to succeed."""
    return {kind: attack for kind, attack in attacks.items() if isinstance(attack, Attack)}


def code_ran(folder):
    """Whether an attack left its mark: a file or folder of one of these names."""
    return any((folder / name).exists() for name in ("c", "9"))


def unprintable(text):
    """Characters of a file that are neither printed nor ordinary line ends."""
    return sorted({letter for letter in text if not letter.isprintable() and letter not in "\n\t"})


# Weak spots that several targets share.


def anything_goes(monkeypatch):
    """Names with NUL and lone surrogates are let through."""
    monkeypatch.setattr("gbfl_compile.ir.validate._check_text", lambda where, text: None)


def nothing_escaped(monkeypatch):
    """Names in rules are printed as they are."""
    monkeypatch.setattr("gbfl_compile.ir.text.printable", lambda name: name)


def rendered_twice(monkeypatch):
    """What a template gave is taken for a template again."""
    from gbfl_compile.backends import base as templates

    sound = templates.render

    def render(name, values):
        return templates._environment().from_string(sound(name, values).decode()).render().encode()

    for module in ("python", "c", "sql", "js"):
        monkeypatch.setattr(f"gbfl_compile.backends.{module}.render", render)


def cleaned_only(program):
    """Variables as the features are called, whether or not two are called alike."""
    return {number: re.sub("[^A-Za-z0-9]+", "_", name) for number, name in enumerate(program.features)}


def all_of(*weak):
    def weakened(monkeypatch):
        for each in weak:
            each(monkeypatch)

    return weakened


def put(path, replacement):
    """A weak spot that is one function replaced."""

    def weakened(monkeypatch):
        monkeypatch.setattr(path, replacement)

    return weakened
