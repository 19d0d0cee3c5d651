"""Several processes with one output folder and one cache: each finds complete artifacts, and the last one remains."""

import random
import shutil
import subprocess
import threading

import pytest

from gbfl_compile.backends import emit, write_artifact, write_artifacts
from gbfl_compile.errors import CannotRun
from gbfl_compile.files import atomic
from gbfl_compile.files.atomic import (
    clear_leftovers,
    files_together,
    one_writer,
    temporary_folder,
    unfinished_file,
    unfinished_folder,
    while_unchanged,
)
from gbfl_compile.ir.json import save
from tests.faults.running import GBFL, OTHER, PROGRAM, contents, strays, surroundings

ROUNDS = 4
TARGETS = "python,c,sql:sqlite"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_processes_that_compile_and_score_at_once_do_not_spoil_each_other(tmp_path):
    save(PROGRAM, tmp_path / "a.json")
    save(OTHER, tmp_path / "b.json")
    (tmp_path / "d.csv").write_text(
        "age,income,weight\n" + "".join(f"{n % 90},{n / 100},{n % 7}\n" for n in range(5000))
    )
    environment = surroundings(tmp_path)

    def begin(*arguments):
        return subprocess.Popen(
            [*GBFL, *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    expected = []
    for name in ("a", "b"):
        for arguments in (
            ["compile", f"{name}.json", "--to", TARGETS, "-o", name],
            ["score", f"{name}/c", "d.csv", "-o", f"{name}.csv"],
        ):
            process = begin(*arguments)
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
        expected.append((contents(tmp_path / name), (tmp_path / f"{name}.csv").read_bytes()))
    whole, tables = zip(*expected, strict=True)
    assert tables[0] != tables[1]
    shutil.copytree(tmp_path / "a", tmp_path / "build")
    for _ in range(ROUNDS):
        shutil.rmtree(tmp_path / "cache")
        running = [
            begin("compile", f"{name}.json", "--to", TARGETS, "-o", "build") for name in random.sample("aabb", 4)
        ]
        running += [begin("score", "build/c", "d.csv", "-o", "s.csv") for _ in range(2)]
        for process in running:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
        assert contents(tmp_path / "build") in whole
        assert (tmp_path / "s.csv").read_bytes() in tables
        assert strays(tmp_path) == []
        assert len(list((tmp_path / "cache").iterdir())) <= 2  # one built scorer a program


def test_a_reader_never_finds_files_of_two_artifacts(tmp_path):
    one, other = (emit(program, "c").files for program in (PROGRAM, OTHER))
    assert sum(one[name] != other[name] for name in one) > 1
    folder = tmp_path / "c"
    write_artifact(emit(PROGRAM, "c"), tmp_path)
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            seen.append(while_unchanged(folder, lambda: {name: (folder / name).read_bytes() for name in one}))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(100):
        write_artifact(emit((OTHER, PROGRAM)[number % 2], "c"), tmp_path)
    stop.set()
    for reader in readers:
        reader.join()
    assert seen
    assert all(found in (one, other) for found in seen)


@pytest.mark.parametrize("at_once", [True, False], ids=["exchanged", "set aside"])
def test_what_else_lies_in_the_folder_stays(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(atomic, "_exchange_atomically", lambda *_: False)
    folder = tmp_path / "c"
    write_artifacts([emit(PROGRAM, "c"), emit(PROGRAM, "c", "second")], tmp_path)
    (folder / "notes").mkdir()
    (folder / "notes/mine.txt").write_text("keep")
    (folder / "link.txt").symlink_to("notes/mine.txt")
    (folder / "model.c").chmod(0o640)
    folder.chmod(0o750)
    write_artifact(emit(OTHER, "c"), tmp_path)
    assert (folder / "link.txt").is_symlink()
    assert (folder / "link.txt").read_text() == "keep"
    assert {name: (folder / name).read_bytes() for name in emit(OTHER, "c").files} == emit(OTHER, "c").files
    second = emit(PROGRAM, "c", "second").files
    assert {name: (folder / name).read_bytes() for name in second} == second
    assert (folder.stat().st_mode & 0o777, (folder / "model.c").stat().st_mode & 0o777) == (0o750, 0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_folder_that_was_set_aside_by_a_killed_process_is_brought_back(tmp_path):
    write_artifact(emit(PROGRAM, "c", "second"), tmp_path)
    before = contents(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / f".c{atomic.SET_ASIDE}")
    write_artifact(emit(PROGRAM, "c"), tmp_path)
    assert contents(tmp_path / "c") == {**before, **emit(PROGRAM, "c").files}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_failure_before_the_end_changes_no_folder(tmp_path):
    write_artifacts([emit(PROGRAM, "c"), emit(PROGRAM, "python")], tmp_path)
    before = contents(tmp_path)

    def fail():
        with (
            files_together(tmp_path / "c", emit(OTHER, "c").files),
            files_together(tmp_path / "new", {"a": b"", "b": b""}),
        ):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "python"]


def test_an_artifact_that_is_there_already_is_not_written_again(tmp_path):
    write_artifact(emit(PROGRAM, "c"), tmp_path)
    before = {path.name: path.stat() for path in (tmp_path / "c").iterdir()}
    write_artifact(emit(PROGRAM, "c"), tmp_path)
    assert {path.name: path.stat() for path in (tmp_path / "c").iterdir()} == before


def test_a_linked_folder_is_followed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "c").symlink_to("other")
    for program in (PROGRAM, OTHER):
        write_artifact(emit(program, "c"), tmp_path)
        assert (tmp_path / "c").is_symlink()
        assert contents(tmp_path / "other") == emit(program, "c").files


def test_leftovers_go_and_what_is_being_made_stays(tmp_path):
    (tmp_path / ".old.1234abcd.gbfl-partial").write_bytes(b"half")
    (tmp_path / ".folder.1234abcd.gbfl-partial").mkdir()
    (tmp_path / ".folder.1234abcd.gbfl-partial/half").write_bytes(b"half")
    (tmp_path / "not ours.gbfl-partial").write_bytes(b"")
    with unfinished_file(tmp_path / "new.csv") as file, unfinished_folder(tmp_path, "new") as folder:
        (folder / "inside").write_bytes(b"")
        clear_leftovers(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([file, folder, tmp_path / "not ours.gbfl-partial"])
    assert [path.name for path in tmp_path.iterdir()] == ["not ours.gbfl-partial"]
    clear_leftovers(tmp_path / "no such folder")


def test_a_writer_that_never_ends_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "LOCK_SECONDS", 0.1)
    with one_writer(tmp_path), pytest.raises(CannotRun, match="another process has been writing there"):
        write_artifact(emit(PROGRAM, "python"), tmp_path)


def test_a_temporary_folder_is_gone_with_its_block(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_folder("work") as folder:
        (folder / "a/b").mkdir(parents=True)
        assert list(tmp_path.rglob("b")) == [folder / "a/b"]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(CannotRun, match="name another in TMPDIR"), temporary_folder("work"):
        pass
