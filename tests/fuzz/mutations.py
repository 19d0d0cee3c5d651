"""Inputs with something broken in them: by bytes, by tokens, by the structure of JSON. The same seed breaks the same way."""

import json
import re


def broken_bytes(choose, content):
    """Bytes with something broken in them."""
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        content = _broken_once(choose, content)
    return content


def _broken_once(choose, content):
    match choose.choice(
        ("flip", "flip", "byte", "cut", "insert", "drop line", "repeat line", "swap lines", "repeat part")
    ):
        case "flip" if content:
            at = choose.randrange(len(content))
            return content[:at] + bytes((content[at] ^ (1 << choose.randrange(8)),)) + content[at + 1 :]
        case "byte" if content:
            at = choose.randrange(len(content))
            return content[:at] + bytes((choose.randrange(256),)) + content[at + 1 :]
        case "cut":
            return content[: choose.randrange(len(content) + 1)]
        case "insert":
            at = choose.randrange(len(content) + 1)
            return content[:at] + choose.choice(INSERTED) + content[at:]
        case "drop line":
            lines = content.split(b"\n")
            del lines[choose.randrange(len(lines))]
            return b"\n".join(lines)
        case "repeat line":
            lines = content.split(b"\n")
            lines.insert(choose.randrange(len(lines)), choose.choice(lines))
            return b"\n".join(lines)
        case "swap lines":
            lines = content.split(b"\n")
            i, j = choose.randrange(len(lines)), choose.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            return b"\n".join(lines)
        case "repeat part":
            at = choose.randrange(len(content) + 1)
            return content[:at] + content[at : at + 40] * choose.choice((2, 50)) + content[at:]
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
    b"NOT ",
    b"NULL",
    b"CASE WHEN ",
    b" END",
    b" OR ",
    b"SELECT ",
    b"1e400",
    b"--",
)

TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9a-zA-Z_.]*|\s+|[<>=!&|+*/-]{1,2}|.", re.DOTALL)

NUMBERS = (
    *(b"0", b"1", b"-1", b"2", b"255", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"1" * 400),
    *(b"0.1", b"1e308", b"1e309", b"5e-324", b"0x1p-1074", b"0x1.fffffffffffffp+1023", b"1e-400", b"0.0", b"-0.0"),
)

WORDS = (
    *(b"(", b")", b"[", b"]", b"{", b"}", b",", b";", b":", b"'", b'"', b"`", b"\\", b"\n", b"#", b"--", b"/*", b"*/"),
    *(
        b"<",
        b"<=",
        b">",
        b">=",
        b"==",
        b"!=",
        b"=",
        b"<>",
        b"+",
        b"-",
        b"*",
        b"/",
        b"%",
        b"!",
        b"~",
        b"^",
        b"&&",
        b"||",
    ),
    *(b"and", b"or", b"not", b"if", b"else", b"return", b"for", b"while", b"def", b"lambda", b"None", b"True", b"is"),
    *(
        b"AND",
        b"OR",
        b"NOT",
        b"NULL",
        b"CASE",
        b"WHEN",
        b"THEN",
        b"ELSE",
        b"END",
        b"SELECT",
        b"FROM",
        b"IN",
        b"BETWEEN",
    ),
    *(b"IS", b"CAST", b"AS", b"UNION ALL", b"WITH", b"WHERE", b"LIMIT 1", b"COALESCE", b"EXISTS", b"LATERAL", b"NaN"),
    *(b"int", b"double", b"float", b"static", b"const", b"struct", b"goto", b"switch", b"case", b"do", b"sizeof", b"?"),
    *(
        b"#define",
        b"#include",
        b"#if",
        b"#endif",
        b"#pragma",
        b"??/",
        b"/**/",
        b"//",
        b"__attribute__",
        b"typedef",
        b"enum",
    ),
)


def broken_tokens(choose, content, other=b""):
    """Text with some of its tokens dropped, doubled, exchanged or replaced, or with a stretch of another text in it."""
    tokens = TOKEN.findall(content)
    if not tokens:
        return broken_bytes(choose, content)
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        at = choose.randrange(len(tokens))
        match choose.choice(("drop", "double", "swap", "number", "word", "word", "own", "stretch", "splice", "nest")):
            case "drop":
                tokens[at] = b""
            case "double":
                tokens[at] = tokens[at] + b" " + tokens[at]
            case "swap":
                other_at = choose.randrange(len(tokens))
                tokens[at], tokens[other_at] = tokens[other_at], tokens[at]
            case "number":
                places = [place for place, token in enumerate(tokens) if token[:1].isdigit()]
                tokens[choose.choice(places) if places else at] = choose.choice(NUMBERS)
            case "word":
                tokens[at] = choose.choice(WORDS)
            case "own":
                tokens[at] = choose.choice(tokens)
            case "stretch":
                end = min(len(tokens), at + choose.randrange(1, 30))
                place = choose.randrange(len(tokens))
                tokens[place] += b" " + b"".join(tokens[at:end])
            case "splice":
                stretch = TOKEN.findall(other)
                start = choose.randrange(len(stretch) + 1)
                tokens[at] = b"".join(stretch[start : start + choose.randrange(1, 30)])
            case "nest":
                opening, closing = choose.choice(
                    ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"not ", b""), (b"-", b""))
                )
                times = choose.choice((1, 3, 50, 400))
                tokens[at] = opening * times + tokens[at] + closing * times
    return b"".join(tokens)


VALUES = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.0, 0.1, 2**31, 2**53, 2**63, -(2**63) - 1, 10**400, 1e308, 5e-324),
    *(
        "",
        "x",
        "\0",
        "\ud800",
        "\u2028",
        "é",
        "x" * 1100,
        "left",
        "both",
        "tree",
        "scorecard",
        "nan",
        "inf",
        "-0x0.0p+0",
    ),
    *("0x1p-1074", "0x1p99999", "0x1.8p+1", "1" * 500, "{{ 7*7 }}", "a\nb", float("nan"), float("inf")),
)


def broken_form(choose, form):
    """A JSON form with something in it replaced, dropped, doubled, moved, deepened. Lists are copied, never shared."""
    form = json.loads(json.dumps(form))
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        places = list(_places(form))
        if not places:
            return _value(choose)
        home, key = choose.choice(places)
        match choose.choice(("value", "value", "near", "drop", "double", "copy", "rename", "deepen")):
            case "value":
                home[key] = _value(choose)
            case "near" if type(home[key]) is int:
                home[key] += choose.choice((-1, 1, 2**31))
            case "drop":
                del home[key]
            case "double" if isinstance(home, list):
                home.insert(key, home[key])
            case "copy":
                there, its_key = choose.choice(places)
                try:
                    home[key] = json.loads(json.dumps(there[its_key]))
                except (IndexError, KeyError, RecursionError):
                    home[key] = None
            case "rename" if isinstance(home, dict):
                home[choose.choice(("extra", "", "hex", "rows", "lo", "hi", "clause"))] = home.pop(key)
            case "deepen":
                for _ in range(choose.choice((1, 2, 40))):
                    home[key] = choose.choice(([home[key]], {"a": home[key]}))
    return form


def _value(choose):
    value = choose.choice((*VALUES, "list", "dict"))
    return [] if value == "list" else {} if value == "dict" else value


def _places(form):
    """(container, key) of everything in a form."""
    waiting = [form]
    while waiting:
        node = waiting.pop()
        keys = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            yield node, key
            if isinstance(node[key], dict | list):
                waiting.append(node[key])


def broken_json(choose, content):
    """A JSON document broken in its structure, its text, or both."""
    if choose.random() < 0.7:
        try:
            content = json.dumps(broken_form(choose, json.loads(content))).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return broken_bytes(choose, content)
        if choose.random() < 0.8:
            return content
    return choose.choice((broken_bytes, broken_tokens, _awkward_json))(choose, content)


def _awkward_json(choose, content):
    """What JSON allows, or nearly: keys twice, numbers without end, constants, marks of byte order, lone surrogates."""
    at = choose.randrange(len(content) + 1)
    return choose.choice(
        (
            b"\xef\xbb\xbf" + content,
            content.decode("utf-8", "replace").encode("utf-16"),
            content.replace(b'"', b'"schema": 1, "', 1),
            content[:at]
            + choose.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" * 5000, b'"\\ud800"'))
            + content[at:],
            content[:at] + b"[" * 100_000,
            content[:at] + b'{"a":' * 100_000,
            content + b" " * 1000 + b"{}",
        )
    )
