"""Edits of emitted C, token by token, what the strict reader and the prover make of one, and what running it shows."""

import ctypes
import re

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_readings
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c import read_strict_c
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Scorecard
from tests.checking.reader_artifacts import said_by_c

TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'.'|[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*|[A-Za-z_]\w*"
    r"|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|[^\s\w]",
    re.DOTALL,
)
SIGNS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "&", "|", "^", "+", "-", "*", "!", "=", "+=", "|=")
BRACKETS = ("(", ")", "[", "]", "{", "}", ";", ",")


def files_of(program, **options):
    return dict(emit(program, "c", "model", options).files)


def verdict(program, files):
    """`unread`, or what the prover says of all that was read."""
    try:
        readings = read_strict_c(files)
    except Unread:
        return "unread"
    answer = prove_readings(program, readings).answer
    digests = {reading.digest for reading in readings}
    return "other digest" if answer == "proved" and digests != {digest(program)} else answer


def edited(files, old, new, name="model.c"):
    text = files[name].decode()
    assert old in text, old
    return {**files, name: text.replace(old, new, 1).encode()}


def token_edits(choose, text):
    """(what was done, the text with it done): each token left out, said twice, exchanged with the next, and replaced."""
    spans = [match.span() for match in TOKEN.finditer(text) if match.group()[:2] not in ("/*", "//")]
    words = sorted({text[a:b] for a, b in spans if text[a].isalpha() or text[a] == "_"})
    for place, (start, end) in enumerate(spans):
        token = text[start:end]
        yield f"{start}: without {token}", text[:start] + " " + text[end:]
        yield f"{start}: twice {token}", text[:end] + f" {token} " + text[end:]
        after, last = spans[min(place + 1, len(spans) - 1)]
        if text[after:last] != token:
            yield f"{start}: {token} after the next", text[:start] + text[after:last] + " " + token + " " + text[last:]
        for other in sorted({*replacements(choose, token, words)} - {token}):
            yield f"{start}: {token} is {other}", text[:start] + other + text[end:]


def replacements(choose, token, words):
    """A few tokens in the place of one."""
    if re.match(r"0[xX].*p", token):
        single = token.endswith("f")
        kind = np.float32 if single else np.float64
        moved = float(np.nextafter(kind(float.fromhex(token.rstrip("f"))), kind(choose.choice((np.inf, -np.inf)))))
        return (moved.hex() + "f" * single, "0x1p+0" + "f" * single) if np.isfinite(moved) else ("0x1p+0",)
    if token[0].isdigit() and "." not in token:
        number = int(token.rstrip("uU"), 0)
        unsigned = "u" * token.endswith("u")
        return (f"{number + 1}{unsigned}", f"{max(0, number - 1)}{unsigned}", f"0{token}", f"{token}.0")
    if token[0] == '"':
        return ('""', '"other"', f'{token[:-1]}\\040"')
    if token[0] == "#":
        return ("#endif", "#else", f"{token} 1")
    if token in SIGNS:
        return choose.sample(SIGNS, 3)
    if token in BRACKETS:
        return (choose.choice(BRACKETS),)
    return tuple(choose.sample(words, 2)) if words else ()


def public_answers(files, rows, program, folder):
    """Everything that the functions of a built library answer; None where it cannot be built."""
    answers = said_by_c(files, rows, program, folder)
    if answers is None:
        return None
    library = ctypes.CDLL(str(max(folder.glob("model*.so"), key=lambda path: path.stat().st_mtime_ns)))
    kind = np.float32 if b"model_REAL_BITS = 32" in files["model.h"] else np.float64
    classes, clauses = len(program.classes), len(program.clauses)
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    with np.errstate(over="ignore"):
        table = np.array(rows, dtype=np.float64).astype(kind)
    for row in table:
        out, held = np.zeros(classes), np.zeros(max(1, -(-clauses // 32)), np.uint32)
        library.model_predict_proba(pointer(row), pointer(out))
        library.model_explain(pointer(row), pointer(held))
        answers.setdefault("probabilities", []).append(tuple(out.tolist()))
        answers.setdefault("held", []).append(tuple(held.tolist()))
    for name in ("feature", "label", "digest"):
        getattr(library, f"model_{name}").restype = ctypes.c_char_p
    answers["features"] = [library.model_feature(f) for f in range(-1, len(program.features) + 1)]
    answers["labels"] = [library.model_label(c) for c in range(-1, classes + 1)]
    answers["kind"] = chr(library.model_label_kind() & 0xFF)
    answers["uses"] = [library.model_uses(f) for f in range(-1, len(program.features) + 1)]
    answers["selftest"] = library.model_selftest()
    if not isinstance(program.decision, Scorecard):
        out = np.zeros(classes)
        answers["leaf"] = [(library.model_leaf(leaf, pointer(out)), tuple(out.tolist())) for leaf in range(-1, 5)]
    return answers
