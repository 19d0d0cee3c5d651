"""Random code means the same to a reader and to what runs it: the interpreter, the compiler. No source to compare with."""

import math
import random

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import read
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.checking.reader_artifacts import said_by_python
from tests.counts import count

LEAVES = 6
CUTS = (0.0, 0.1, 1.0, -2.0, 16777217.0, 5e-324)
VALUES = sorted(
    {near for cut in CUTS for near in (below(cut), cut, above(cut), float.fromhex("0x1.99999ap-4"), 16777216.0)}
)


def chain():
    """A program with enough leaves to return any of them; its rules are replaced."""
    tree = leaf(1.0, 0.0)
    for number in range(LEAVES - 1):
        tree = split(0, leaf(*((0.0, 1.0) if number % 2 else (1.0, 0.0))), tree)
    return Program(("a", "b"), ("no", "yes"), (Clause((Interval(0, 1.0), Interval(1, 1.0))),), tree)


def rows(choose, number=120):
    pool = [*VALUES, -0.0, math.inf, -math.inf, math.nan, math.nan]
    return [[choose.choice(pool), choose.choice(pool)] for _ in range(number)]


class Python:
    """Random Python in the part of the language that is read."""

    def __init__(self, choose):
        self.choose, self.names, self.numbers = choose, [], []

    def number(self):
        value = self.choose.choice(CUTS)
        return self.choose.choice((repr(value), repr(above(value)), "1", "0", "-2", "_math.inf", "1e999", "_math.nan"))

    def comparison(self):
        feature = self.choose.choice(("a", "b", "x[0]", "x[-1]"))
        sign = lambda: self.choose.choice(("<", "<=", ">", ">=", "==", "!="))  # noqa: E731
        match self.choose.randrange(5):
            case 0:
                return f"{self.number()} {sign()} {feature} {sign()} {self.number()}"
            case 1:
                return f"{feature} {sign()} {feature}"
            case 2:
                return f"_math.isnan({feature})"
            case 3:
                return f"{self.number()} {sign()} {feature}"
            case _:
                return f"{feature} {sign()} {self.number()}"

    def truth(self, depth=3):
        way = self.choose.randrange(8) if depth else 0
        inner = lambda: self.truth(depth - 1)  # noqa: E731
        match way:
            case 1:
                return f"({inner()} and {inner()})"
            case 2:
                return f"({inner()} or {inner()})"
            case 3:
                return f"(not {inner()})"
            case 4:
                return f"({inner()} if {inner()} else {inner()})"
            case 5:
                return f"(({inner()}) & ({inner()}))"
            case 6:
                return f"(({inner()}) | ({inner()}))"
            case 7 if self.names:
                return self.choose.choice(self.names)
            case _:
                return f"({self.comparison()})"

    def leaf(self):
        whole = str(self.choose.randrange(LEAVES))
        match self.choose.randrange(4):
            case 0:
                return f"{whole} if {self.truth(1)} else {self.choose.randrange(LEAVES)}"
            case 1 if self.numbers:
                return self.choose.choice(self.numbers)
            case _:
                return whole

    def body(self):
        lines = ["    a = x[0]", "    b = x[1]"]
        for number in range(self.choose.randrange(2, 7)):
            match self.choose.randrange(5):
                case 0:
                    lines.append(f"    t{number} = {self.truth()}")
                    self.names.append(f"t{number}")
                case 1:
                    lines.append(f"    n{number} = {self.leaf()}")
                    lines += [f"    if {self.truth()}:", f"        n{number} = {self.leaf()}"]
                    self.numbers.append(f"n{number}")
                case 2:
                    lines += [
                        f"    if {self.truth()}:",
                        f"        if {self.truth()}:",
                        f"            return {self.leaf()}",
                    ]
                    lines += ["    else:", f"        if {self.truth(1)}:", f"            return {self.leaf()}"]
                case 3 if self.names:
                    name = self.choose.choice(self.names)
                    lines += [f"    if {self.truth()}:", f"        {name} = {self.truth()}"]
                case _:
                    lines += [f"    if {self.truth()}:", f"        return {self.leaf()}"]
        return "\n".join([*lines, f"    return {self.leaf()}", ""])


def test_python_means_the_same_to_the_reader_and_the_interpreter():
    choose = random.Random(8)
    source = emit(chain(), "python").files["model.py"].decode()
    start, end = source.index("def _leaf(x):\n") + len("def _leaf(x):\n"), source.index("def _values")
    for _ in range(count("GBFL_RANDOM_CODE", 80)):
        body = Python(choose).body()
        files = {"model.py": f"{source[:start]}{body}\n\n{source[end:]}".encode()}
        (reading,) = read("python", files)
        values = rows(choose)
        found = [run_reading(reading, row) for row in values]
        assert [(answer.label, answer.probabilities, answer.leaf) for answer in found] == said_by_python(
            files, values
        ), body


class C:
    """Random C in the part of the language that is read."""

    def __init__(self, choose, real):
        self.choose, self.real, self.truths, self.numbers, self.masks = choose, real, [], [], []

    def number(self):
        value = self.choose.choice(CUTS)
        spelled = [value.hex(), repr(value), f"{value!r}f", f"{value.hex()}f", "1", "0", "-2", "010", "0x2"]
        text = self.choose.choice(spelled)
        return "0.5" if text.startswith(("5e-324f", "0x0.0000000000001p-1022f")) else text

    def comparison(self):
        feature = self.choose.choice(("x[0]", "x[1]"))
        sign = lambda: self.choose.choice(("<", "<=", ">", ">=", "==", "!="))  # noqa: E731
        match self.choose.randrange(5):
            case 0:
                return f"{feature} {sign()} {feature}"
            case 1:
                return f"{self.number()} {sign()} {feature}"
            case 2:
                return f"({feature} {sign()} {self.number()}) {sign()} {self.choose.randrange(-1, 3)}"
            case _:
                return f"{feature} {sign()} {self.number()}"

    def truth(self, depth=3):
        inner = lambda: self.truth(depth - 1)  # noqa: E731
        match self.choose.randrange(11) if depth else 0:
            case 1:
                return f"({inner()} && {inner()})"
            case 2:
                return f"({inner()} || {inner()})"
            case 3:
                return f"(!{inner()})"
            case 4:
                return f"({inner()} ? {inner()} : {inner()})"
            case 5:
                return f"(({self.comparison()}) & ({self.comparison()}))"
            case 6:
                return f"(({self.comparison()}) | ({self.comparison()}))"
            case 7 if self.truths:
                return self.choose.choice(self.truths)
            case 8:
                return f"(({inner()} ? {self.choose.randrange(3)} : {self.choose.randrange(3)}) {self.choose.choice(('==', '!=', '<', '>='))} 1)"
            case 9:
                return self.choose.choice(("x[0]", "1", "0", "(x[1] && 1)"))
            case _:
                return f"({self.comparison()})"

    def whole(self, depth=2):
        match self.choose.randrange(7) if depth else 0:
            case 1:
                return f"({self.truth(1)} ? {self.whole(depth - 1)} : {self.whole(depth - 1)})"
            case 2:
                one, other = self.choose.randrange(LEAVES), self.choose.randrange(LEAVES)
                return f"({one} ^ (({one} ^ {other}) & -(int64_t)({self.truth(1)})))"
            case 3 if self.numbers:
                other = self.choose.choice(self.numbers)
                one = self.choose.randrange(LEAVES)
                return f"({other} ^ (({other} ^ {one}) & -(int32_t)({self.truth(1)})))"
            case 4 if self.numbers:
                return self.choose.choice(self.numbers)
            case 5 if len(self.numbers) > 1:
                one, other = self.choose.sample(self.numbers, 2)
                return f"((({one} ^ {other}) & -(int64_t){self.truth(1)}) ^ {other})"
            case _:
                return str(self.choose.randrange(LEAVES))

    def body(self):
        lines = []
        for number in range(self.choose.randrange(2, 7)):
            match self.choose.randrange(5):
                case 0:
                    lines.append(f"    const int t{number} = {self.truth()} != 0;")
                    self.truths.append(f"t{number}")
                case 1:
                    lines.append(f"    int64_t n{number} = {self.whole()};")
                    lines.append(f"    if ({self.truth()}) n{number} = {self.whole()};")
                    self.numbers.append(f"n{number}")
                case 2:
                    lines.append(f"    if ({self.truth()}) {{ if ({self.truth()}) return {self.whole(1)}; }}")
                    lines.append(f"    else if ({self.truth(1)}) {{ return {self.whole(1)}; }}")
                case _:
                    lines.append(f"    if ({self.truth()}) {{ return (int32_t){self.whole(1)}; }}")
        return "\n".join([*lines, f"    return (int32_t){self.whole()};", ""])
