"""One edit of an emitted JavaScript module: a token changed, replaced, left out, doubled, swapped or put in."""

import math
import re

PIECE = re.compile(
    r'//[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|[0-9][0-9.]*(?:e[+-]?[0-9]+)?|[!=]==|&&|\|\||[<>]=?|\s+|.'
)
NUMBER = re.compile(r"[0-9][0-9.]*(?:e[+-]?[0-9]+)?")
ALIKE = (("<", "<=", ">", ">=", "===", "!=="), ("&&", "||"), ("true", "false", "null"))
ANY = (
    *(
        "<",
        "<=",
        ">",
        ">=",
        "===",
        "!==",
        "==",
        "!=",
        "&&",
        "||",
        "&",
        "|",
        "!",
        "+",
        "-",
        "??",
        "=",
        ",",
        ";",
        "(",
        ")",
    ),
    *("true", "false", "null", "undefined", "NaN", "row", "columns", "i", "0", "1", "age", "x0", "own", "return", "\n"),
)


def edit(choose, text):
    """The text with one edit: a token changed into one that could be there, or replaced, left out, doubled, swapped."""
    pieces = PIECE.findall(text)
    solid = [i for i, piece in enumerate(pieces) if piece.strip() and not piece.startswith("//")]
    names = [i for i in solid if pieces[i] == "function"]
    first = names[0] if choose.random() < 0.75 else 0
    inside = [i for i in solid if first <= i < names[1]] if first else solid
    at = choose.choice(inside)
    if choose.random() < 0.6:
        at = choose.choice([i for i in inside if _alike(choose, pieces, i, inside) != pieces[i]] or inside)
        pieces[at] = _alike(choose, pieces, at, inside)
        return "".join(pieces)
    match choose.choice(("replace", "delete", "double", "swap", "insert")):
        case "replace":
            pieces[at] = choose.choice((*ANY, pieces[choose.choice(solid)]))
        case "delete":
            pieces[at] = ""
        case "double":
            pieces[at] = f"{pieces[at]} {pieces[at]}"
        case "swap":
            other = choose.choice(inside)
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case "insert":
            pieces[at] = f"{pieces[at]} {choose.choice(ANY)} "
    return "".join(pieces)


def _alike(choose, pieces, at, inside):
    """Another token that the grammar may allow in the same place."""
    piece = pieces[at]
    if NUMBER.fullmatch(piece):
        number = float(piece)
        whole = piece.isdigit()
        near = (
            (number + 1, abs(number - 1)) if whole else (math.nextafter(number, math.inf), abs(number) / 2, number + 1)
        )
        return repr(int(choose.choice(near)) if whole else choose.choice(near))
    if piece[0] == '"':
        return choose.choice((piece[:-1] + ' "', piece.upper(), '""', piece[:-1] + '\\u0301"', piece.lower()))
    for group in ALIKE:
        if piece in group:
            return choose.choice(group)
    return piece


def mutated(choose, files):
    """The files with one edit in the module, and the module as it then is."""
    text = edit(choose, files["model.js"].decode())
    return {**files, "model.js": text.encode()}, text
