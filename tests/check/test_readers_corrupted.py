"""Readers given broken artifacts: they refuse or read, and never do anything else; nothing of an artifact is run."""

import random
import sys
import time

import pytest

from gbfl_compile.check.readers import read
from gbfl_compile.check.reading import Reading, Unread
from tests.check.reader_artifacts import count, random_artifact

SHARE = {"python": 0.4, "c": 0.1, "onnx": 0.5}
"""Of all corrupted artifacts: C takes the longest to read."""

SLOWEST = 20.0
"""Seconds for one of these small artifacts, on a machine that has other things to do."""


def corrupted(choose, content):
    """Bytes with something broken in them."""
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        match choose.choice(
            ("flip", "flip", "byte", "cut", "insert", "drop line", "repeat line", "swap lines", "repeat part")
        ):
            case "flip" if content:
                at = choose.randrange(len(content))
                content = content[:at] + bytes((content[at] ^ (1 << choose.randrange(8)),)) + content[at + 1 :]
            case "byte" if content:
                at = choose.randrange(len(content))
                content = content[:at] + bytes((choose.randrange(256),)) + content[at + 1 :]
            case "cut":
                content = content[: choose.randrange(len(content) + 1)]
            case "insert":
                at = choose.randrange(len(content) + 1)
                content = content[:at] + choose.choice(INSERTED) + content[at:]
            case "drop line":
                lines = content.split(b"\n")
                del lines[choose.randrange(len(lines))]
                content = b"\n".join(lines)
            case "repeat line":
                lines = content.split(b"\n")
                lines.insert(choose.randrange(len(lines)), choose.choice(lines))
                content = b"\n".join(lines)
            case "swap lines":
                lines = content.split(b"\n")
                i, j = choose.randrange(len(lines)), choose.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
                content = b"\n".join(lines)
            case "repeat part":
                at = choose.randrange(len(content) + 1)
                content = content[:at] + content[at : at + 40] * choose.choice((2, 50)) + content[at:]
    return content


INSERTED = (
    b"(" * 3000,
    b"!" * 3000,
    b"not " * 3000,
    b"{" * 500,
    b"[" * 5000,
    b"-" * 9000,
    b"1" * 5000,
    b"9e99999999999",
    b"0x1p999999999",
    b"\x00",
    b"\xff\xfe",
    b'"',
    b"'''",
    b"/*",
    b"\\\n",
    b"import os\nos.abort()\n",
    b"#include </dev/zero>\n",
    b"#define double float\n",
    b"\xf0\x9f\x92\xa5",
    b"if 1:" * 200,
    b" if (1) {" * 200,
    b"a and " * 5000,
)


@pytest.mark.parametrize("target", SHARE)
def test_a_broken_artifact_is_refused_or_read_and_nothing_else(target):
    choose = random.Random(6)
    read_anyway = 0
    for number in range(int(count("GBFL_CORRUPTIONS", 1_500) * SHARE[target])):
        if number % 50 == 0:
            artifacts = [random_artifact(choose, target)[1].files for _ in range(3)]
        files = dict(choose.choice(artifacts))
        name = choose.choice([*files, *(name for name in files if name.startswith("model."))])
        files[name] = corrupted(choose, files[name])
        began = time.monotonic()
        try:
            readings = read(target, files)
        except Unread:
            pass
        else:
            read_anyway += 1
            assert all(isinstance(reading, Reading) for reading in readings)
        assert time.monotonic() - began < SLOWEST
    assert read_anyway, "every artifact was refused: the test breaks too much to say anything"


ARMED = """
import sys
class Trap:
    def __class_getitem__(cls, item): raise SystemExit(99)
sys.exit(98)
"""


def test_nothing_of_a_module_is_run(capsys):
    """Not its top level, not its decorators, not its defaults."""
    _, artifact = random_artifact(random.Random(7), "python")
    source = artifact.files["model.py"].decode()
    before = set(sys.modules)
    for hostile in (
        f"{ARMED}\n{source}",
        source.replace("def predict(row):", "@print\ndef predict(row):"),
        source.replace("def predict(row):", "def predict(row=print('run')):"),
        source.replace("CLASSES = (", "CLASSES = (print('run'),"),
        source.replace("def predict(row):", "def predict(row: print('run')):"),
        source + "\nprint('run')\n",
        source.replace("import math as _math", "import antigravity as _math"),
    ):
        assert hostile != source
        with pytest.raises(Unread):
            read("python", {"model.py": hostile.encode()})
    assert capsys.readouterr().out == ""
    assert not {"antigravity"} & (set(sys.modules) - before)


@pytest.mark.parametrize("target", ["python", "c", "onnx"])
def test_nothing_and_too_much_are_refused(target):
    for files in ({}, {"model.py": b""}, {"model.onnx": b""}, {"model.c": b""}, {"a": b"", "b": b""}):
        with pytest.raises(Unread):
            read(target, files)
    with pytest.raises(Unread, match="bytes"):
        read(target, {"model.py": bytes(65 * 2**20)})
