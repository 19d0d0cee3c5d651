"""Artifacts of every target with one slip in them, and the same artifacts loaded: what tests of slips share."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass

import cffi

from gbfl_compile.backends import backend, emit
from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.c.build import declarations
from gbfl_compile.backends.c.scorer import as_predictor, scorer_of
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Program
from tests.checking.general.sql import edits as sql_edits
from tests.checking.reader_artifacts import KINDS, random_artifact
from tests.checking.respelling import random_program
from tests.checking.strict.c import slips as c_edits
from tests.checking.strict.js import edits as js_edits
from tests.checking.strict.onnx import edits as onnx_edits
from tests.checking.strict.python import edits as python_edits

EDITS = {"python": python_edits, "c": c_edits, "onnx": onnx_edits, "js": js_edits}


@dataclass(frozen=True)
class Mutant:
    program: Program
    target: str
    files: dict[str, bytes]
    what: str
    """What was slipped."""
    numbered: bytes = b""
    """SQL: the same text with the row's number beside the answers, as running it needs."""


def mutant(choose, target):
    """A random artifact with one slip in it, which may by luck change no answer but is in no comment."""
    if target.startswith("sql:"):
        return sql_mutant(choose, target.removeprefix("sql:"))
    while True:
        program, artifact = random_artifact(choose, target)
        files, what = EDITS[target].mutated(choose, artifact.files)
        if essence(target, files) != essence(target, artifact.files):
            return Mutant(program, target, files, what)


def essence(target, files):
    """The files without what is not a slip at all: comments and blanks, a token in its own place."""
    match target:
        case "python":
            return ast.dump(ast.parse(files["model.py"]))
        case "c":
            return {
                name: re.sub(rb"\s+", b" ", re.sub(rb"/\*.*?\*/", b" ", text, flags=re.DOTALL))
                for name, text in files.items()
            }
        case _:
            return files


def sql_mutant(choose, dialect):
    while True:
        kind = choose.choice(KINDS)
        program = random_program(choose, kind)
        detail = "score" if kind in ("scorecard", "banded") else "leaf"
        outputs = choose.choice(("label", "label,probabilities", f"label,probabilities,{detail}"))
        try:
            options = {"outputs": outputs, "key": "gbfl_row"}
            text = emit(program, f"sql:{dialect}", "model", options).files["model.sql"].decode()
        except BadInput:
            continue
        slipped = sql_edits.mutated(choose, text, dialect)
        if slipped is not None:
            plain = re.sub(r'["`]gbfl_row["`], ', "", slipped).replace('["gbfl_row"]', "[]")
            return Mutant(program, f"sql:{dialect}", {"model.sql": plain.encode()}, slipped, slipped.encode())


def loaded(mutant, folder, database=None):
    """The artifact as a predictor, run for real; None where its engine does not take it."""
    try:
        if mutant.target == "c":
            return built_plainly(mutant.files, folder)
        if mutant.target.startswith("sql:"):
            return in_database(mutant, folder, database)
        path = folder / f"model{backend(mutant.target).extension}"
        for name, content in mutant.files.items():
            (folder / name).write_bytes(content)
        return backend(mutant.target).load(path)
    except (BadInput, CannotRun):
        return None


def built_plainly(files, folder):
    """The C scorer without optimisation: quick to build, and every function of it is there to be called."""
    folder.mkdir(exist_ok=True)
    for name in ("model.c", "model.h", "gbfl.h"):
        (folder / name).write_bytes(files[name])
    command = ["gcc", "-O0", "-w", "-ffp-contract=off", "-fPIC", "-shared", "-DGBFL_WITH_LIBM", "-DGBFL_NO_CLONES"]
    made = folder / "model.so"
    if subprocess.run([*command, "model.c", "-o", made, "-lm"], cwd=folder, capture_output=True).returncode != 0:
        raise BadInput("it does not build")
    ffi = cffi.FFI()
    try:
        ffi.cdef(declarations(files["model.h"].decode(), "model.h"))
        return as_predictor(scorer_of("model", ffi.dlopen(str(made)), ffi, "gcc -O0"))
    except (cffi.CDefError, cffi.FFIError, AttributeError, OSError, UnicodeDecodeError) as error:
        raise BadInput(str(error)) from None


def in_database(mutant, folder, database):
    path = folder / "model.sql"
    path.write_bytes(mutant.numbered)
    script = read_script(path)
    dialect = DIALECTS[database.dialect]
    header = script.header
    return Predictor(
        mutant.target,
        database.version,
        header["digest"],
        tuple(header["features"]),
        tuple(header["classes"]),
        lambda rows: run(dialect, script, database, rows),
        holds_infinity=database.holds_infinity,
    )


def report(text):
    """A line for whoever runs this with -s: how many there were of what."""
    sys.stderr.write(f"{text}\n")
