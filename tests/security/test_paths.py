"""Names and links that would like to lead elsewhere: nothing is written or read outside of the folder that was named."""

import os

import pytest

from gbfl_compile.backends import artifact_folders, emit, load_artifact, write_artifact
from gbfl_compile.backends.base import Artifact
from gbfl_compile.checking.artifact import artifact_files
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import load, save
from tests.security.attacks import program_of

ELSEWHERE = (
    "../evil",
    "/tmp/evil",
    "..",
    ".",
    "a/b",
    "a\\b",
    "evil\0",
    "evil\n",
    "~",
    "$HOME",
    "-o",
    "con:",
    "",
    "é",
    "a.b",
)
PROGRAM = program_of("asked")
TARGETS = ("python", "c", "onnx", "sql:duckdb")


@pytest.fixture
def place(tmp_path):
    """A folder to write to, beside one that is nobody's business."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "model.py").write_text("precious")
    save(PROGRAM, tmp_path / "program.json")
    return tmp_path


def untouched(place):
    private = place / "private"
    return list(private.iterdir()) == [private / "model.py"] and (private / "model.py").read_text() == "precious"


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("target", TARGETS)
def test_an_artifact_is_not_called_a_path(name, target, place):
    with pytest.raises(BadInput, match="the name"):
        emit(PROGRAM, target, name)
    before = sorted(place.rglob("*"))
    if "\0" not in name:
        code = main(
            ["compile", str(place / "program.json"), "--to", target, "-o", str(place / "out"), f"--name={name}"]
        )
        assert code == 2
    assert sorted(place.rglob("*")) == before


def test_a_weakened_name_lands_elsewhere(place, monkeypatch):
    monkeypatch.setattr("gbfl_compile.backends.artifact_name", lambda name: name)
    monkeypatch.setattr("gbfl_compile.backends.refuse_leading_out", lambda path, folder: None)
    write_artifact(emit(PROGRAM, "python", "../../private/evil"), place / "out")
    assert (place / "private" / "evil.py").exists()


@pytest.mark.parametrize("name", ["../../../private/model.py", "../../../../evil", "/etc/evil"])
def test_an_artifact_with_files_elsewhere_is_not_written(name, place):
    """Whoever made the Artifact: its files belong below the folder."""
    with pytest.raises(BadInput, match="leads out"):
        write_artifact(Artifact("python", "model", {"model.py": b"", name: b""}, ""), place / "out" / "deeper")
    assert untouched(place)
    assert not list(place.glob("out/**/*.py"))


def linked_file(place):
    (place / "out" / "python").mkdir(parents=True)
    (place / "out" / "python" / "model.py").symlink_to(place / "private" / "model.py")


def linked_folder(place):
    (place / "out").mkdir()
    (place / "out" / "python").symlink_to(place / "private")


@pytest.mark.parametrize("link", [linked_file, linked_folder])
def test_a_link_in_the_output_is_not_followed_out_of_it(link, place):
    link(place)
    with pytest.raises(BadInput, match="leads out"):
        write_artifact(emit(PROGRAM, "python"), place / "out")
    assert untouched(place)


@pytest.mark.parametrize("link", [linked_file, linked_folder])
def test_a_weakened_writer_follows_it(link, place, monkeypatch):
    monkeypatch.setattr("gbfl_compile.backends.refuse_leading_out", lambda path, folder: None)
    link(place)
    write_artifact(emit(PROGRAM, "python"), place / "out")
    assert not untouched(place)


def test_a_link_that_stays_in_the_folder_is_fine(place):
    """As they stand in a volume that is swapped whole: python/model.py leads to ..data/model.py beside it."""
    folder = place / "out" / "python"
    write_artifact(emit(PROGRAM, "python"), place / "out")
    (folder / "..data").mkdir()
    (folder / "model.py").rename(folder / "..data" / "model.py")
    (folder / "model.py").symlink_to("..data/model.py")
    assert load_artifact(folder).features == PROGRAM.features


def test_a_link_in_an_artifact_is_not_read_out_of_it(place):
    linked_file(place)
    with pytest.raises(BadInput, match="leads out"):
        load_artifact(place / "out" / "python")
    with pytest.raises(BadInput, match="leads out"):
        artifact_files(place / "out" / "python" / "model.py", ".py")
    assert main(["check", str(place / "program.json"), str(place / "out")]) == 2


def test_a_weakened_reader_reads_it(place, monkeypatch):
    monkeypatch.setattr("gbfl_compile.checking.artifact.refuse_leading_out", lambda path, folder: None)
    linked_file(place)
    assert artifact_files(place / "out" / "python" / "model.py", ".py") == {"model.py": b"precious"}


def test_pipes_and_devices_in_an_artifact_are_not_opened(place):
    """Opening a pipe that nobody writes to would wait for ever."""
    write_artifact(emit(PROGRAM, "python"), place / "out")
    folder = place / "out" / "python"
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(folder / "other.txt")
    assert list(artifact_files(folder / "model.py", ".py")) == ["model.py"]
    assert load_artifact(folder).features == PROGRAM.features
    os.mkfifo(place / "out" / "sql-duckdb")
    assert set(artifact_folders(place / "out")) == {"python"}


def test_a_device_without_end_is_cut_off(monkeypatch):
    from pathlib import Path

    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero here")
    monkeypatch.setattr("gbfl_compile.ir.json.LARGEST_FILE", 10_000)
    with pytest.raises(BadInput, match="at most 10000 are read"):
        load(Path("/dev/zero"))


def test_a_file_too_large_is_refused_before_it_is_read(place):
    write_artifact(emit(PROGRAM, "python"), place / "out")
    folder = place / "out" / "python"
    with (folder / "notes.txt").open("wb") as file:
        file.truncate(3 * 2**30)
    with pytest.raises(BadInput, match="at most"):
        artifact_files(folder / "model.py", ".py")
    (folder / "notes.txt").unlink()
    with (folder / "model.py").open("ab") as file:
        file.truncate(3 * 2**30)
    with pytest.raises(BadInput, match="at most"):
        load_artifact(folder)


def test_a_hidden_file_is_not_a_second_artifact(place):
    """Copies from a Mac leave ._model.py behind."""
    write_artifact(emit(PROGRAM, "python"), place / "out")
    folder = place / "out" / "python"
    (folder / "._model.py").write_bytes(b"\0\5\26\7")
    assert load_artifact(folder).features == PROGRAM.features
    assert list(artifact_files(folder / "model.py", ".py")) == ["model.py"]
