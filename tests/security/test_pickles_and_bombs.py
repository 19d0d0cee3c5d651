"""Archives that would run code or fill the memory when they are opened: refused before either."""

import gzip
import io
import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box.load import load_black_box
from gbfl_compile.learning.consistency import ARRAYS, Triplets, load_triplets, save_triplets
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.tables.read import read_table


class MakesC:
    """Makes a folder "c" when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("c",)


@pytest.fixture
def sound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.zeros((3, 2))
    path = tmp_path / "triplets.npz"
    flags = np.ones(3, dtype=bool)
    save_triplets(path, Triplets(x, x, x, flags, flags, np.array(["a", "b", "a"]), ("p", "q")))
    assert load_triplets(path).features == ("p", "q")
    return path


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, parts, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def npy(array, **more):
    made = io.BytesIO()
    np.lib.format.write_array(made, np.asarray(array), **more)
    return made.getvalue()


def with_header(content, old, new):
    assert old in content
    return content.replace(old, new.ljust(len(old)) if len(new) <= len(old) else new, 1)


def pickled():
    return npy(np.array([MakesC()], dtype=object), allow_pickle=True)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_pickle_in_triplets_is_not_opened(sound, name):
    written(sound, {**members(sound), f"{name}.npy": pickled()})
    with pytest.raises(BadInput):
        load_triplets(sound)
    assert not Path("c").exists()


def test_a_weakened_reader_opens_it(sound, monkeypatch):
    def trusting(archive, member):
        with archive.open(member) as file:
            return np.lib.format.read_array(file, allow_pickle=True)

    monkeypatch.setattr("gbfl_compile.learning.consistency._array", trusting)
    written(sound, {**members(sound), "label.npy": pickled()})
    with pytest.raises(BadInput):
        load_triplets(sound)
    assert Path("c").exists()


def test_a_pickled_black_box_is_opened_only_on_trust(sound):
    Path("box.pkl").write_bytes(pickle.dumps(MakesC()))
    with pytest.raises(BadInput, match="--trust-pickle"):
        load_black_box("box.pkl", ("a",), np.zeros((1, 1)))
    assert not Path("c").exists()
    load_black_box("box.pkl", ("a",), np.zeros((1, 1)), trust_pickle=True)
    assert Path("c").exists()


def bomb(size):
    """A file of zeros with a header that asks for all of them, small when it is packed."""
    return npy(np.zeros(size // 8))


ABSURD = {
    "a bomb": lambda parts: {**parts, "x.npy": bomb(2_000_000)},
    "a shape without its bytes": lambda parts: {
        **parts,
        "x.npy": with_header(parts["x.npy"], b"(3, 2)", b"(3, 2000000000000)"),
    },
    "a negative shape": lambda parts: {**parts, "x.npy": with_header(parts["x.npy"], b"(3, 2)", b"(-3,)")},
    "a text of a gigabyte": lambda parts: {
        **parts,
        "label.npy": with_header(parts["label.npy"], b"<U1", b"<U999999999"),
    },
    "no header": lambda parts: {**parts, "x.npy": b"\x93NUMPY\x01\x00"},
    "a header without end": lambda parts: {**parts, "x.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b"(" * 10**6},
    "a later version": lambda parts: {**parts, "x.npy": b"\x93NUMPY\x09\x00" + parts["x.npy"][8:]},
    "one besides": lambda parts: {**parts, "../x.npy": parts["x.npy"]},
    "one too few": lambda parts: {name: content for name, content in parts.items() if name != "pn.npy"},
}


@pytest.mark.parametrize("kind", ABSURD)
def test_an_absurd_archive_is_refused(sound, kind, monkeypatch):
    monkeypatch.setattr("gbfl_compile.files.atomic.refuse_bomb.__defaults__", (1_000_000,))
    written(sound, ABSURD[kind](members(sound)))
    with pytest.raises(BadInput):
        load_triplets(sound)
    with pytest.raises(BadInput):
        Explanations.load(sound)


def test_an_archive_that_has_an_array_twice_or_a_password_is_refused(sound):
    parts = members(sound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's, about a name that appears twice
        with zipfile.ZipFile(sound, "w") as archive:
            for name in (*parts, "x.npy"):
                archive.writestr(name, parts[name])
    with pytest.raises(BadInput, match="more than one array 'x'"):
        load_triplets(sound)
    written(sound, parts, zipfile.ZIP_STORED)
    content = bytearray(sound.read_bytes())
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        while at >= 0:
            content[at + flag] |= 1
            at = content.find(mark, at + 4)
    sound.write_bytes(bytes(content))
    with pytest.raises(BadInput, match="encrypted"):
        load_triplets(sound)


def test_a_table_that_unpacks_to_far_more_than_data_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gbfl_compile.tables.read.MOST_TEXT", 1_000_000)
    text = tmp_path / "table.csv.gz"
    text.write_bytes(gzip.compress(b"a\n" + b"0\n" * 1_500_000))
    with pytest.raises(BadInput, match="unpacks to"):
        read_table(text)
    monkeypatch.setattr("gbfl_compile.tables.read._refuse_text_bomb", lambda path: None)
    assert len(read_table(text)) == 1_500_000, "a weakened reader takes it all in"


def test_a_parquet_table_of_a_billion_equal_numbers_is_refused(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"a": pa.array(np.zeros(3_000_000))}), path, compression="zstd")
    monkeypatch.setattr("gbfl_compile.files.atomic.refuse_bomb.__defaults__", (1_000_000,))
    with pytest.raises(BadInput, match="unpacks to 24,000,000 bytes"):
        read_table(path)
    monkeypatch.setattr("gbfl_compile.tables.read._refuse_parquet_bomb", lambda path: None)
    assert len(read_table(path)) == 3_000_000, "a weakened reader takes it all in"


def test_ordinary_data_is_not_a_bomb(tmp_path):
    """Equal rows, packed as small as they get."""
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0.5,1\n" * 300_000))
    assert len(read_table(path)) == 300_000


def test_a_skops_file_that_unpacks_to_far_more_than_a_model_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="pip install 'gbfl-compile[skops]'")
    path = tmp_path / "box.skops"
    written(path, {"schema.json": b"{}" + b" " * 5_000_000})
    monkeypatch.setattr("gbfl_compile.files.atomic.refuse_bomb.__defaults__", (1_000_000,))
    with pytest.raises(BadInput, match="unpacks to"):
        load_black_box(str(path), ("a",), np.zeros((1, 1)))
    for schema in (
        b"[" * 100_000,
        b"{}",
        b'{"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}',
        b"",
    ):
        written(path, {"schema.json": schema})
        with pytest.raises(BadInput):
            load_black_box(str(path), ("a",), np.zeros((1, 1)))
