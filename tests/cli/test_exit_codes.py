"""Every exit code in the one table of docs/auditing.md really occurs, and no command's help names another."""

import contextlib
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gbfl_compile.cli.entry import main
from gbfl_compile.cli.flags import BAD_USAGE, COULD_NOT_RUN, DIFFERENT, EQUAL, INTERRUPTED, NOBODY_READS

ROOT = Path(__file__).parent.parent.parent
LOANS = ROOT / "examples" / "audit"
SQL = """SELECT CASE WHEN income >= 50000 AND age >= 25 AND age < 65.5 THEN CASE WHEN debt < 0.35 THEN 'yes' ELSE 'no' END
WHEN years >= 2 AND debt >= 0.1 AND debt <= 0.9 THEN 'maybe'
WHEN (age <= 30.25 OR age IS NULL) AND income >= 20000 AND income < 90000 THEN 'maybe' ELSE 'no' END AS label FROM applications"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "loans.gbfl.json").write_bytes((LOANS / "loans.gbfl.json").read_bytes())
    (tmp_path / "other.gbfl.json").write_bytes((LOANS / "loans-candidate.gbfl.json").read_bytes())
    (tmp_path / "equal.sql").write_text(SQL)
    (tmp_path / "different.sql").write_text(SQL.replace("years >= 2", "years > 2"))
    (tmp_path / "unread.sql").write_text("SELECT decide(income) AS label FROM applications")
    return tmp_path


def code_of(folder, *words):
    with contextlib.chdir(folder):
        return main(list(words))


SQLITE = ("--dialect", "sqlite")
AUDITS = {
    "equal": (EQUAL, "audit", "loans.gbfl.json", "equal.sql", *SQLITE),
    "different": (DIFFERENT, "audit", "loans.gbfl.json", "--file", "different.sql", *SQLITE),
    "bad usage": (BAD_USAGE, "audit", "loans.gbfl.json", "--no-such-option"),
    "bad input": (BAD_USAGE, "audit", "missing.gbfl.json", "equal.sql", *SQLITE),
    "unread": (COULD_NOT_RUN, "audit", "loans.gbfl.json", "unread.sql", *SQLITE),
    "not run": (COULD_NOT_RUN, "audit", "loans.gbfl.json", "equal.sql", "--dialect", "oracle"),
    "not proved": (COULD_NOT_RUN, "audit", "loans.gbfl.json", "equal.sql", *SQLITE, "--require", "proved"),
    "diff equal": (EQUAL, "diff", "loans.gbfl.json", "loans.gbfl.json"),
    "diff different": (DIFFERENT, "diff", "loans.gbfl.json", "other.gbfl.json"),
}


@pytest.mark.parametrize("case", AUDITS)
def test_each_code_occurs(folder, case):
    expected, *words = AUDITS[case]
    assert code_of(folder, *words) == expected


def test_a_broken_log_and_a_whole_one(folder):
    words = ("audit", "loans.gbfl.json", "equal.sql", *SQLITE, "--log", "audits.jsonl")
    assert code_of(folder, *words) == EQUAL
    assert code_of(folder, "audit-log", "verify", "audits.jsonl") == EQUAL
    log = folder / "audits.jsonl"
    log.write_text(log.read_text().replace('"equal"', '"different"'))
    assert code_of(folder, "audit-log", "verify", "audits.jsonl") == DIFFERENT


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_ends_it_with_128_and_its_number(folder, number, expected):
    (folder / "scorer.py").write_text("import time\n\ndef score(rows):\n    time.sleep(60)\n")
    command = [sys.executable, "-m", "gbfl_compile", "audit", "loans.gbfl.json", "--call", "scorer:score"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(5)
        process.send_signal(number)
        assert process.wait(30) == expected


def test_a_reader_that_is_gone(folder):
    command = f"{sys.executable} -m gbfl_compile show loans.gbfl.json; echo $? > code"
    with subprocess.Popen(
        ["sh", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        process.stdout.close()
        process.wait(30)
    assert int((folder / "code").read_text()) == NOBODY_READS


def test_the_table_has_every_code_and_no_other():
    text = (ROOT / "docs" / "auditing.md").read_text()
    table = text[text.index("## Exit codes") : text.index("## In pipelines")]
    codes = {
        int(code)
        for line in table.splitlines()
        if (first := re.match(r"\| ([\d, ]+) \|", line))
        for code in first[1].split(",")
    }
    assert codes == {EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED, 128 + signal.SIGTERM, NOBODY_READS}
