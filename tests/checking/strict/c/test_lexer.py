"""Literals are the numbers a compiler makes of them, or are refused; tokens are those a compiler sees."""

import re
import subprocess
from pathlib import Path

import pytest

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c.lexer import count, real, runtime_tokens, string, tokens, unsigned_literal, whole
from gbfl_compile.checking.strict.c.template import KNOWN
from tests.backends.c.programs import cc, needs_a_compiler

DOUBLES = {
    "0x1.8p+3": 12.0,
    "0x0.0000000000001p-1022": 5e-324,
    "0x1p-1074": 5e-324,
    "0X1.FFFFFFFFFFFFFP1023": 1.7976931348623157e308,
    "0x10000000000000p-52": 1.0,
    "0x1.00000000000000p0": 1.0,
    "1.": 1.0,
    "0.5": 0.5,
    "1e2": 100.0,
    "5e-1": 0.5,
    "00.25": 0.25,
    "0x0p+0": 0.0,
}
NO_DOUBLES = (
    *("0.1", "1e-400", "1e400", "0x1.00000000000001p0", "0x1p-1075", "0x1p1024", "0x1.fffffffffffff8p1023"),
    *(
        "1.0f",
        "1.0L",
        "1",
        "0x1",
        "0x1.8",
        "",
        "nan",
        "inf",
        "1e",
        "1_0.0",
        ".5",
        "- 1.0",
        "0x.8p1",
        "1.0 ",
        "\u0661.0",
    ),
)
FLOATS = {"0x1p-149f": 1.401298464324817e-45, "0x1.fffffep127f": 3.4028234663852886e38, "0.5f": 0.5, "0x1.8p+3F": 12.0}
NO_FLOATS = ("0.1f", "0x1.000001p0f", "0x1p-150f", "0x1p128f", "16777217.0f", "0.5", "0x1p0", "0x1p0l")


def test_a_literal_is_exact_or_refused():
    assert {text: real(text, "double") for text in DOUBLES} == DOUBLES
    assert {text: real(text, "float") for text in FLOATS} == FLOATS
    assert {real(text, "double") for text in NO_DOUBLES} == {None}
    assert {real(text, "float") for text in NO_FLOATS} == {None}


@needs_a_compiler
def test_the_compiler_reads_the_literals_alike(tmp_path):
    lines = "".join(f'    printf("%a\\n", (double){text});\n' for text in (*DOUBLES, *FLOATS))
    (tmp_path / "literals.c").write_text(f"#include <stdio.h>\nint main(void)\n{{\n{lines}    return 0;\n}}\n")
    cc("-std=c99", "-w", "literals.c", "-o", "literals", folder=tmp_path)
    printed = subprocess.run([tmp_path / "literals"], capture_output=True, text=True, check=True).stdout.split()
    assert [float.fromhex(text) for text in printed] == [*DOUBLES.values(), *FLOATS.values()]


def test_whole_numbers_stay_within_their_width_and_sign():
    most, least = str(2**63 - 1), f"- {2**63 - 1}"
    assert [whole(text) for text in ("0", "- 7", "0x1F", most, least)] == [0, -7, 31, 2**63 - 1, 1 - 2**63]
    assert [whole(text) for text in ("INT64_C ( - 5 )", f"INT64_C ( {most} )")] == [-5, 2**63 - 1]
    for text in (
        "010",
        "00",
        "7u",
        "- 0x80000000",
        "- 0x8000",  # 32768 where an int has 16 bits
        "0xffffffff",
        str(2**63),
        "- - 1",
        "+ 1",
        "1_0",
        "-7",
        "INT64_C ( 7u )",
    ):
        assert whole(text) is None, text
    assert [count(text) for text in ("0", "12", "0x10", "2147483647")] == [0, 12, 16, 2**31 - 1]
    assert {count(text) for text in ("2147483648", "0x80000000", "01", "1u", "-1", "1.0", "", "\u0661")} == {None}
    assert [unsigned_literal(text) for text in ("0u", "0xffffffffffffffffu", "7", "0xFF")] == [0, 2**64 - 1, 7, 255]
    assert {unsigned_literal(text) for text in (f"{2**64}u", str(2**63), "010u", "1uu", "1ul", "-1", "")} == {None}


def test_strings_have_only_escapes_that_end_where_they_seem_to():
    assert string(r'"a\042\134\101\303\251"') == 'a"\\A\u00e9'
    assert string(r'"\n\t\"\\\'"') == "\n\t\"\\'"
    for text in (r'"\x41"', r'"\1"', r'"\12x"', r'"\400"', r'"\?"', r'"\u00e9"', r'"\000"', r'"\377"', r'"\q"'):
        assert string(text) is None, text


def test_tokens_are_the_longest_that_c_knows():
    assert tokens(b"a+++b<<=c->d...e").words == ["a", "++", "+", "b", "<<=", "c", "->", "d", "...", "e"]
    assert tokens(b"0x1p+3+1e-5-0xe+1").words == ["0x1p+3", "+", "1e-5", "-", "0xe+1"]
    assert tokens(b"a/*/ b */c//d\ne/f").words == ["a", "c", "e", "/", "f"]
    assert tokens(b"#  if  A\nb").words == ["# if A", "b"]


@pytest.mark.parametrize(
    "text",
    [
        *("a <: b", "<%", "%>", ":>", "%:", "a ??= b", "a \\\n b", "// \\\t\nb", "/* open", "/* /* */", "'ab'"),
        *("\u00e9", "a\fb", "a\rb", "x #define", "  #define", "/**/#define", "`", "$x", '"open', "a\\b", "a /*"),
        *('"a\nb"', "a @ b", "// a /* b\nc\n// */", "///* b\nc\n// */", "//* a /* b */"),
    ],
)
def test_what_is_not_a_token_or_two_is_refused(text):
    with pytest.raises(Unread, match="line "):
        tokens(text.encode())


def test_the_runtime_that_is_emitted_is_the_known_one():
    """Where gbfl.h has changed: look at what changed, then change the known file."""
    emitted = Path(__file__).parents[4] / "runtime_c" / "gbfl.h"
    assert runtime_tokens(emitted.read_bytes()) == runtime_tokens((KNOWN / "gbfl.h").read_bytes())


def test_a_line_of_the_runtime_joins_as_a_compiler_joins_it():
    assert runtime_tokens(b"#if a && \\\n b\n") == ["#if a && b"]
    assert runtime_tokens(b"in\\\nt x;") == ["int", "x", ";"]
    with pytest.raises(Unread):
        runtime_tokens(b"#if a \\ \n b\n")


def test_known_files_hold_only_holes_that_there_are():
    from gbfl_compile.checking.strict.c.template import KINDS

    used = {kind for file in KNOWN.glob("*.[ch]") for kind in re.findall(r"\$([a-z_0-9]+):", file.read_text())}
    assert used - {"each", "when"} == set(KINDS)
