"""Emitted C, read back from its text alone: every token of every file is accounted for, or the artifact is refused.

    read_strict_c(files) -> (Reading(..., place="model_predict, model_predict_proba, ..."), ...)

lexer        text to tokens, numbers and strings, refusing what compilers may see differently
conditions   rules, and the nested ifs of a tree
template     the known files (known/README.md) with their holes, matched against the tokens
contents     whether what the holes hold fits together
tree, rules  what it means, as readings            layouts   build files and examples
kinds        which text has which code
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.strict.c.conditions import Source
from gbfl_compile.checking.strict.c.contents import check_file, check_uses, read_examples, read_names
from gbfl_compile.checking.strict.c.decisions import rule_set_places, tree_places
from gbfl_compile.checking.strict.c.kinds import by_texts, read_kinds
from gbfl_compile.checking.strict.c.lexer import Real, Tokens, tokens
from gbfl_compile.checking.strict.c.template import Contents, match, template

TAKEN = frozenset(
    {
        *("assert", "complex", "ctype", "errno", "fenv", "float", "gbfl", "inttypes", "iso646", "limits", "locale"),
        *("math", "python", "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint"),
        *("stdio", "stdlib", "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype"),
    }
)
"""Names of a model whose header could take the place of another one."""


@dataclass(frozen=True, slots=True)
class Form:
    """Which of the known files an artifact seems to be made of."""

    real: Real
    decides: str
    batch: str
    flags: frozenset[str]


BATCHES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("tree", "none"): (),
    ("tree", "row by row"): ("tree_row_by_row.c",),
    ("tree", "select"): ("gather.c", "tree_select.c"),
    ("rules", "none"): (),
    ("rules", "row by row"): ("rules_row_by_row.c",),
    ("rules", "select"): ("gather.c", "rules_select.c", "rules_blocks.c"),
    ("rules", "bits"): ("gather.c", "rules_bits.c", "rules_blocks.c"),
}
"""The known files for the batch part, by what decides and by how batches are done."""


def read_strict_c(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The readings of NAME.c with its headers and whatever else is in its folder."""
    name = _model_name(files)
    for file in sorted(files.keys() - {f"{name}.c", f"{name}.h"}):
        with _in_file(file):
            check_file(file, files[file], name)
    contents: Contents = {}
    with _in_file(f"{name}.c"):
        source = tokens(files[f"{name}.c"])
        form = _form(name, source.words)
    with _in_file(f"{name}.h"):
        _match_header(name, form, tokens(files[f"{name}.h"]), contents)
    kinds = ("kinds.c",) if "kinds" in form.flags else ()
    known = ("begin.c", f"{form.decides}.c", *BATCHES[form.decides, form.batch], *kinds, "end.c")
    with _in_file(f"{name}.c"):
        values = Source(form.real, contents["features"], has_codes="kinds" in form.flags)
        match(template(known, name, form.real, form.flags), source, values, contents)
        return _readings(name, form, contents)


def is_model_header(name: str, content: bytes) -> bool:
    """Whether this is the NAME.h of an emitted model, which declares what begins with its name and defines nothing."""
    contents: Contents = {}
    try:
        header = tokens(content)
        _match_header(name, _form(name, header.words), header, contents)
    except Unread:
        return False
    names = [contents["last_name"], contents.get("first_class", contents["last_name"])]
    names += [each["name"] for key in ("places", "other_classes", "code_names") for each in contents.get(key, ())]
    return all(each.startswith(f"{name}_") for each in names)


def _match_header(name: str, form: Form, header: Tokens, contents: Contents) -> None:
    match(template(("model.h",), name, form.real, form.flags), header, Source(form.real, 0), contents)


def _readings(name: str, form: Form, contents: Contents) -> tuple[Reading, ...]:
    features, classes, reasons = read_names(name, contents)
    if contents["has_batch"] != int(form.batch != "none"):
        raise Unread(f"{name}_HAS_BATCH is {contents['has_batch']}, its batch functions are another matter")
    places = tree_places(form.batch, contents) if form.decides == "tree" else rule_set_places(form.batch, contents)
    for _, decision in places:
        check_uses(contents, decision)
    dtype: Literal["float64", "float32"] = "float64" if form.real == "double" else "float32"
    first, *others = (
        Reading(features, classes, decision, dtype, _place(name, verbs), contents["digest"], None, reasons)
        for verbs, decision in places
    )
    readings = (replace(first, examples=read_examples(contents, form.real)), *others)
    if "kinds" not in form.flags:
        return readings
    kinds = read_kinds(name, features, contents)
    used = (kind for kind, flag in zip(kinds.kinds, contents["feature_used"], strict=True) if flag)
    if dtype == "float32" and "timestamp" in used:
        raise Unread("float does not hold the microseconds of a timestamp")
    return tuple(by_texts(reading, kinds) for reading in readings)


def _place(name: str, verbs: Sequence[str]) -> str:
    return ", ".join(f"{name}_{verb}" for verb in verbs)


def _model_name(files: Mapping[str, bytes]) -> str:
    names = [file.removesuffix(".c") for file in files if file.endswith(".c") and "/" not in file]
    if len(names) != 1 or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", names[0], re.ASCII):
        raise Unread(f"{len(names)} .c files: an artifact is NAME.c, NAME.h and gbfl.h")
    if names[0].lower() in TAKEN:
        raise Unread(f"{names[0]}.h could be taken for another header")
    for needed in (f"{names[0]}.h", "gbfl.h"):
        if needed not in files:
            raise Unread(f"{needed} is not there, and {names[0]}.c includes it")
    return names[0]


def _form(name: str, words: Sequence[str]) -> Form:
    """What the file seems to be, by the functions in it. Where this is wrong, nothing will match."""
    has = set(words)
    tree = {f"{name}_leaf_of", f"{name}_leaf"} & has
    batch = "none"
    for function, kind in (("predict_rows", "row by row"), ("gather", "select"), ("find_bins", "bits")):
        batch = kind if f"{name}_{function}" in has else batch
    decides = "tree" if tree else "rules"
    if (decides, batch) not in BATCHES:
        raise Unread("has functions of a tree and of a rule set")
    optional = {"reasons": f"{name}_reason", "masks": f"{name}_bin_masks", "kinds": f"{name}_kind"}
    optional["codes"] = f"{name}_code"
    flags = {flag for flag, function in optional.items() if function in has}
    flags |= {decides} if batch == "none" else {decides, "batch"}
    if decides == "rules":  # probabilities through exp are the part that needs libm
        flags.add("softmax" if "#ifdef GBFL_WITH_LIBM" in has else "bands")
    predict = words.index(f"{name}_predict") if f"{name}_predict" in has else len(words)
    real: Real = "float" if words[predict + 3 : predict + 4] == ["float"] else "double"
    return Form(real, decides, batch, frozenset(flags))


@contextmanager
def _in_file(file: str) -> Iterator[None]:
    try:
        yield
    except Unread as error:
        raise Unread(f"{file}: {error}") from None
