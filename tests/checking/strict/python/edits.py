"""Edits of an emitted Python module: the same rules written differently, and rules with one slip in them."""

import ast
import math

from gbfl_compile.ir.intervals import above, below

RULES = ("_leaf", "_held")


def parts(source):
    """The module's tree and its function of rules."""
    tree = ast.parse(source)
    return tree, next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in RULES)


def respelled(choose, files):
    """The module with its rules said otherwise; every answer stays."""
    tree, rules = parts(files["model.py"])
    names = {node.id for node in ast.walk(rules) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    rename(rules, {name: f"v_{name}" for name in names if choose.random() < 0.7})
    if rules.name == "_leaf":
        rules.body = statements(choose, rules.body)
    else:
        last = rules.body[-1]
        last.value.elts = [condition(choose, value) for value in last.value.elts]
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function is not rules and choose.random() < 0.3:
            stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            rename(function, {name: f"{name}_{choose.randrange(9)}" for name in stored})
    return {"model.py": ast.unparse(ast.fix_missing_locations(tree)).encode()}


def rename(function, names):
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]


def statements(choose, body):
    """A list of statements that ends in an answer, said otherwise."""
    body = list(body)
    for index, statement in enumerate(body):
        if not isinstance(statement, ast.If):
            continue
        test = condition(choose, statement.test)
        inner, rest = statements(choose, statement.body), statements(choose, body[index + 1 :])
        before = body[:index]
        way = choose.choice(("same", "else", "not", "name", "or", "pick"))
        if way == "name":
            before, test = [*before, _assign("asked", test)], ast.Name("asked", ast.Load())
        if way == "not":
            return [*before, ast.If(ast.UnaryOp(ast.Not(), test), rest, inner)]
        if way == "or" and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return [*before, *(ast.If(part, inner, []) for part in test.values), *rest]
        if way == "pick" and all(len(side) == 1 and isinstance(side[0], ast.Return) for side in (inner, rest)):
            return [*before, ast.Return(ast.IfExp(test, inner[0].value, rest[0].value))]
        if way == "else":
            return [*before, ast.If(test, inner, rest)]
        return [*before, ast.If(test, inner, []), *rest]
    return body


def _assign(name, value):
    return ast.Assign([ast.Name(name, ast.Store())], value)


def condition(choose, node):
    """A truth value said otherwise."""
    if isinstance(node, ast.BoolOp):
        values = [condition(choose, value) for value in node.values]
        choose.shuffle(values)
        joined = ast.BoolOp(node.op, values)
        if choose.random() < 0.2:
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return ast.UnaryOp(ast.Not(), ast.BoolOp(other, [ast.UnaryOp(ast.Not(), value) for value in values]))
        if choose.random() < 0.2 and len(values) == 2:
            return ast.BinOp(values[0], ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), values[1])
        return joined
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.UnaryOp(ast.Not(), condition(choose, node.operand))
    if isinstance(node, ast.Compare):
        return comparison(choose, node)
    return node


MIRRORED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}


def comparison(choose, node):
    operands = [node.left, *node.comparators]
    if len(node.ops) == 2:
        links = [ast.Compare(operands[i], [node.ops[i]], [operands[i + 1]]) for i in range(2)]
        if choose.random() < 0.3:
            return node
        return condition(choose, ast.BoolOp(ast.And(), links))
    way = choose.choice(("same", "mirror", "strict", "not", "twice", "isnan"))
    if way == "mirror":
        return ast.Compare(operands[1], [MIRRORED[type(node.ops[0])]()], [operands[0]])
    if way == "isnan" and ast.unparse(operands[0]) == ast.unparse(operands[1]):
        test = ast.Call(ast.Attribute(ast.Name("_math", ast.Load()), "isnan", ast.Load()), [operands[0]], [])
        return test if isinstance(node.ops[0], ast.NotEq) else ast.UnaryOp(ast.Not(), test)
    bound = number_of(operands[1])
    if bound is None:
        return node
    if way == "strict":
        moved = {ast.GtE: (ast.Gt, below), ast.Gt: (ast.GtE, above), ast.LtE: (ast.Lt, above), ast.Lt: (ast.LtE, below)}
        sign, move = moved[type(node.ops[0])]
        if math.isfinite(move(bound)):
            return ast.Compare(operands[0], [sign()], [ast.Constant(move(bound))])
    if way == "not":
        opposite = {ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Lt: ast.GtE}
        inner = ast.Compare(operands[0], [opposite[type(node.ops[0])]()], [operands[1]])
        gone = ast.Compare(operands[0], [ast.NotEq()], [operands[0]])
        return ast.UnaryOp(ast.Not(), ast.BoolOp(ast.Or(), [inner, gone]))
    return ast.BoolOp(ast.And(), [node, node]) if way == "twice" else node


def number_of(node):
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, float) else None


def mutated(choose, files):
    """The module with one slip in it, anywhere; what was slipped."""
    tree, rules = parts(files["model.py"])
    if choose.random() < 0.1 and len(rules.body) > 1:
        i, j = choose.sample(range(len(rules.body)), 2)
        rules.body[i], rules.body[j] = rules.body[j], rules.body[i]
        return {"model.py": ast.unparse(tree).encode()}, f"statements {i} and {j} exchanged"
    scope = rules if choose.random() < 0.6 else tree
    nodes = [node for node in ast.walk(scope) if isinstance(node, SLIPS)]
    node = choose.choice(nodes)
    what = slip(choose, node)
    return {"model.py": ast.unparse(ast.fix_missing_locations(tree)).encode()}, f"{type(node).__name__}: {what}"


SLIPS = (ast.Compare, ast.Constant, ast.BoolOp, ast.If, ast.Tuple, ast.Return, ast.Subscript, ast.Name)


def slip(choose, node):
    match node:
        case ast.Compare():
            index = choose.randrange(len(node.ops))
            node.ops[index] = choose.choice(list(MIRRORED))()
            return ast.unparse(node)
        case ast.Constant(bool()):
            node.value = not node.value
        case ast.Constant(float()):
            node.value = choose.choice((above(node.value), below(node.value), -node.value, node.value * 2, 0.0))
        case ast.Constant(int()):
            node.value += choose.choice((-1, 1))
        case ast.Constant(str()):
            node.value += " "
        case ast.BoolOp():
            if choose.random() < 0.5:
                node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            else:
                del node.values[choose.randrange(len(node.values))]
        case ast.If():
            if choose.random() < 0.5:
                node.test = ast.UnaryOp(ast.Not(), node.test)
            else:
                node.body, node.orelse = node.orelse or [ast.Pass()], node.body
        case ast.Tuple(items) if len(items) > 1:
            i, j = choose.sample(range(len(items)), 2)
            items[i], items[j] = items[j], items[i]
        case ast.Tuple(items):
            items.append(ast.Constant(0))
        case ast.Return():
            node.value = ast.Constant(choose.randrange(4))
        case ast.Subscript():
            node.slice = ast.Constant(choose.randrange(-3, 4))
        case ast.Name():
            node.id += "_"
    return ast.unparse(node)[:60]
