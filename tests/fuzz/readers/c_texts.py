"""Random texts for the places of a C artifact where something may vary: rules, nested ifs, numbers and strings."""

FEATURES = 3
KINDS = {"rule": 5, "lanes": 3, "tree": 2, "real": 3, "whole": 1, "unsigned_literal": 1, "count": 0.5, "string": 1}
"""How often each kind is tried."""

SIGNS = ("<", "<=", ">", ">=")
SPARE = (
    "&&",
    "||",
    "&",
    "|",
    "!",
    "(",
    ")",
    "1",
    "0",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "-",
    "+",
    "~",
    "^",
    "=",
    "?",
    ":",
    ",",
)
COMMENTS = (
    "/* a */",
    "/* /* */",
    "// a\n",
    "/**/",
    "/* it's */",
    "// \\\n",
    "//*\n",
    "\t",
    "\n",
    "\r",
    "\x0c",
    "/*\\*/",
    "??/\n",
)


def random_text(choose, kind, real, numbers):
    """A text of this kind, some of them with a slip in it."""
    if kind == "string":
        return _string(choose)
    if kind in ("real", "whole", "unsigned_literal", "count"):
        return _real(choose, real, numbers) if kind == "real" else _whole(choose)
    made = _tree(choose, real, numbers) if kind == "tree" else _rule(choose, kind, real, numbers)
    return _slip(choose, made) if choose.random() < 0.3 else made


def _rule(choose, kind, real, numbers, depth=0):
    if depth > 3 or choose.random() < 0.35:
        return _comparison(choose, kind, real, numbers)
    parts = [_rule(choose, kind, real, numbers, depth + 1) for _ in range(choose.choice((1, 2, 2, 3)))]
    found = parts[0]
    for part in parts[1:]:
        found = f"{found} {choose.choice(('&&', '||', '&', '|'))} {part}"
    return choose.choice(("{}", "({})", "({})", "!({})", "! ({})")).format(found)


def _comparison(choose, kind, real, numbers):
    value = _value(choose, kind)
    chance = choose.random()
    if chance < 0.1:
        other = value if choose.random() < 0.9 else _value(choose, kind)
        return f"{value} {choose.choice(('==', '!='))} {other}"
    if chance < 0.14:
        return choose.choice(("1", "0", "!(1)", "(1)"))
    made = f"{value} {choose.choice(SIGNS)} {choose.choice(('', '', '', '', '-', '-', '- ', '-', '+'))}{_real(choose, real, numbers, plain=0.85)}"
    return made if choose.random() < 0.3 else f"({made})"


def _value(choose, kind):
    number = choose.choice((0, 1, 2, 2, 1, 0, 0, 3) if choose.random() < 0.1 else (0, 1, 2))
    if kind == "lanes":
        return f"x{number}"
    return choose.choice((f"x[{number}]",) * 8 + (f"x[0x{number}]", f"x[0{number}]", f"x [ {number} ]", f"{number}[x]"))


def _real(choose, real, numbers, plain=0.0):
    """A number in decimal or hexadecimal, many of them exact; as plain as the emitter's with this probability."""
    number = abs(choose.choice(numbers))
    digits = number.hex()
    if choose.random() < plain:
        return f"{digits}f" if real == "float" else digits
    ending = (
        choose.choice(("f",) * 9 + ("", "F")) if real == "float" else choose.choice(("",) * 12 + ("f", "L", "l", "d"))
    )
    if choose.random() < 0.65:
        text = choose.choice((digits, digits.upper(), digits.replace("p+", "p"), digits.replace("0x1.", "0x01.")))
        if choose.random() < 0.15:
            text = text.replace(".", choose.choice((".0", "", "0.", "8.", ".8")))
        if choose.random() < 0.2:  # the same number with another exponent
            mantissa, _, power = digits.partition("p")
            text = f"{mantissa.replace('.', '')}p{int(power) - 4 * len(mantissa.partition('.')[2])}"
    else:
        text = choose.choice(
            (repr(number), f"{number:.6g}", f"{number:.1f}", f"{number:.0f}.", f"{number:.3e}", f"{number:.60f}")
        )
        text = choose.choice((text, text, text, f"0{text}", f"{text}e0", f"{text}E+1", text.removeprefix("0")))
    return text + ending


def _whole(choose):
    number = choose.choice(
        (choose.randrange(20), 2 ** choose.choice((7, 8, 15, 31, 32, 53, 63, 64)) + choose.choice((-2, -1, 0, 1)))
    )
    text = choose.choice(
        (str(number), str(number), hex(number), hex(number).upper(), f"0{number}", f"-{number}", f"- {number}")
    )
    text += choose.choice(("",) * 8 + ("u", "U", "ull", "L", "LL", "e0", "."))
    return f"INT64_C({text})" if choose.random() < 0.25 else text


PIECES = (
    "a",
    "B",
    " ",
    "\\n",
    "\\t",
    "\\\\",
    '\\"',
    "\\'",
    "'",
    "\\101",
    "\\303\\251",
    "\\377",
    "\\0",
    "\\x41",
    "\\1012",
    "\\12",
    "\\a",
)
PIECES += (
    "%d",
    "??",
    "?",
    "/*",
    "*/",
    "//",
    "\\?",
    "\\000",
    "\\u0041",
    "\\e",
    "9",
    "\\3019",
    "\\360\\237\\230\\200",
    "\t",
)


def _string(choose):
    prefix = choose.choice(("",) * 20 + ("L", "u8", "U"))
    made = prefix + '"' + "".join(choose.choice(PIECES) for _ in range(choose.randint(0, 5))) + '"'
    return made + (' "b"' if choose.random() < 0.05 else "")


def _tree(choose, real, numbers, depth=0):
    """`if (rule) { … } … return 3;`"""
    made = ""
    for _ in range(choose.choice((0, 1, 1, 2)) if depth < 3 else 0):
        made += f"if ({_rule(choose, 'rule', real, numbers, 2)}) {{ {_tree(choose, real, numbers, depth + 1)} }} "
    return f"{made}return {choose.choice((str(choose.randrange(9)), '0x1f', '012') if choose.random() < 0.1 else '01234')};"


def _slip(choose, made):
    """One or two tokens taken out, put in, exchanged or doubled; or a comment."""
    words = made.replace("(", " ( ").replace(")", " ) ").replace("]", " ]").replace("[", " [ ").split()
    for _ in range(choose.choice((1, 1, 2))):
        at, other = choose.randrange(len(words)), choose.randrange(len(words))
        match choose.randrange(5):
            case 0:
                words[at] = choose.choice((*words, *SPARE))
            case 1:
                words.insert(at, choose.choice((*words, *SPARE)))
            case 2:
                words[at], words[other] = words[other], words[at]
            case 3:
                words.insert(at, choose.choice(COMMENTS))
            case 4 if len(words) > 1:
                del words[at]
    return (" " if choose.random() < 0.9 else "").join(words)
