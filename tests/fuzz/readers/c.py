"""The strict C reader against a compiler: random rules, nested ifs and literals, read and run on rows at their bounds."""

import math
import random
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.backends.c.build import find_compiler
from gbfl_compile.checking.reading.conditions import Choice
from gbfl_compile.checking.reading.evaluate import condition_holds
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c import conditions, lexer
from gbfl_compile.checking.strict.c.conditions import Misfit, Source
from gbfl_compile.checking.strict.c.lexer import tokens
from tests.fuzz.readers.c_texts import FEATURES, KINDS, random_text
from tests.fuzz.readers.sql import Result

TOGETHER = 1000
"""Texts in one program."""

FLAGS = ("-O0", "-O2")
NANS = {"double": (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1), "float": (0x7FC00000, 0xFFC00000, 0x7FC00001)}
BITS = {"double": ("<d", "<Q", "uint64_t"), "float": ("<f", "<I", "uint32_t")}
NUMBERS = (0.0, 1.0, 1.5, 3.0, 0.125, 100.0, 2.0**24, 2.0**-149, 2.0**-126, 2.0**127)
WIDE = (0.1, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**53, 1.0000000000000002)
AFTER = [";", "}"] * 4
"""Tokens that fit nowhere in a rule: what comes after one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A text that was read: what the function around it is to return, row by row, or for every row alike."""

    kind: str
    text: str
    returned: list[int]


def fuzz_c(count, seed=0, seconds=float("inf")):
    """Random texts, read, compiled and run; every disagreement, and what was read or refused."""
    result, until = Result(), time.monotonic() + seconds
    for batch in range(-(-count // TOGETHER)):
        if time.monotonic() > until:
            break
        choose = random.Random(f"c {seed} {batch}")
        _batch(choose, min(TOGETHER, count - batch * TOGETHER), FLAGS[batch % len(FLAGS)], result)
    return result


def _batch(choose, count, flag, result):
    kind = choose.choice(("double", "float"))
    numbers = NUMBERS + (WIDE if kind == "double" else ())
    rows = _rows(choose, kind, choose.sample(numbers, 6))
    trials = []
    for _ in range(count):
        result.counts["texts"] += 1
        text_kind = choose.choices([*KINDS], [*KINDS.values()])[0]
        text = random_text(choose, text_kind, kind, [value for row in rows for value in row if math.isfinite(value)])
        returned = _read(text_kind, text, kind, rows)
        result.counts["strict: refused" if returned is None else "strict: read"] += 1
        if returned is not None:
            trials.append(Trial(text_kind, text, returned))
    for trial, found in zip(trials, _run(kind, rows, trials, flag), strict=True):
        result.counts["runs compared"] += 1
        for number, (expected, returned) in enumerate(zip(trial.returned, found, strict=True)):
            if expected != returned:
                result.disagreements["strict", trial.text] = (
                    f"C {flag}, {kind}, {trial.kind}: {trial.text!r}\n"
                    f"  row {rows[number]}: the program returns {returned}, the reading {expected}"
                )
                break


def _rows(choose, kind, numbers):
    """The numbers with their neighbours, zeros, infinities and NaNs, mixed."""
    real, whole, _ = BITS[kind]
    values = [0.0, -0.0, math.inf, -math.inf]
    values += [struct.unpack(real, struct.pack(whole, bits))[0] for bits in NANS[kind]]
    for number in numbers:
        (bits,) = struct.unpack(whole, struct.pack(real, number))
        near = (struct.unpack(real, struct.pack(whole, each))[0] for each in (bits, bits + 1, max(bits, 1) - 1))
        values += [signed for value in near for signed in (value, -value)]
    return [tuple(choose.choice(values) for _ in range(FEATURES)) for _ in range(2 * len(values))] + [
        (value,) * FEATURES for value in values
    ]


def _read(text_kind, text, kind, rows):
    """What a text comes to in each row, or None where the reader refuses it."""
    try:
        words = tokens(text.encode()).words
        if text_kind in ("rule", "lanes"):
            held, end = conditions.rule(
                [*words, *AFTER], 0, Source(kind, FEATURES), "xi" if text_kind == "lanes" else "x[i]"
            )
            return [int(condition_holds(held, row)) for row in rows] if end == len(words) else None
        if text_kind == "tree":
            answer, end = conditions.nested_ifs([*words, *AFTER], 0, Source(kind, FEATURES))
            return [_follow(answer, row) for row in rows] if end == len(words) else None
    except (Unread, Misfit):
        return None
    return _literal(text_kind, words, kind, len(rows))


def _literal(text_kind, words, kind, count):
    joined = " ".join(words)
    if text_kind == "real":
        number = lexer.real(joined, kind)
        found = None if number is None else struct.unpack(BITS[kind][1], struct.pack(BITS[kind][0], number))[0]
    elif text_kind == "string":
        text = lexer.string(joined) if len(words) == 1 and joined[:1] == '"' else None
        found = None if text is None else _digest(text.encode())
    else:
        number = getattr(lexer, text_kind)(joined)
        found = None if number is None else number % 2**64
    return None if found is None else [found] * count


def _digest(content):
    """A number that differs where two strings do, as the program works it out."""
    found = 5381
    for byte in content:
        found = (found * 33 + byte) % 2**64
    return found


def _follow(answer, row):
    while isinstance(answer, Choice):
        answer = answer.then if condition_holds(answer.condition, row) else answer.otherwise
    return answer


BODIES = {
    "rule": "return (uint64_t)({});",
    "lanes": "const REAL x0 = x[0], x1 = x[1], x2 = x[2]; (void)x0; (void)x1; (void)x2; return (uint64_t)({});",
    "tree": "{}",
    "real": "REAL number = {0}; BITS bits; if (sizeof({0}) != sizeof(REAL)) return 77; memcpy(&bits, &number, sizeof bits); return bits;",
    "string": "return digest({}, sizeof({}) - 1);",
    "whole": "return (uint64_t)(int64_t)({});",
    "unsigned_literal": "return (uint64_t)({});",
    "count": "return (uint64_t)(int)({});",
}

PROGRAM = """#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef {real} REAL;
typedef {bits} BITS;
static uint64_t digest(const char *text, size_t length) {{
    uint64_t found = 5381;
    for (size_t i = 0; i < length; i++) found = found * 33 + (unsigned char)text[i];
    return found;
}}
static const BITS rows[][{features}] = {{ {rows} }};
{functions}
static uint64_t (*const all[])(const REAL *) = {{ {names} }};
int main(void) {{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {{
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {{
            REAL x[{features}];
            memcpy(x, rows[j], sizeof x);
            printf("%llu ", (unsigned long long)all[i](x));
        }}
        puts("");
    }}
    return 0;
}}
"""


def _run(kind, rows, trials, flag):
    """What each text comes to in a program, row by row."""
    real, whole, bits = BITS[kind]
    functions = "".join(
        f"static uint64_t f{number}(const REAL *x) {{ (void)x; {BODIES[trial.kind].format(*[trial.text + chr(10)] * 2)} }}\n"
        for number, trial in enumerate(trials)
    )
    written = ", ".join(
        "{" + ", ".join(f"{struct.unpack(whole, struct.pack(real, value))[0]}u" for value in row) + "}" for row in rows
    )
    if kind == "double":
        written = written.replace("u", "ull")
    names = ", ".join(f"f{number}" for number in range(len(trials)))
    program = PROGRAM.format(real=kind, bits=bits, features=FEATURES, rows=written, functions=functions, names=names)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "texts.c").write_text(program, encoding="ascii")
        command = [*find_compiler().command, "-std=c99", "-w", flag, "texts.c", "-o", "texts"]
        compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise RuntimeError(f"what was read does not compile:\n{compiled.stderr[:2000]}")
        printed = subprocess.run([Path(folder, "texts")], capture_output=True, text=True, check=True, timeout=60).stdout
    return [[int(number) for number in line.split()] for line in printed.splitlines()]
