"""Files are written whole or not at all."""

import os
import stat
import threading

import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import make_folder, whole_file, write_whole


def test_a_file_is_written_with_its_folder(tmp_path):
    write_whole(tmp_path / "a/b/c.txt", b"whole")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"whole"
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.txt"]


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "f.txt"
    path.write_bytes(b"old")

    def fail_half_way():
        with whole_file(path) as partial:
            partial.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["f.txt"]


def test_the_mode_is_the_old_files_or_the_usual_one(tmp_path):
    path = tmp_path / "f.txt"
    write_whole(path, b"1")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o600)
    write_whole(path, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file/x", tmp_path):
        with pytest.raises(BadInput, match=r"cannot be written|is a folder"):
            write_whole(path, b"")
    with pytest.raises(BadInput, match="cannot be written"):
        make_folder(tmp_path / "file/x")
    make_folder(tmp_path / "new/folder")
    assert list((tmp_path / "new/folder").iterdir()) == []


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "f.bin"
    contents = [bytes([letter]) * 200_000 for letter in b"abcdefgh"]
    writers = [threading.Thread(target=write_whole, args=(path, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert [found.name for found in tmp_path.iterdir()] == ["f.bin"]


def test_a_link_is_followed_and_a_pipe_is_left_alone(tmp_path):
    (tmp_path / "real.txt").write_bytes(b"old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_whole(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="and is not replaced"):
        write_whole(tmp_path / "pipe", b"")
