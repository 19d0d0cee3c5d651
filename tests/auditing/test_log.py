"""The audit log: what was meddled with shows, two writers both land, a line is there whole or not at all."""

import json
import os
import subprocess
import sys

import pytest

from gbfl_compile.auditing.log import append, examine, verify
from gbfl_compile.auditing.verdict import AuditReport, DeployedVerdict
from gbfl_compile.backends import emit
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import save
from tests.auditing.tampering import TREE

REPORT = AuditReport(
    "a" * 64, (DeployedVerdict("model.sql", "file", "equal", fingerprint="b" * 64, engine="DuckDB 2.0.0"),)
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "logs" / "audits.jsonl"
    for _ in range(5):
        append(path, REPORT)
    return path


def lines(log):
    return log.read_bytes().splitlines(keepends=True)


def test_a_line_says_when_what_by_which_and_with_which_verdict(log):
    form = json.loads(lines(log)[1])
    assert form["time"].endswith("Z")
    assert (form["number"], form["source"], form["verdict"]) == (2, "a" * 64, "equal")
    assert form["audited"][0]["engine"] == "DuckDB 2.0.0"
    assert form["audited"][0]["fingerprint"] == "b" * 64
    assert form["audited"][0]["evidence"] == "not run"
    assert form["before"] == json.loads(lines(log)[0])["hash"]


def test_an_untouched_log_verifies_and_so_does_an_empty_one(log, tmp_path):
    assert verify(log) is None
    (tmp_path / "empty").touch()
    assert verify(tmp_path / "empty") is None


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("change", ["verdict", "time", "space", "key twice"])
def test_a_changed_line_is_found_wherever_it_stands(log, at, change):
    changed = lines(log)
    old, new = {
        "verdict": (b'"verdict":"equal"', b'"verdict":"different"'),
        "time": (b'"time":"2', b'"time":"3'),
        "space": (b",", b", "),
        "key twice": (b'{"audited"', b'{"form":1,"audited"'),
    }[change]
    changed[at] = changed[at].replace(old, new, 1)
    log.write_bytes(b"".join(changed))
    assert verify(log).startswith(f"line {at + 1}: ")


@pytest.mark.parametrize("at", range(4))
def test_a_removed_line_is_found(log, at):
    log.write_bytes(b"".join(line for i, line in enumerate(lines(log)) if i != at))
    assert verify(log).startswith(f"line {at + 1}: ")


@pytest.mark.parametrize("at", range(6))
def test_an_inserted_line_is_found(log, at):
    put_in = lines(log)
    put_in.insert(at, put_in[2])
    log.write_bytes(b"".join(put_in))
    assert verify(log) is not None


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 3), (3, 4)])
def test_lines_in_another_order_are_found(log, a, b):
    moved = lines(log)
    moved[a], moved[b] = moved[b], moved[a]
    log.write_bytes(b"".join(moved))
    assert verify(log).startswith(f"line {a + 1}: ")


@pytest.mark.parametrize(
    "end", [b"\n", b"\n\n", b"{}\n", b"[1]\n", b"\xff\n", b"null\n", b'{"hash":1}\n', b"[" * 9999 + b"\n"]
)
def test_anything_added_by_hand_is_found(log, end):
    log.write_bytes(log.read_bytes() + end)
    assert verify(log).startswith("line 6: ")


def test_a_cut_off_end_shows_only_against_a_hash_kept_elsewhere(log):
    kept = append(log, REPORT)
    assert verify(log, kept) is None
    append(log, REPORT)
    assert verify(log, kept) is None, "a log that has grown still has the line"
    log.write_bytes(b"".join(lines(log)[:4]))
    assert verify(log) is None, "this cannot be seen from the file alone"
    assert verify(log, kept).startswith("line 5: ")


def test_a_log_written_anew_shows_only_against_a_hash_kept_elsewhere(log, tmp_path):
    kept = json.loads(lines(log)[-1])["hash"]
    other = tmp_path / "anew"
    for _ in range(5):
        append(other, AuditReport("c" * 64, ()))
    assert verify(other) is None
    assert verify(other, kept) is not None


def test_nothing_is_added_to_a_broken_log(log):
    log.write_bytes(log.read_bytes().replace(b"equal", b"eqal!", 1))
    before = log.read_bytes()
    with pytest.raises(BadInput, match="line 1: it was changed; nothing is added to a broken log"):
        append(log, REPORT)
    assert log.read_bytes() == before


def test_a_line_that_was_only_half_written_is_found(log):
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    assert verify(log).startswith("line 5: it breaks off")
    with pytest.raises(BadInput, match="breaks off"):
        append(log, REPORT)


def test_two_processes_at_once_both_land(tmp_path):
    code = """
import sys
from pathlib import Path
from gbfl_compile.auditing.verdict import AuditReport
from gbfl_compile.auditing.log import append
for number in range(15):
    append(Path(sys.argv[1]), AuditReport(sys.argv[2] * 64, ()))
"""
    log = tmp_path / "both.jsonl"
    both = [subprocess.Popen([sys.executable, "-c", code, str(log), letter]) for letter in "ab"]
    assert [process.wait(60) for process in both] == [0, 0]
    assert verify(log) is None
    sources = [json.loads(line)["source"][0] for line in lines(log)]
    assert (sources.count("a"), sources.count("b")) == (15, 15)


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path):
    code = """
import resource, signal, sys
from pathlib import Path
from gbfl_compile.auditing.verdict import AuditReport
from gbfl_compile.auditing.log import append
from gbfl_compile.errors import BadInput
log = Path(sys.argv[1])
append(log, AuditReport("a" * 64, ()))
size = log.stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
try:
    append(log, AuditReport("a" * 64, ()))
except BadInput as error:
    assert "the log is as it was" in str(error)
    assert log.stat().st_size == size
else:
    raise AssertionError("it fitted")
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "log")], check=True)
    assert verify(tmp_path / "log") is None


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        append(tmp_path, REPORT)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="is not a file"):
        append(tmp_path / "pipe", REPORT)
    with pytest.raises(BadInput, match="No such file"):
        verify(tmp_path / "absent")


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_a_crash_in_the_middle_of_a_line_is_found_and_the_lines_before_it_are_still_good(log, left):
    whole = log.read_bytes()
    last = lines(log)[-1]
    log.write_bytes(whole[: -len(last)] + last[:left])
    found = examine(log)
    assert found.problem.startswith("line 5: it breaks off")
    assert (found.lines, found.last) == (4, json.loads(lines(log)[3])["hash"])


def test_a_process_that_is_killed_while_it_appends_leaves_whole_lines(tmp_path):
    code = """
import sys
from pathlib import Path
from gbfl_compile.auditing.verdict import AuditReport
from gbfl_compile.auditing.log import append
while True:
    append(Path(sys.argv[1]), AuditReport("a" * 64, ()))
    print("added", flush=True)
"""
    log = tmp_path / "killed.jsonl"
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code, str(log)], stdout=subprocess.PIPE, text=True)
        for _ in range(20):
            assert process.stdout.readline() == "added\n"
        process.kill()
        process.wait()
        process.stdout.close()
        assert verify(log) is None
    assert examine(log).lines >= 60


def test_from_the_command_line_a_cut_off_end_is_found_by_the_hash_that_was_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    (tmp_path / "model.py").write_bytes(emit(TREE, "python", "model").files["model.py"])
    command = ["audit", "approved.json", "--file", "model.py", "--log", "audits.jsonl"]
    hashes = []
    for _ in range(3):
        assert main(command) == 0
        hashes.append(capsys.readouterr().out.rpartition("with the hash ")[2].strip())
    assert main(["audit-log", "verify", "audits.jsonl"]) == 0
    assert f"whole: 3 lines, each following from the one before; the last has the hash {hashes[2]}" in (
        capsys.readouterr().out
    )
    log = tmp_path / "audits.jsonl"
    log.write_bytes(b"".join(lines(log)[:2]))
    assert main(["audit-log", "verify", "audits.jsonl"]) == 0, "a cut-off end cannot be seen from the file alone"
    assert main(["audit-log", "verify", "audits.jsonl", "--expect", hashes[1]]) == 0
    assert main(["audit-log", "verify", "audits.jsonl", "--expect", hashes[2]]) == 1
    assert "no line has the expected hash" in capsys.readouterr().out
    assert main(["audit-log", "verify", "audits.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"verdict": "whole", "problem": None, "lines": 2, "last": hashes[1]}


def test_an_answer_that_cannot_be_logged_is_still_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    (tmp_path / "model.py").write_bytes(emit(TREE, "python", "model").files["model.py"])
    (tmp_path / "audits.jsonl").write_text("{}\n")
    assert main(["audit", "approved.json", "--file", "model.py", "--log", "audits.jsonl"]) == 2
    told = capsys.readouterr()
    assert "verdict: equal" in told.out
    assert "nothing is added to a broken log" in told.err
    assert (tmp_path / "audits.jsonl").read_text() == "{}\n"
