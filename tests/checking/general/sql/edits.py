"""Rewrites SQL on sqlglot's trees, with and without a change of meaning, to test the SQL reader."""

import math

import sqlglot
from sqlglot import exp

from gbfl_compile.checking.general.sql.engines import ENGINES

MIRRORED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
OPPOSITE = {exp.GT: exp.LTE, exp.GTE: exp.LT, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}


def taken_apart(text, dialect):
    """The header's line and the statement's tree."""
    header = next(line for line in text.split("\n") if line.startswith("-- gbfl ["))
    body = "\n".join(line for line in text.split("\n") if not line.startswith("--"))
    return header, sqlglot.parse_one(body.rstrip().rstrip(";"), read=ENGINES[dialect].parsed_as)


def put_together(choose, header, tree, dialect):
    body = tree.sql(dialect=ENGINES[dialect].parsed_as, pretty=choose.random() < 0.5)
    if choose.random() < 0.5:
        for name in ("gbfl_rows", "gbfl_reached", "gbfl_points", "gbfl_leaf", "gbfl_asked"):
            body = body.replace(name, f"renamed_{name[5:]}")
    return f"{header}\n{body}\n"


def parts_of(node):
    """The operands of a chain of AND or OR."""
    kind, parts, waiting = type(node), [], [node]
    while waiting:
        part = waiting.pop().unnest()
        if type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def chain(kind, parts):
    made = wrapped(parts[0])
    for part in parts[1:]:
        made = kind(this=made, expression=wrapped(part))
    return made


def wrapped(node):
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Connector | exp.Not | exp.Predicate) else node.copy()


def respelled(choose, text, dialect, edits=6):
    """The same answers in other words."""
    header, tree = taken_apart(text, dialect)
    for _ in range(edits):
        change = choose.choice((_shuffle, _mirror, _negate, _between, _de_morgan, _nest, _flatten, _coalesce, _number))
        tree = _changed(choose, tree, lambda node, change=change: change(choose, node, dialect))
    return put_together(choose, header, tree, dialect)


def _changed(choose, tree, change):
    """The tree with one node changed, the first that can be in a random order."""
    nodes = list(tree.walk())
    for node in choose.sample(nodes, len(nodes)):
        made = change(node)
        if made is not None:
            if node is tree:
                return made
            node.replace(made)
            return tree
    return tree


def _shuffle(choose, node, dialect):
    if not isinstance(node, exp.And | exp.Or) or isinstance(node.parent, type(node)):
        return None
    parts = parts_of(node)
    choose.shuffle(parts)
    return exp.Paren(this=chain(type(node), parts))


def _mirror(choose, node, dialect):
    if type(node) not in MIRRORED:
        return None
    return MIRRORED[type(node)](this=node.expression.copy(), expression=node.this.copy())


def _negate(choose, node, dialect):
    """x >= t as NOT (x < t): the same where NaN has its place in the order."""
    if type(node) not in OPPOSITE or (ENGINES[dialect].nan == "ieee" and not isinstance(node, exp.EQ | exp.NEQ)):
        return None
    made = OPPOSITE[type(node)](this=node.this.copy(), expression=node.expression.copy())
    return exp.Not(this=exp.Paren(this=made))


def _between(choose, node, dialect):
    if not isinstance(node, exp.And) or isinstance(node.parent, exp.And):
        return None
    parts = parts_of(node)
    for low in parts:
        for high in parts:
            if isinstance(low, exp.GTE) and isinstance(high, exp.LTE) and low.this == high.this:
                made = exp.Between(this=low.this.copy(), low=low.expression.copy(), high=high.expression.copy())
                return exp.Paren(this=chain(exp.And, [made, *(p for p in parts if p is not low and p is not high)]))
    return None


def _de_morgan(choose, node, dialect):
    if not isinstance(node, exp.And | exp.Or) or isinstance(node.parent, type(node)):
        return None
    other = exp.Or if isinstance(node, exp.And) else exp.And
    return exp.Not(this=exp.Paren(this=chain(other, [exp.Not(this=wrapped(part)) for part in parts_of(node)])))


def _nest(choose, node, dialect):
    """The arms from the second on in a CASE of their own."""
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) < 2 or node.this:
        return None
    first, *rest = (arm.copy() for arm in node.args["ifs"])
    inner = exp.Case(ifs=rest, default=node.args["default"].copy())
    return exp.Case(ifs=[first], default=inner)


def _flatten(choose, node, dialect):
    """WHEN c THEN (CASE WHEN d THEN a ELSE b END) as WHEN c AND d THEN a WHEN c THEN b."""
    if not isinstance(node, exp.Case) or node.this:
        return None
    for place, arm in enumerate(node.args["ifs"]):
        inner = arm.args["true"].unnest()
        if isinstance(inner, exp.Case) and not inner.this and inner.args.get("default") is not None:
            made = [
                exp.If(this=chain(exp.And, [arm.this, each.this]), true=each.args["true"].copy())
                for each in inner.args["ifs"]
            ]
            made.append(exp.If(this=arm.this.copy(), true=inner.args["default"].copy()))
            arms = [*node.args["ifs"][:place], *made, *node.args["ifs"][place + 1 :]]
            return exp.Case(ifs=[each.copy() for each in arms], default=node.args["default"].copy())
    return None


def _coalesce(choose, node, dialect):
    """WHEN c as WHEN COALESCE(c, FALSE)."""
    if not isinstance(node, exp.If) or not isinstance(node.parent, exp.Case) or node.parent.this or dialect == "tsql":
        return None
    if dialect in ("sqlite", "oracle"):
        return None
    made = exp.Coalesce(this=node.this.copy(), expressions=[exp.false()])
    return exp.If(this=made, true=node.args["true"].copy())


def _number(choose, node, dialect):
    """18.0e0 as 18."""
    if not is_double(node) or not float(node.this).is_integer() or abs(float(node.this)) > 2**53:
        return None
    if not isinstance(node.parent, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return None
    return exp.Literal.number(str(int(float(node.this))))


def is_double(node):
    return isinstance(node, exp.Literal) and not node.is_string and "e" in node.this.lower()


def is_whole(node):
    return isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()


def mutated(choose, text, dialect):
    """The text with one slip in it (which may by luck change no answer), or None where this one is not possible."""
    header, tree = taken_apart(text, dialect)
    before = tree.sql()
    change = choose.choice((_one_ulp, _one_ulp, _operator, _drop, _swap_answers, _off_by_one, _reorder, _plain_not))
    tree = _changed(choose, tree, lambda node: change(choose, node, dialect))
    return None if tree.sql() == before else f"{header}\n{tree.sql(dialect=ENGINES[dialect].parsed_as)}\n"


def _one_ulp(choose, node, dialect):
    if not is_double(node):
        return None
    moved = math.nextafter(float(node.this), choose.choice((-math.inf, math.inf)))
    if moved < 0 or (dialect == "sqlite" and not 1e-60 < moved < 1e60):
        return None
    text = f"{moved:.16e}" if dialect == "sqlite" else repr(moved)
    return exp.Literal.number(text if "e" in text else f"{text}e0")


def _operator(choose, node, dialect):
    if type(node) not in MIRRORED:
        return None
    kinds = [kind for kind in MIRRORED if kind is not type(node)]
    return choose.choice(kinds)(this=node.this.copy(), expression=node.expression.copy())


def _drop(choose, node, dialect):
    """A guard, a bound or an alternative left out."""
    if not isinstance(node, exp.And | exp.Or):
        return None
    return choose.choice((node.this, node.expression)).copy()


def _swap_answers(choose, node, dialect):
    if not isinstance(node, exp.Case) or node.args.get("default") is None:
        return None
    arms = [arm.copy() for arm in node.args["ifs"]]
    place = choose.randrange(len(arms))
    default = arms[place].args["true"].copy()
    arms[place].set("true", node.args["default"].copy())
    return exp.Case(ifs=arms, default=default)


def _off_by_one(choose, node, dialect):
    if not is_whole(node) or node.find_ancestor(exp.DataType, exp.Limit, exp.Offset):
        return None
    return exp.Literal.number(str(int(node.this) + 1))


def _reorder(choose, node, dialect):
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) < 2:
        return None
    arms = [arm.copy() for arm in node.args["ifs"]]
    a, b = choose.sample(range(len(arms)), 2)
    arms[a], arms[b] = arms[b], arms[a]
    return exp.Case(ifs=arms, default=node.args["default"].copy())


def _plain_not(choose, node, dialect):
    if type(node) not in OPPOSITE:
        return None
    made = OPPOSITE[type(node)](this=node.this.copy(), expression=node.expression.copy())
    return exp.Not(this=exp.Paren(this=made))
