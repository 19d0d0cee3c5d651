"""The evidence pack of an audit: a folder with everything a reviewer files, and a manifest that verifies offline.

    program.gbfl.json   the approved program
    deployed/1/…        the deployed text or library, as it was audited
    audit.json          the verdicts, with the counterexample where there is one
    certificates/…      proofs of trees that `certificate_verifier.py` checks without the prover
    witnesses.csv       the rows made from the program that are run everywhere, with the approved class
    run.json            when, by whom, with which options and versions
    page.html           the same for people
    manifest.json       the SHA-256 of each file above

No secret goes into a manifest: somebody who replaces the whole pack replaces its manifest too. That shows where the
manifest's own hash, which is printed, is kept elsewhere and given as `expect`.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

from gbfl_compile.auditing.file import fingerprint_of
from gbfl_compile.auditing.verdict import WORST_FIRST, AuditReport, DeployedVerdict
from gbfl_compile.checking.prove.certificate import certificate
from gbfl_compile.checking.prove.certificate_verifier import parse
from gbfl_compile.checking.prove.certificate_verifier import verify as verify_certificate
from gbfl_compile.checking.run import expectation
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.files.atomic import files_together, read_whole
from gbfl_compile.files.formats import similar_file
from gbfl_compile.ir.json import digest, from_bytes, to_json
from gbfl_compile.ir.kinds import codebook, decode_rows
from gbfl_compile.ir.nodes import Program
from gbfl_compile.version import GENERATOR

FORM = 1
MANIFEST = "manifest.json"
PROGRAM, AUDIT, RUN, WITNESSES, PAGE = "program.gbfl.json", "audit.json", "run.json", "witnesses.csv", "page.html"
LARGEST_MANIFEST = 2**24
MOST_WITNESSES = 20_000
"""Rows of witnesses.csv: a rule set of a thousand clauses has more, and they can be made again from the program."""
PACKAGES = ("numpy", "onnx", "onnxruntime", "duckdb", "sqlglot", "psycopg", "chdb", "pyspark", "datafusion", "cffi")


@dataclass(frozen=True, slots=True)
class PackState:
    """What verifying a pack showed."""

    problem: str | None
    files: int
    hash: str | None
    """The SHA-256 of the manifest: kept elsewhere, it shows a pack that was replaced as a whole."""
    verdict: str | None = None


def run_form(report: AuditReport, options: Mapping[str, Any], auditor: str) -> dict[str, Any]:
    """When the audit was made, by whom and with what; `options` has no password in it."""
    return {
        "time": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "auditor": auditor,
        "generator": GENERATOR,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: found for name in PACKAGES if (found := _package_version(name)) is not None},
        "engines": sorted({each.engine for each in report.verdicts if each.engine is not None}),
        "options": {name: value for name, value in options.items() if value not in (None, (), [], {}, False)},
    }


def _package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write_pack(folder: Path, program: Program, report: AuditReport, run: Mapping[str, Any], page: str) -> str:
    """Write the pack into a folder that is new or empty, whole or not at all; the hash of its manifest."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder}: is not an empty folder: name a new one for each evidence pack")
    if digest(program) != report.source:
        raise BadInput("the audit is of a different program")
    files = {
        PROGRAM: to_json(program).encode("utf-8"),
        AUDIT: _text(report.as_json()),
        WITNESSES: _witnesses(program),
        PAGE: page.encode("utf-8"),
    }
    reasons: dict[str, str] = {}
    for number, each in enumerate(report.verdicts, 1):
        files |= {f"deployed/{number}/{name}": content for name, content in each.material.items()}
        for place, content in _certificates(program, each):
            if isinstance(content, bytes):
                files[f"certificates/{number}-{place}.json"] = content
            else:
                reasons[f"{number}-{place}"] = content
        if not each.material:
            reasons[f"{number}"] = f"a {each.kind} is not copied: its fingerprint and verdict are in {AUDIT}"
    files[RUN] = _text({**run, "left out": reasons})
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    manifest = _text({"form": FORM, "program": report.source, "verdict": report.verdict, "files": hashes})
    with files_together(folder, {**files, MANIFEST: manifest}):
        pass
    return hashlib.sha256(manifest).hexdigest()


def _certificates(program: Program, each: DeployedVerdict) -> Iterator[tuple[int, bytes | str]]:
    """One certificate per way the deployed item answers, or why there is none."""
    for number, reading in enumerate(each.readings if each.is_proved else (), 1):
        try:
            yield number, certificate(program, reading, each.material).encode("ascii")
        except (BadInput, CannotRun) as error:
            yield number, f"no certificate: {error}"


def _witnesses(program: Program) -> bytes:
    expected = expectation(program)
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*program.features, "approved class"])
    rows = decode_rows(program, expected.rows[:MOST_WITNESSES].tolist(), codebook(program))
    for row, label in zip(rows, expected.answers.labels[:MOST_WITNESSES], strict=True):
        lines.writerow(["" if value is None or value != value else str(value) for value in row] + [str(label)])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _text(form: Mapping[str, Any]) -> bytes:
    return (json.dumps(form, indent=1, sort_keys=True, ensure_ascii=True, default=str) + "\n").encode("ascii")


def verify_pack(folder: Path, expect: str | None = None) -> PackState:
    """Whether every file is as the manifest says, nothing was added, and the files agree with each other."""
    if not (folder / MANIFEST).exists():
        what = "is not an evidence pack: it has no" if folder.is_dir() else "there is no such folder with a"
        raise BadInput(f"{folder}: {what} {MANIFEST}{similar_file(folder)}")
    manifest = read_whole(folder / MANIFEST, LARGEST_MANIFEST)
    own = hashlib.sha256(manifest).hexdigest()
    try:
        form = json.loads(manifest, object_pairs_hook=_once)
        listed, verdict, program = form["files"], form["verdict"], form["program"]
        is_own = form["form"] == FORM and all(isinstance(each, str) for pair in listed.items() for each in pair)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        is_own = False
    if not is_own:
        return PackState(f"{MANIFEST} is not the manifest of an evidence pack", 0, own)
    problem = _first_problem(folder, listed, verdict, program)
    if problem is None and expect is not None and expect != own:
        problem = f"{MANIFEST} has the hash {own}, not the expected one: the pack was written anew"
    return PackState(problem, len(listed), own, verdict)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key appears twice: which one counts depends on who reads it."""
    form = dict(pairs)
    if len(form) < len(pairs):
        raise ValueError("a key appears twice")
    return form


def _first_problem(folder: Path, listed: Mapping[str, str], verdict: Any, program: Any) -> str | None:
    paths = {path.relative_to(folder).as_posix(): path for path in _everything(folder)}
    folders = {parent.as_posix() for name in listed for parent in PurePosixPath(name).parents}
    for name, path in sorted(paths.items()):
        if path.is_symlink():
            return f"{name}: is a link, a pack has none"
        if name != MANIFEST and not (name in folders and path.is_dir()) and name not in listed:
            return f"{name}: is not in the manifest, it was added"
    contents = {}
    for name, stated in listed.items():
        if name not in paths or not paths[name].is_file():
            return f"{name}: is missing"
        contents[name] = read_whole(paths[name])
        if hashlib.sha256(contents[name]).hexdigest() != stated:
            return f"{name}: was changed"
    absent = [name for name in (PROGRAM, AUDIT, RUN, WITNESSES, PAGE) if name not in contents]
    if absent:
        return f"{absent[0]}: is not in the manifest, a pack has one"
    return _contradiction(folder, contents, verdict, program)


def _everything(folder: Path) -> Iterator[Path]:
    """All that is in a folder, at any depth; a part of it that cannot be opened is an error."""

    def refuse(error: OSError) -> None:
        raise BadInput(f"{error.filename}: cannot be opened: {error.strerror}")

    for top, folders, files in os.walk(folder, onerror=refuse):
        yield from (Path(top) / name for name in (*folders, *files))


def _contradiction(folder: Path, contents: Mapping[str, bytes], verdict: Any, program: Any) -> str | None:
    """Where files that are as the manifest says do not belong together."""
    try:
        own = digest(from_bytes(contents[PROGRAM]))
        audit = json.loads(contents[AUDIT], object_pairs_hook=_once)
        stated, audited = (audit["source"], audit["verdict"]), audit["audited"]
        fingerprints = [each["fingerprint"] for each in audited]
        worst = next((word for word in WORST_FIRST if word in [each["verdict"] for each in audited]), "not run")
    except (GbflError, ValueError, RecursionError, KeyError, TypeError):
        return f"{PROGRAM} or {AUDIT} cannot be read"
    if own != program:
        return f"{PROGRAM}: is the program {own}, the manifest is about {program}"
    if stated != (program, verdict):
        return f"{AUDIT}: says {stated[1]} of {stated[0]}, the manifest {verdict} of {program}"
    if verdict != worst:
        return f"{AUDIT}: says {verdict} of all, and {worst} of one of them"
    for number, fingerprint in enumerate(fingerprints, 1):
        copies = {name: data for name, data in contents.items() if name.startswith(f"deployed/{number}/")}
        own_names = {name.removeprefix(f"deployed/{number}/"): data for name, data in copies.items()}
        if copies and fingerprint != fingerprint_of(own_names):
            return f"deployed/{number}: is not what was audited, by the fingerprint in {AUDIT}"
    for name, content in contents.items():
        if name.startswith("certificates/"):
            deployed = folder / "deployed" / name.partition("/")[2].partition("-")[0]
            try:
                verify_certificate(parse(contents[PROGRAM]), parse(content), deployed)
            except (ValueError, RecursionError) as error:
                return f"{name}: {error}"
    return None
