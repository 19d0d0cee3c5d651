"""Hostile names and labels through the C target: built by a real compiler as strict C99, trigraphs and all, and run."""

import json
import shutil
import subprocess

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.c.expressions import LONGEST_ENUMERATOR
from gbfl_compile.errors import BadInput
from tests.security.attacks import (
    RAW,
    ROWS,
    TEMPLATE,
    Attack,
    Harmless,
    all_of,
    anything_goes,
    armed,
    code_ran,
    every_kind,
    labels_of,
    nothing_escaped,
    program_of,
    put,
    rendered_twice,
    texts,
    unprintable,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler: apt-get install gcc")

MAIN = r"""
#include <stdio.h>
#include <math.h>
#include "model.h"
static void said(const char *text)
{
    for (; text && *text; text++) { printf("%02x", (unsigned)(unsigned char)*text); }
    printf("\n");
}
int main(void)
{
    const double values[3] = {0.0, 1.0, NAN};
    for (int i = 0; i < model_FEATURES; i++) { said(model_feature(i)); }
    for (int i = 0; i < model_CLASSES; i++) { said(model_label(i)); }
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            const double row[2] = {values[a], values[b]};
            said(model_label(model_predict(row)));
        }
    }
    return model_selftest();
}
"""

CREATES_C = 'extern int creat(const char *, unsigned); creat("c", 384);'
"""Code that leaves a file "c", in a function."""

MKDIRS_C = "extern int mkdir(const char *, unsigned); mkdir((const char[]){99, 0}, 448);"
"""The same without a quote."""

AT_START = (
    'extern int creat(const char *, unsigned); __attribute__((constructor)) static void s(void) { creat("c", 384); }'
)
"""The same outside of one."""

STRINGS, COMMENTS = "gbfl_compile.backends.c.string", "gbfl_compile.backends.c.comment"
NAIVE = put(STRINGS, lambda text: f'"{text}"')
QUOTES_ESCAPED = put(STRINGS, lambda text: '"' + text.replace('"', '\\"') + '"')
BACKSLASHES_TOO = put(STRINGS, lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
OPEN_COMMENTS = put(COMMENTS, lambda text: text)


def enumerators_by_name(prefix, features):
    import re

    return [f"{prefix}_x_{re.sub('[^A-Za-z0-9]+', '_', name)[:LONGEST_ENUMERATOR]}" for name in features]


ATTACKS = every_kind(
    {
        "single quote": Harmless("a string of C ends at a double quote"),
        "double quote": Attack(f'", 0}}; {CREATES_C} static const char *const more[] = {{"', NAIVE, "code ran"),
        "backslash": Attack(
            f'\\", 0}}; {MKDIRS_C} static const char *const more[] = {{0, //', QUOTES_ESCAPED, "code ran"
        ),
        "newline": Attack("a\n#error\n", NAIVE, "does not run"),
        "carriage return": Attack("a\rb", all_of(nothing_escaped, OPEN_COMMENTS), "raw character"),
        "comment": Attack(f"*/ {AT_START} /*", OPEN_COMMENTS, "code ran", "second label"),
        "template": Attack(TEMPLATE, all_of(rendered_twice, OPEN_COMMENTS), "code ran"),
        "template block": Attack("{% raw %}", all_of(rendered_twice, OPEN_COMMENTS), "does not run"),
        "format": Harmless("nothing is formatted: names are numbers of bytes when the file is written"),
        "percent": Harmless("no name is ever given to printf as its format"),
        "nul": Attack("a\0b", anything_goes, "other names"),
        "surrogate": Attack("a\ud800b", anything_goes, "does not run"),
        **{kind: Attack(text, all_of(nothing_escaped, OPEN_COMMENTS), "raw character") for kind, text in RAW.items()},
        "trigraph": Attack(
            f'??/", 0}}; {MKDIRS_C} static const char *const more[] = {{0, //', BACKSLASHES_TOO, "code ran"
        ),
        "names meet": Attack(
            "a b", put("gbfl_compile.backends.c.enumerators", enumerators_by_name), "does not run", "feature", "a-b"
        ),
        "markup": Harmless("a source is not a page"),
    }
)


def outcome(program, folder):
    """What came of emitting the program, building the sources and running them."""
    try:
        files = emit(program, "c").files
    except BadInput:
        return "refused"
    except Exception:
        return "code ran" if code_ran(folder) else "does not run"
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "main.c").write_text(MAIN)
    flags = ["-std=c99", "-w", "-ffp-contract=off", "-O0", "-o", "scorer", "main.c", "model.c", "-lm"]
    built = subprocess.run(["gcc", *flags], cwd=folder, capture_output=True)
    run = subprocess.run(["./scorer"], cwd=folder, capture_output=True, text=True) if not built.returncode else built
    if code_ran(folder):
        return "code ran"
    if run.returncode:
        return "does not run"
    printed = [bytes.fromhex(line).decode("utf-8", "replace") for line in run.stdout.splitlines()]
    if printed[:4] != [*program.features, *program.classes]:
        return "other names"
    if printed[4:] != labels_of(program) or len(printed[4:]) != len(ROWS):
        return "another answer"
    return "raw character" if any(unprintable(content.decode()) for content in files.values()) else "held"


@pytest.mark.parametrize(("text", "place", "beside", "expected"), texts(ATTACKS))
def test_a_hostile_name_stays_a_name(text, place, beside, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outcome(program_of(text, place, beside), tmp_path) == expected


@pytest.mark.parametrize("kind", armed(ATTACKS))
def test_the_attack_succeeds_against_a_weakened_target(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack = ATTACKS[kind]
    attack.weakened(monkeypatch)
    assert outcome(program_of(attack.text, attack.place, attack.beside), tmp_path) == attack.seen


def test_names_reach_a_build_system_only_where_they_are_plain():
    """Files for CMake, Arduino and PlatformIO carry the artifact's name and nothing of the program's."""
    for layout in ("cmake", "arduino", "platformio"):
        files = emit(program_of(TEMPLATE), "c", options={"layout": layout}).files
        others = {name: content for name, content in files.items() if not name.endswith((".c", ".h"))}
        assert others
        assert not any(b"lipsum" in content for content in others.values()), json.dumps(sorted(others))
