"""One token changed, at every place of an artifact: refused, shown to differ, or really the same when built and run.

GBFL_TOKEN_EDITS=1 pytest tests/checking/strict/c/test_edits.py -s     every edit, and the counts
"""

import itertools
import math
import os
import random
from collections import Counter

import pytest

from gbfl_compile.ir.intervals import above, below
from tests.backends.c.programs import CARD, TREE, needs_a_compiler
from tests.checking.strict.c.edits import files_of, public_answers, token_edits, verdict
from tests.counts import FULL

ONE_IN = int(os.environ.get("GBFL_TOKEN_EDITS") or (12 if FULL else 48))
MOST_BUILT = 12 if ONE_IN > 1 else 10_000
CASES = {
    "tree select": (TREE, {"kernel": "select"}),
    "tree select float32": (TREE, {"kernel": "select", "dtype": "float32"}),
    "tree ifelse": (TREE, {"kernel": "ifelse"}),
    "rules select": (CARD, {"kernel": "select"}),
    "rules bits": (CARD, {"kernel": "bits", "dtype": "float32"}),
    "rules ifelse": (CARD, {"kernel": "ifelse"}),
}


def rows_around(program):
    cuts = [{0.0, math.nan, math.inf, -math.inf} for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            for bound in (atom.lo, atom.hi):
                cuts[atom.feature] |= set() if bound is None else {below(bound), bound, above(bound)}
    return list(itertools.product(*(sorted(own, key=repr) for own in cuts)))


@needs_a_compiler
@pytest.mark.parametrize("case", CASES)
def test_an_edit_of_one_token_is_never_proved_unless_nothing_changes(case, tmp_path):
    program, options = CASES[case]
    files = files_of(program, **options)
    rows = rows_around(program)
    (tmp_path / "own").mkdir()
    own = public_answers(files, rows, program, tmp_path / "own")
    assert own["selftest"] == 0
    counts, alike = Counter(), []
    for name in ("model.c", "model.h"):
        edits = token_edits(random.Random(case), files[name].decode())
        for what, text in itertools.islice(edits, random.Random(case).randrange(ONE_IN), None, ONE_IN):
            changed = {**files, name: text.encode()}
            answer = verdict(program, changed)
            counts[answer] += 1
            if answer == "proved":
                alike.append((f"{name} {what}", changed))
    for number, (what, changed) in enumerate(alike[:MOST_BUILT]):
        folder = tmp_path / str(number)
        folder.mkdir()
        answers = public_answers(changed, rows, program, folder)
        assert answers == own, what  # the self-test too: what it expects is held against the program
    assert counts["unread"] > 0.9 * counts.total() > 100
    assert counts["proved"] < 0.02 * counts.total()
    print(case, dict(counts))  # noqa: T201 - asked for with -s


@pytest.mark.parametrize("case", CASES)
def test_a_line_gone_or_there_twice_is_never_proved(case):
    program, options = CASES[case]
    files = files_of(program, **options)
    choose = random.Random(case)
    lines = files["model.c"].decode().split("\n")
    code = [number for number, line in enumerate(lines) if line.strip() and "*" not in line[:4] and "void)" not in line]
    for number in choose.sample(code, 40):
        for there in ([], [lines[number]] * 2):
            if "GBFL_PREFETCH" in lines[number] or ("GBFL_CLONES" in lines[number] and not there):
                continue
            changed = "\n".join([*lines[:number], *there, *lines[number + 1 :]])
            assert verdict(program, {**files, "model.c": changed.encode()}) != "proved", lines[number]


def test_a_changed_runtime_is_refused_at_every_token():
    files = files_of(TREE, kernel="ifelse")
    edits = list(token_edits(random.Random(0), files["gbfl.h"].decode()))
    for what, text in edits[::7]:
        assert verdict(TREE, {**files, "gbfl.h": text.encode()}) == "unread", what
