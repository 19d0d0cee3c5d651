"""The evidence pack of an audit: complete, verified offline, and any tampering shows."""

import hashlib
import json
import os
import shutil
from dataclasses import replace

import pytest

from gbfl_compile.auditing.evidence import verify_pack
from gbfl_compile.auditing.file import fingerprint_of
from gbfl_compile.backends import emit
from gbfl_compile.cli import main
from gbfl_compile.ir.json import digest, load, save
from gbfl_compile.ir.nodes import Clause
from tests.auditing.tampering import TREE


@pytest.fixture
def pack(tmp_path, capsys):
    save(TREE, tmp_path / "approved.json")
    (tmp_path / "model.py").write_bytes(emit(TREE, "python").files["model.py"])
    named = ["--file", str(tmp_path / "model.py"), "--evidence", str(tmp_path / "pack"), "--auditor", "R. <b>isk</b>"]
    assert main(["audit", str(tmp_path / "approved.json"), *named]) == 0
    printed = capsys.readouterr().out
    assert verify_pack(tmp_path / "pack").hash in printed
    return tmp_path / "pack"


def test_a_pack_has_program_deployed_text_verdict_certificate_and_page(pack):
    assert digest(load(pack / "program.gbfl.json")) == digest(TREE)
    assert (pack / "deployed" / "1" / "model.py").read_bytes() == emit(TREE, "python").files["model.py"]
    assert json.loads((pack / "audit.json").read_text())["verdict"] == "equal"
    assert [path.name for path in (pack / "certificates").iterdir()] == ["1-1.json"]
    page = (pack / "page.html").read_text()
    assert "R. &lt;b&gt;isk&lt;/b&gt;" in page
    assert "<b>isk" not in page
    assert "What was not examined" in page


def test_an_untouched_pack_is_whole_and_its_hash_can_be_expected(pack):
    state = verify_pack(pack)
    assert state.problem is None
    assert state.verdict == "equal"
    assert verify_pack(pack, expect=state.hash).problem is None
    assert "written anew" in verify_pack(pack, expect="0" * 64).problem


def listed(pack):
    return sorted(json.loads((pack / "manifest.json").read_text())["files"])


def test_every_changed_or_removed_file_is_noticed(pack, tmp_path):
    names = listed(pack)
    assert len(names) >= 7
    for name in names:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(pack, copy)
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert verify_pack(copy).problem == f"{name}: was changed"
        (copy / name).unlink()
        assert verify_pack(copy).problem == f"{name}: is missing"


def test_an_added_file_and_a_link_are_noticed(pack):
    (pack / "deployed" / "1" / "other.py").write_text("pass\n")
    assert "is not in the manifest" in verify_pack(pack).problem
    (pack / "deployed" / "1" / "other.py").unlink()
    (pack / "notes").symlink_to(pack / "audit.json")
    assert "is a link" in verify_pack(pack).problem


def test_what_is_not_a_file_is_noticed_too(pack):
    (pack / "more").mkdir()
    assert verify_pack(pack).problem == "more: is not in the manifest, it was added"
    (pack / "more").rmdir()
    os.mkfifo(pack / "deployed" / "pipe")
    assert verify_pack(pack).problem == "deployed/pipe: is not in the manifest, it was added"


def test_a_project_with_folders_of_its_own_is_whole(tmp_path):
    save(TREE, tmp_path / "approved.json")
    for name, content in emit(TREE, "c", options={"layout": "cmake"}).files.items():
        (tmp_path / "c" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "c" / name).write_bytes(content)
    named = ["--file", str(tmp_path / "c" / "model.c"), "--evidence", str(tmp_path / "pack")]
    assert main(["audit", str(tmp_path / "approved.json"), *named]) == 0
    assert "deployed/1/examples/selftest/main.c" in listed(tmp_path / "pack")
    assert verify_pack(tmp_path / "pack").problem is None


def rewrite(pack, name, content):
    """Change a file and repair the manifest, as somebody who knows the format would."""
    (pack / name).write_bytes(content)
    form = json.loads((pack / "manifest.json").read_text())
    form["files"][name] = hashlib.sha256(content).hexdigest()
    (pack / "manifest.json").write_text(json.dumps(form))


def test_a_deployed_copy_that_is_not_the_audited_one_is_noticed_with_a_mended_manifest(pack):
    name = "deployed/1/model.py"
    rewrite(pack, name, (pack / name).read_bytes().replace(b"<", b"<=", 1))
    assert "is not what was audited" in verify_pack(pack).problem


def test_another_verdict_is_noticed_with_a_mended_manifest(pack):
    form = json.loads((pack / "audit.json").read_text())
    rewrite(pack, "audit.json", json.dumps({**form, "verdict": "different"}).encode())
    assert "the manifest equal" in verify_pack(pack).problem


def test_a_verdict_that_is_not_the_worst_of_all_is_noticed_with_a_mended_manifest(pack):
    form = json.loads((pack / "audit.json").read_text())
    audited = [{**form["audited"][0], "verdict": "different"}]
    rewrite(pack, "audit.json", json.dumps({**form, "audited": audited}).encode())
    assert verify_pack(pack).problem == "audit.json: says equal of all, and different of one of them"


def test_a_key_that_is_there_twice_is_noticed_with_a_mended_manifest(pack):
    content = (pack / "audit.json").read_bytes()
    rewrite(pack, "audit.json", content.replace(b"{", b'{"verdict": "different",', 1))
    assert verify_pack(pack).problem == "program.gbfl.json or audit.json cannot be read"
    rewrite(pack, "audit.json", content)
    assert verify_pack(pack).problem is None
    manifest = (pack / "manifest.json").read_bytes()
    (pack / "manifest.json").write_bytes(manifest.replace(b"{", b'{"verdict": "different",', 1))
    assert verify_pack(pack).problem == "manifest.json is not the manifest of an evidence pack"


def test_a_certificate_that_does_not_verify_is_noticed_with_a_mended_manifest(pack):
    form = json.loads((pack / "certificates" / "1-1.json").read_text())
    rewrite(pack, "certificates/1-1.json", json.dumps({**form, "boxes": form["boxes"][:-1]}).encode())
    assert verify_pack(pack).problem.startswith("certificates/1-1.json: ")


def test_a_folder_that_holds_something_is_refused(pack, tmp_path, capsys):
    command = ["audit", str(tmp_path / "approved.json"), "--file", str(tmp_path / "model.py"), "--evidence", str(pack)]
    assert main(command) == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert verify_pack(pack).problem is None


def test_something_that_is_not_a_pack_is_refused_by_name(tmp_path, capsys):
    (tmp_path / "manifest.json").write_text("[]")
    assert verify_pack(tmp_path).problem == "manifest.json is not the manifest of an evidence pack"
    assert main(["audit-evidence", "verify", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_password_of_a_database_is_not_filed(tmp_path, capsys):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute(f"CREATE TABLE data ({', '.join(f'{name} DOUBLE' for name in TREE.features)})")
        connection.execute(
            emit(TREE, "sql:duckdb", options={"form": "view", "table": "data", "view": "v"}).files["model.sql"].decode()
        )
    save(TREE, tmp_path / "approved.json")
    url = f"duckdb:///{tmp_path}/t.db?password=hush-hush"
    main(
        ["audit", str(tmp_path / "approved.json"), "--database", url, "--view", "v", "--evidence", str(tmp_path / "p")]
    )
    assert capsys.readouterr().out
    written = b"".join(path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file())
    assert b"definition.sql" in written
    assert b"hush-hush" not in written


def test_a_different_deployment_has_its_pack_too(tmp_path):
    save(TREE, tmp_path / "approved.json")
    (first, *others), *clauses = (clause.atoms for clause in TREE.clauses)
    moved = Clause((replace(first, lo=None, hi=12.5), *others))
    edited = replace(TREE, clauses=(moved, *(Clause(atoms) for atoms in clauses)))
    (tmp_path / "model.py").write_bytes(emit(edited, "python").files["model.py"])
    named = ["--file", str(tmp_path / "model.py"), "--evidence", str(tmp_path / "pack")]
    assert main(["audit", str(tmp_path / "approved.json"), *named]) == 1
    state = verify_pack(tmp_path / "pack")
    assert (state.problem, state.verdict) == (None, "different")
    assert not (tmp_path / "pack" / "certificates").exists()


def test_every_one_of_several_c_files_is_compared_with_the_fingerprint():
    files = {"model.c": b"int a;", "part.c": b"int b;"}
    assert fingerprint_of({"model.c": b"int a;"}) == hashlib.sha256(b"int a;").hexdigest()
    for name in files:
        assert fingerprint_of({**files, name: b"int c;"}) != fingerprint_of(files)
    assert fingerprint_of({"model.c": b"int b;", "part.c": b"int a;"}) != fingerprint_of(files)
