"""The audit log: what was meddled with shows, two writers both land, a line is there whole or not at all."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from gbfl_compile.auditing.log import append, end_content, examine, verify
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
def test_a_changed_line_is_found_wherever_it_is(log, at, change):
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


@pytest.mark.parametrize("left", range(5))
def test_a_cut_off_end_is_found(log, left):
    log.write_bytes(b"".join(lines(log)[:left]))
    missing = "line is" if left == 4 else f"{5 - left} lines are"
    assert verify(log) == f"line {left + 1}: the end is cut off: the last {missing} missing, by audits.jsonl.end"
    before = log.read_bytes()
    with pytest.raises(BadInput, match="nothing is added to a broken log"):
        append(log, REPORT)
    assert log.read_bytes() == before


def test_a_log_that_is_gone_is_not_begun_anew(log):
    log.unlink()
    with pytest.raises(BadInput, match="the last 5 lines are missing"):
        append(log, REPORT)


def end_of(log):
    return log.with_name("audits.jsonl.end")


def test_a_missing_or_changed_end_file_is_found(log):
    end = end_of(log).read_bytes()
    assert json.loads(end) == {"lines": 5, "last": json.loads(lines(log)[-1])["hash"]}
    end_of(log).unlink()
    assert verify(log) == "audits.jsonl.end is missing, which says how many lines there are: lines may be too"
    for other in (b"", b"{}", b"[]", b'{"lines":5}', end + end, end.replace(b":5", b": 5"), end.replace(b":5", b":-5")):
        end_of(log).write_bytes(other)
        assert verify(log) == "audits.jsonl.end was changed, or is not of an audit log"
        with pytest.raises(BadInput, match="nothing is added"):
            append(log, REPORT)
    end_of(log).write_bytes(end.replace(b'"last":"', b'"last":"0')[:-4] + b'"}\n')
    assert verify(log) is not None
    end_of(log).write_bytes(end)
    assert verify(log) is None


def test_a_log_cut_to_one_line_is_not_mistaken_for_an_interrupted_first_audit(log):
    log.write_bytes(lines(log)[0])
    end_of(log).unlink()
    assert verify(log) is not None


@pytest.mark.parametrize("count", [1, 3])
def test_an_audit_that_was_interrupted_before_the_end_file_is_explained_and_the_next_one_goes_on(tmp_path, count):
    log = tmp_path / "audits.jsonl"
    for _ in range(count):
        before = end_of(log).read_bytes() if end_of(log).exists() else None
        append(log, REPORT)
    end_of(log).write_bytes(before or b'{"last":"' + b"0" * 64 + b'","lines":0}\n')
    state = examine(log)
    assert (state.problem, state.lines) == (None, count)
    assert state.note == (
        f"audits.jsonl.end is one line behind: an audit was interrupted just after it had added line {count}"
    )
    append(log, REPORT)
    assert (examine(log).problem, examine(log).note, examine(log).lines) == (None, None, count + 1)


def test_lines_beyond_the_end_file_are_found(log):
    old = end_of(log).read_bytes()
    for _ in range(2):
        append(log, REPORT)
    end_of(log).write_bytes(old)
    assert verify(log) == "line 6: audits.jsonl.end ends before it: lines were added by hand"


def test_a_log_written_anew_beside_an_old_end_file_is_found(log, tmp_path):
    other = tmp_path / "other.jsonl"
    for _ in range(5):
        append(other, AuditReport("c" * 64, ()))
    log.write_bytes(other.read_bytes())
    assert verify(log) == "line 5: audits.jsonl.end ends with another: the log was written anew"


def as_form_1(log):
    """The log as an earlier version wrote it, without an .end file."""
    rewritten, before = [], "0" * 64
    for line in lines(log):
        form = {**json.loads(line), "form": 1, "before": before}
        del form["hash"]
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256(text.encode()).hexdigest()
        rewritten.append(json.dumps({**form, "hash": before}, sort_keys=True, separators=(",", ":")) + "\n")
    log.write_text("".join(rewritten))
    end_of(log).unlink()


def test_a_log_of_the_old_form_is_read_and_named_and_gets_its_end_file_with_the_next_line(log):
    as_form_1(log)
    state = examine(log)
    assert (state.problem, state.lines) == (None, 5)
    assert state.note == "a log of an earlier version, without audits.jsonl.end: lines cut off at its end do not show"
    append(log, REPORT)
    assert examine(log).note is None
    log.write_bytes(b"".join(lines(log)[:5]))
    assert verify(log).startswith("line 6: the end is cut off")
    log.write_bytes(b"".join(lines(log)[:3]))
    assert verify(log).startswith("line 4: the end is cut off")


def test_both_files_replaced_together_show_only_against_a_hash_kept_elsewhere(log):
    kept = append(log, REPORT)
    assert verify(log, kept) is None
    before = end_of(log).read_bytes()
    append(log, REPORT)
    assert verify(log, kept) is None, "a log that has grown still has the line"
    latest = json.loads(lines(log)[-1])["hash"]
    log.write_bytes(b"".join(lines(log)[:6]))
    end_of(log).write_bytes(before)
    assert verify(log) is None, "this cannot be seen from the two files alone"
    assert verify(log, latest).startswith("line 7: ")


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


def test_where_the_end_file_cannot_be_written_the_log_is_as_it_was(log):
    before, end = log.read_bytes(), end_of(log).read_bytes()
    end_of(log).unlink()
    end_of(log).mkdir()
    with pytest.raises(BadInput):
        append(log, REPORT)
    assert log.read_bytes() == before
    end_of(log).rmdir()
    end_of(log).write_bytes(end)
    assert verify(log) is None


def test_what_is_not_a_file_is_refused(tmp_path):
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


def test_from_the_command_line_a_cut_off_end_is_found_and_a_replaced_log_by_the_hash_that_was_printed(
    tmp_path, capsys, monkeypatch
):
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
    assert main(["audit-log", "verify", "audits.jsonl"]) == 1
    printed = capsys.readouterr().out
    assert printed == "broken: line 3: the end is cut off: the last line is missing, by audits.jsonl.end\n"
    assert main(["audit-log", "verify", "audits.jsonl", "--expect", hashes[2]]) == 1
    assert "no line has the expected hash" in capsys.readouterr().out
    assert main(["audit-log", "verify", "audits.jsonl", "--json"]) == 1
    form = {"verdict": "broken", "problem": printed[8:-1], "note": None, "lines": 2, "last": hashes[1]}
    assert json.loads(capsys.readouterr().out) == form
    (tmp_path / "audits.jsonl.end").write_bytes(end_content(2, hashes[1]))
    assert main(["audit-log", "verify", "audits.jsonl"]) == 0, "both files were replaced"
    assert main(["audit-log", "verify", "audits.jsonl", "--expect", hashes[1]]) == 0
    assert main(["audit-log", "verify", "audits.jsonl", "--expect", hashes[2]]) == 1
    (tmp_path / "audits.jsonl.end").write_bytes(end_content(1, hashes[0]))
    capsys.readouterr()
    assert main(["audit-log", "verify", "audits.jsonl"]) == 0
    assert "note: audits.jsonl.end is one line behind" in capsys.readouterr().out


def test_an_answer_that_cannot_be_logged_is_still_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    (tmp_path / "model.py").write_bytes(emit(TREE, "python", "model").files["model.py"])
    (tmp_path / "audits.jsonl").write_text("{}\n")
    assert main(["audit", "approved.json", "--file", "model.py", "--log", "audits.jsonl"]) == 2
    printed = capsys.readouterr()
    assert "verdict: equal" in printed.out
    assert "nothing is added to a broken log" in printed.err
    assert (tmp_path / "audits.jsonl").read_text() == "{}\n"
