"""Edits of emitted C: the same rules written differently, and a file with one slip in it."""

import re

import numpy as np
from pycparser import c_ast, c_generator, c_parser

TYPEDEFS = "".join(f"typedef int {name};" for name in ("int32_t", "int64_t", "uint32_t", "uint64_t", "size_t"))
RULES = ("leaf_of", "find_held", "class_block", "leaf_block", "sums_block")
COMPARISONS = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def respelled(choose, files):
    """The files with the rules said otherwise; every answer stays."""
    text = files["model.c"].decode()
    single = b"model_REAL_BITS = 32" in files["model.h"]
    for name in RULES:
        found = re.search(rf"^static \w+ model_{name}\(.*?\n}}\n", text, re.DOTALL | re.MULTILINE)
        if found and "model_bin_masks" not in found.group() and "model_bin_features" not in found.group():
            text = text.replace(found.group(), function(choose, found.group(), single, name))
    if choose.random() < 0.5:
        text = text.replace("    ", "\t").replace(";\n", "; // edited\n", choose.randrange(20))
    return {**files, "model.c": text.encode()}


def function(choose, text, single, name):
    node = c_parser.CParser().parse(f"{TYPEDEFS}\n{text}").ext[-1]
    if name == "leaf_of":
        node.body.block_items = statements(choose, node.body.block_items, single)
    elif name == "find_held":
        for item in node.body.block_items:
            if isinstance(item, c_ast.If):
                item.cond = expression(choose, item.cond, single)
                if choose.random() < 0.2:
                    item.cond, item.iftrue, item.iffalse = (
                        c_ast.UnaryOp("!", item.cond),
                        c_ast.Compound([]),
                        item.iftrue,
                    )
    else:
        for loop in (item for item in node.body.block_items if isinstance(item, c_ast.For)):
            kernel(choose, loop.stmt, single)
    made = c_generator.CGenerator().visit(node)
    if name == "leaf_of" and choose.random() < 0.5:
        made = re.sub(r"\bx\b", "row", made)
    return made + "\n"


def kernel(choose, block, single):
    for item in block.block_items:
        if isinstance(item, c_ast.For):
            kernel(choose, item.stmt, single)
        elif isinstance(item, c_ast.Decl) and item.init is not None:
            item.init = expression(choose, item.init, single)


def statements(choose, items, single):
    """A list of statements that ends in an answer, said otherwise."""
    for index, item in enumerate(items):
        if not isinstance(item, c_ast.If):
            continue
        condition = expression(choose, item.cond, single)
        inner = statements(choose, item.iftrue.block_items, single)
        rest = statements(choose, items[index + 1 :], single)
        before = items[:index]
        way = choose.choice(("same", "else", "not", "nest", "pick", "name"))
        if way == "not":
            return [*before, c_ast.If(c_ast.UnaryOp("!", condition), c_ast.Compound(rest), c_ast.Compound(inner))]
        if way == "else":
            return [*before, c_ast.If(condition, c_ast.Compound(inner), c_ast.Compound(rest))]
        if way == "nest" and isinstance(condition, c_ast.BinaryOp) and condition.op == "&&":
            both = c_ast.If(
                condition.left, c_ast.Compound([c_ast.If(condition.right, c_ast.Compound(inner), None)]), None
            )
            return [*before, both, *rest]
        if way == "pick" and all(len(side) == 1 and isinstance(side[0], c_ast.Return) for side in (inner, rest)):
            return [*before, c_ast.Return(c_ast.TernaryOp(condition, inner[0].expr, rest[0].expr))]
        if way == "name":
            name = f"asked{choose.randrange(10**6)}"
            kind = c_ast.TypeDecl(name, ["const"], None, c_ast.IdentifierType(["int"]))
            named = c_ast.Decl(name, ["const"], [], [], [], kind, condition, None)
            return [*before, named, c_ast.If(c_ast.ID(name), c_ast.Compound(inner), None), *rest]
        return [*before, c_ast.If(condition, c_ast.Compound(inner), None), *rest]
    return items


def is_truth(node):
    match node:
        case c_ast.BinaryOp() if node.op in COMPARISONS or node.op in ("&&", "||"):
            return True
        case c_ast.BinaryOp() if node.op in ("&", "|"):
            return is_truth(node.left) and is_truth(node.right)
        case c_ast.UnaryOp():
            return node.op == "!"
        case _:
            return False


def expression(choose, node, single):
    if isinstance(node, c_ast.BinaryOp) and node.op in COMPARISONS:
        return comparison(choose, node, single)
    if is_truth(node) and isinstance(node, c_ast.BinaryOp):
        sides = [expression(choose, side, single) for side in (node.left, node.right)]
        choose.shuffle(sides)
        if choose.random() < 0.2:
            other = {"&&": "||", "||": "&&", "&": "|", "|": "&"}[node.op]
            return c_ast.UnaryOp("!", c_ast.BinaryOp(other, *(c_ast.UnaryOp("!", side) for side in sides)))
        if choose.random() < 0.1:
            return c_ast.BinaryOp({"&&": "&", "&": "&&"}.get(node.op, node.op), *sides)
        return c_ast.BinaryOp(node.op, *sides)
    match node:
        case c_ast.UnaryOp():
            node.expr = expression(choose, node.expr, single)
        case c_ast.Cast():
            node.expr = expression(choose, node.expr, single)
        case c_ast.BinaryOp():
            node.left, node.right = expression(choose, node.left, single), expression(choose, node.right, single)
            if choose.random() < 0.3 and node.op in ("^", "&", "+"):
                node.left, node.right = node.right, node.left
    return node


def comparison(choose, node, single):
    bound = number_of(node.right)
    way = choose.choice(("same", "mirror", "strict", "not", "decimal"))
    if way == "mirror":
        return c_ast.BinaryOp(COMPARISONS[node.op], node.right, node.left)
    if bound is None:
        return node
    if way == "decimal":
        return c_ast.BinaryOp(node.op, node.left, literal(bound, single))
    if way == "strict":
        kind = np.float32 if single else np.float64
        up = node.op in (">", "<=")
        with np.errstate(all="ignore"):
            moved = float(np.nextafter(kind(bound), kind(np.inf if up else -np.inf)))
        if np.isfinite(moved):
            sign = {">=": ">", ">": ">=", "<=": "<", "<": "<="}[node.op]
            return c_ast.BinaryOp(sign, node.left, literal(moved, single))
    if way == "not":
        inner = c_ast.BinaryOp(OPPOSITE[node.op], node.left, node.right)
        gone = c_ast.BinaryOp("!=", node.left, node.left)
        return c_ast.UnaryOp("!", c_ast.BinaryOp("||", inner, gone))
    return node


def number_of(node):
    sign = 1.0
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
        sign, node = -1.0, node.expr
    if isinstance(node, c_ast.Constant) and node.type in ("double", "float"):
        return sign * float.fromhex(node.value.rstrip("f"))
    return None


def literal(value, single):
    text = f"{abs(value):.9g}" if single else repr(abs(value))
    text = text if "." in text or "e" in text else f"{text}.0"
    made = c_ast.Constant("float" if single else "double", f"{text}f" if single else text)
    return c_ast.UnaryOp("-", made) if value < 0 or (value == 0 and str(value)[0] == "-") else made


TOKEN = re.compile(
    r"0x[0-9a-f.]+p[+-]\d+f?|0x[0-9a-f]+u?|\b\d+u?\b|[<>=!]=|&&|\|\||[<>&|^!+-]|\b[a-z_][a-zA-Z0-9_]*\b", re.ASCII
)
RULE = re.compile(r"\bx(?:\[\d+\]|\d+) ([<>]=?) -?(0x[0-9a-f.]+p[+-]\d+f?)", re.ASCII)


def mutated(choose, files):
    """The files with one slip in them: a token changed, a line gone, two lines exchanged; what was slipped."""
    name = "model.h" if choose.random() < 0.1 else "model.c"
    text = re.sub(r"/\*(?! gbfl api).*?\*/", "", files[name].decode(), flags=re.DOTALL)
    way = choose.choice(("token", "token", "rule", "rule", "rule", "line", "lines", "literals"))
    lines = text.split("\n")
    if way in ("line", "lines"):
        i, j = choose.randrange(len(lines)), choose.randrange(len(lines))
        if way == "line":
            what = lines.pop(i)
        else:
            what = f"{lines[i]} <-> {lines[j]}"
            lines[i], lines[j] = lines[j], lines[i]
        return {**files, name: "\n".join(lines).encode()}, what
    if way == "literals":
        return {**files, name: shorter_literals(text).encode()}, "%.15g literals"
    spans = [token.span() for token in TOKEN.finditer(text)]
    if way == "rule":  # the sign or the number of a comparison
        spans = [choose.choice((rule.span(1), rule.span(2))) for rule in RULE.finditer(text)] or spans
    start, end = choose.choice(spans)
    new = slip(choose, text[start:end])
    return {**files, name: (text[:start] + new + text[end:]).encode()}, f"{text[start:end]} -> {new}"


def shorter_literals(text):
    """Thresholds with fifteen digits, as people write them: most are another number then."""
    return re.sub(r"0x[0-9a-f.]+p[+-]\d+(?!\w)", lambda found: _fifteen_digits(float.fromhex(found.group())), text)


def _fifteen_digits(value):
    text = f"{value:.15g}"
    return text if "." in text or "e" in text else f"{text}.0"


SIGNS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "&", "|", "^", "+", "-", "!")


def slip(choose, token):
    if re.match(r"0x.*p", token):
        single = token.endswith("f")
        kind = np.float32 if single else np.float64
        value = kind(float.fromhex(token.rstrip("f")))
        with np.errstate(all="ignore"):
            moved = float(np.nextafter(value, kind(choose.choice((np.inf, -np.inf)))))
        return choose.choice((moved.hex() + "f" * single, "0x1p+0" + "f" * single))
    if re.match(r"\d|0x", token):
        number = int(token.rstrip("u"), 0)
        return f"{max(0, number + choose.choice((-1, 1)))}{'u' if token.endswith('u') else ''}"
    if token in SIGNS:
        return choose.choice(SIGNS)
    return choose.choice((f"{token}_", "x", "i", "out", "int64_t", "float"))
