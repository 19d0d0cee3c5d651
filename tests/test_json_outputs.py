"""`--json` prints what docs/json.md documents: every documented key is present, and no top-level key is undocumented."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from gbfl_compile.cli.entry import gbfl, main
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

DOCUMENT = (Path(__file__).parent.parent / "docs" / "json.md").read_text(encoding="utf-8")

COMMANDS = {
    "init": "init loans",
    "mine": "mine loans/loans.csv --target default --train gbm --rows 300 --head tree -o mined.json --triplets t.npz",
    "show": "show mined.json",
    "show --row": "show mined.json --row loans/new.csv",
    "reasons": "reasons mined.json",
    "compile": "compile mined.json --to python,c -o build",
    "check": "check mined.json build --triplets t.npz",
    "lint": "lint odd.json",
    "score": "score build/python loans/new.csv -o scored.csv",
    "audit": "audit mined.json --file build/python/model.py --log audits.jsonl --evidence evidence",
    "audit-log verify": "audit-log verify audits.jsonl",
    "audit-evidence verify": "audit-evidence verify evidence",
    "diff": "diff mined.json mined.json",
    "report": "report mined.json -o report.html",
    "sizes": "sizes build/c/model.c",
    "doctor": "doctor",
    "demo": "demo --out demo",
}
"""The heading in the document -> a command. They run in this order, in one folder."""

ODD = Program(("x",), ("no", "yes"), (Clause((Interval(0, 1.0),)),), split(0, leaf(1.0, 0.0), leaf(1.0, 0.0)))
"""A split that decides nothing: something for lint to find."""


def documented_keys():
    """Heading -> the keys its table names."""
    _, *sections = re.split(r"^### `gbfl (.*?)`$", DOCUMENT, flags=re.MULTILINE)
    keys = {}
    for heading, text in zip(sections[::2], sections[1::2], strict=True):
        cells = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
        keys[heading] = [key for cell in cells for key in re.findall(r"`([^`]+)`", cell)]
    return keys


def has_key(form, key):
    """Whether a JSON form has a dotted key; `*` is every name, `[]` every item, and there must be at least one."""
    if not key:
        return True
    step, _, rest = key.partition(".")
    name, brackets, _ = step.partition("[]")
    if name == "*":
        return bool(form) and all(has_key(inner, rest) for inner in form.values())
    if name and (not isinstance(form, dict) or name not in form):
        return False
    inner = form[name] if name else form
    if not brackets:
        return has_key(inner, rest)
    return isinstance(inner, list) and bool(inner) and all(has_key(item, rest) for item in inner)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Heading -> what its command prints."""
    folder = tmp_path_factory.mktemp("outputs")
    save(ODD, folder / "odd.json")
    forms = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for heading, command in COMMANDS.items():
            forms[heading] = _run([*shlex.split(command), "--json"])
    return forms


def _run(arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(arguments) in (0, 1), arguments
    return json.loads(out.getvalue())


def test_every_command_that_prints_json_is_documented():
    able = {name for name, one in gbfl.commands.items() if any("--json" in parameter.opts for parameter in one.params)}
    assert able - {"paper"} <= set(COMMANDS)
    assert set(documented_keys()) == set(COMMANDS)


@pytest.mark.parametrize("heading", COMMANDS)
def test_a_command_prints_the_documented_keys(outputs, heading):
    form, keys = outputs[heading], documented_keys()[heading]
    assert keys
    for key in keys:
        assert has_key(form, key), f"gbfl {heading}: {key}"
    named = {re.split(r"[.\[]", key.removeprefix("[]."))[0] for key in keys}
    at_top = form if isinstance(form, dict) else form[0]
    assert set(at_top) <= named | ({"row"} if heading == "lint" else set())


def test_a_missing_key_is_noticed():
    form = {"a": {"b": [{"c": 1}, {}]}, "d": []}
    assert has_key(form, "a.b")
    assert has_key(form, "*") is True
    assert not has_key(form, "a.b[].c")
    assert not has_key(form, "d[].x")
    assert not has_key(form, "e")
