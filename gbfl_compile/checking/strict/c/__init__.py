"""Emitted C, read back from its text alone: every token of every file is accounted for, or the artifact is refused.

    read_strict_c(files) -> (Reading(..., place="model_predict, model_predict_proba, ..."), ...)

lexer        text to tokens, numbers and strings, refusing what compilers may see differently
conditions   rules, and the nested ifs of a tree
template     the known files (known/README.md) with their holes, matched against the tokens
contents     whether what the holes hold fits together
decisions    what it means, as readings

A text has the code that `NAME_code` returns for it, so each listed text is looked up here the way that function does.
One that it would not find has no code, whatever the table says; a code that no text leads to is never in a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from gbfl_compile.checking.reading.from_program import map_tests
from gbfl_compile.checking.reading.nodes import Reading, Test, Unread
from gbfl_compile.checking.strict.c.conditions import Source
from gbfl_compile.checking.strict.c.contents import (
    LONGEST_NAME,
    check_file,
    check_shape,
    check_uses,
    read_examples,
    read_names,
)
from gbfl_compile.checking.strict.c.decisions import rule_set_places, tree_places
from gbfl_compile.checking.strict.c.lexer import Real, Tokens, tokens
from gbfl_compile.checking.strict.c.template import Contents, match, template
from gbfl_compile.ir.intervals import Texts, code_values
from gbfl_compile.ir.kinds import EARLIEST, LATEST, Codebook
from gbfl_compile.ir.nodes import TRUE, Kind

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
        raise Unread(f"{name}_HAS_BATCH is {contents['has_batch']}, which does not match its batch functions")
    places = tree_places(form.batch, contents) if form.decides == "tree" else rule_set_places(form.batch, contents)
    for _, decision in places:
        check_uses(contents, decision)
    dtype: Literal["float64", "float32"] = "float64" if form.real == "double" else "float32"
    first, *others = (
        Reading(features, classes, decision, dtype, _place(name, verbs), contents["digest"], None, reasons)
        for verbs, decision in places
    )
    first = replace(first, examples=read_examples(contents, form.real), clause_count=contents["clauses"])
    readings = (first, *others)
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
        raise Unread(f"{names[0]}.h could be mistaken for another header")
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


LETTERS: Mapping[str, Kind] = {
    "'n'": "number",
    "'c'": "category",
    "'b'": "boolean",
    "'d'": "date",
    "'t'": "timestamp",
}


MOST_MICROSECONDS = 2**53
"""How far a timestamp may be from 1970: farther, a double does not hold every microsecond."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind of each feature, and for a category the code of each text that has one."""

    kinds: tuple[Kind, ...]
    codes: tuple[Mapping[str, int], ...]


def read_kinds(name: str, features: Sequence[str], contents: Contents) -> Kinds:
    """The kinds and codes of a model that has any; its header's names for classes and codes are checked too."""
    check_shape(contents, "kinds", "features")
    kinds = tuple(LETTERS[letter] for letter in contents["kinds"] if letter in LETTERS)
    if len(kinds) != len(features) or set(kinds) == {"number"}:
        raise Unread("a kind that is not known, or numbers alone")
    if ("category" in kinds) != ("code_texts" in contents):
        raise Unread("codes of texts without a category, or a category without them")
    _check_class_names(name, contents)
    tables = _code_tables(kinds, contents) if "category" in kinds else [()] * len(kinds)
    if "category" in kinds:
        _check_code_names(name, features, tables, contents)
    return Kinds(kinds, tuple({text: code for code, text, found in table if found == code} for table in tables))


CodeTable = Sequence[tuple[int, str, int]]
"""Code, text, and the code that the text is found to have."""


def _code_tables(kinds: Sequence[Kind], contents: Contents) -> list[CodeTable]:
    check_shape(contents, "code_slots", "slot_count")
    check_shape(contents, "code_features", "features", 3)
    texts: Sequence[tuple[str, int]] = contents["code_texts"]
    if len(texts) != contents["text_count"]:
        raise Unread(f"{len(texts)} texts, a table of {contents['text_count']}")
    if any(len(text.encode("utf-8")) != length for text, length in texts):
        raise Unread("a text that is not as long as the table of texts says")
    if max(contents["code_slots"]) >= 1 << int(contents["slot_type"][4:-2]):
        raise Unread(f"a code that {contents['slot_type']} does not hold")
    return [
        _code_table(contents, texts, *place) if kind == "category" else ()
        for kind, place in zip(kinds, contents["code_features"], strict=True)
    ]


def _code_table(
    contents: Contents, texts: Sequence[tuple[str, int]], first_text: int, first_slot: int, mask: int
) -> CodeTable:
    """The codes of one category: those in its places, each with its text."""
    slots: Sequence[int] = contents["code_slots"][first_slot : first_slot + mask + 1]
    if mask & (mask + 1) or len(slots) != mask + 1 or 0 not in slots:
        raise Unread("places of codes that are not in their table, or none of which is empty")
    if first_text + max(slots) > len(texts):
        raise Unread("a code without a text")
    own = [text for text, _ in texts[first_text : first_text + max(slots)]]
    return [(code, text, _look_up(text, own, slots)) for code, text in enumerate(own, 1)]


def _look_up(text: str, texts: Sequence[str], slots: Sequence[int]) -> int:
    """What NAME_code returns for a text. Some place is empty, so it comes to an end."""
    value = 2166136261
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 16777619 % 2**32
    place = value % len(slots)
    while slots[place] != 0 and texts[slots[place] - 1] != text:
        place = (place + 1) % len(slots)
    return slots[place]


def _check_class_names(name: str, contents: Contents) -> None:
    """The header's name for each class is that of its label."""
    first = {"name": contents["first_class"], "number": contents["first_class_number"]}
    expected = [
        (number, (f"{name}_class_is_{_clean(label)}", f"{name}_class_{number}"))
        for number, label in enumerate(contents["labels"])
    ]
    _check_enumerators(name, [first, *contents["other_classes"]], expected)


def _check_code_names(name: str, features: Sequence[str], tables: Sequence[CodeTable], contents: Contents) -> None:
    """The header's name for each code is that of its text."""
    expected = [
        (code, (f"{name}_code_of_{_clean(features[f])}_{_clean(text)}", f"{name}_feature_{f}_code_{code}"))
        for f, table in enumerate(tables)
        for code, text, _ in table
    ]
    _check_enumerators(name, contents["code_names"], expected)


def _check_enumerators(
    name: str, enumerators: Sequence[Contents], expected: Sequence[tuple[int, tuple[str, str]]]
) -> None:
    if len(enumerators) != len(expected):
        raise Unread(f"{name}.h names {len(enumerators)} classes or codes, there are {len(expected)}")
    for each, (number, names) in zip(enumerators, expected, strict=True):
        if each["number"] != number or each["name"] not in names:
            raise Unread(f"{name}.h: {each['name']} is {each['number']}, known here is {names[1]} as {number}")
    if len({each["name"] for each in enumerators}) != len(enumerators):
        raise Unread(f"{name}.h: two classes or codes have the same name")


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:LONGEST_NAME]


def by_texts(reading: Reading, found: Kinds) -> Reading:
    """The reading with categories by the texts that have a code: the other codes are in no row."""
    texts = {"boolean": (TRUE,)}
    book = Codebook(tuple(texts.get(kind, tuple(codes)) for kind, codes in zip(found.kinds, found.codes, strict=True)))

    def test(comparison: Test) -> Test:
        if found.kinds[comparison.feature] != "category":
            return comparison
        codes = found.codes[comparison.feature]
        holding = frozenset(text for text, code in codes.items() if _has(comparison, code))
        negated, missing = _has(comparison, 0), any(piece.missing for piece in comparison.values)
        listed = frozenset(codes) - holding if negated else holding
        return Test(comparison.feature, code_values(Texts(listed, negated, missing), comparison.feature, book))

    examples = tuple(replace(each, row=_example_row(each.row, found)) for each in reading.examples)
    return replace(map_tests(reading, test), kinds=found.kinds, book=book.texts, examples=examples)


def _example_row(row: Sequence[float], found: Kinds) -> tuple[float, ...]:
    """A row of the self-test by the places of its texts in the book; it has to be one that can occur."""
    return tuple(map(_example_value, found.kinds, found.codes, row))


def _example_value(kind: Kind, codes: Mapping[str, int], value: float) -> float:
    if math.isnan(value) or kind == "number":
        return value
    match kind:
        case "category":
            places = {0: 0, **{code: place for place, code in enumerate(codes.values(), start=1)}}
            if value in places:
                return float(places[int(value)])
        case "boolean":
            if value in (0.0, 1.0):
                return value
        case "date":
            if value.is_integer() and EARLIEST <= value <= LATEST:
                return value
        case "timestamp":
            if value.is_integer() and abs(value) <= MOST_MICROSECONDS:
                return value
        case _:
            assert_never(kind)
    raise Unread(f"the self-test has the {kind} {value!r}, which is in no row")


def _has(test: Test, code: int) -> bool:
    return any(piece.least <= code <= piece.most for piece in test.values)
