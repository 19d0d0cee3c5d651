"""What surrounds the rules in an emitted Python module, as this reader knows it, function by function.

A function is recognised when its syntax tree is one of these, whatever its local variables are called. `_leaf` and
`_held` are not here: they carry the decisions and are read.
"""

from __future__ import annotations

ROWS = """
def predict_many(rows):
    return [predict(row) for row in rows]

def _values(row):
    if hasattr(row, "keys"):
        return [_number(_named(row, name), name) for name in FEATURES]
    if isinstance(row, (str, bytes, bytearray, set, frozenset)):
        raise ValueError(f"a row is a mapping or a sequence of numbers, not {type(row).__name__}")
    try:
        values = list(row)
    except TypeError:
        raise ValueError(f"a row is a mapping or a sequence of numbers, not {type(row).__name__}") from None
    if len(values) != len(FEATURES):
        raise ValueError(f"the row has {len(values)} values, the model has {len(FEATURES)} features")
    return [_number(value, name) for value, name in zip(values, FEATURES)]

def _named(row, name):
    try:
        return row[name]
    except KeyError:
        raise ValueError(f"the row has no feature {name!r}") from None

def _number(value, name):
    if type(value) is float:
        return value
    if value is None:
        return _math.nan
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ValueError(f"feature {name!r}: {value!r} is not a number")
"""

TREE = """
def predict(row):
    return CLASSES[_LEAVES[_leaf(_values(row))][0]]

def predict_proba(row):
    return _LEAVES[_leaf(_values(row))][1]

def explain(row):
    leaf = _leaf(_values(row))
    winner, probabilities, step = _LEAVES[leaf]
    path = []
    while step >= 0:
        step, clause, held = _STEPS[step]
        path.insert(0, (clause, held))
    return {
        "label": CLASSES[winner],
        "probabilities": probabilities,
        "leaf": leaf,
        "held": tuple(sorted(clause for clause, held in path if held)),
        "because": tuple(CLAUSES[clause] if held else f"not ({CLAUSES[clause]})" for clause, held in path),
    }
"""

TREE_WITH_REASONS = TREE.replace(
    "for clause, held in path),\n    }",
    "for clause, held in path),\n"
    '        "reasons": tuple(REASONS[clause] for clause, held in path if held and clause in REASONS),\n    }',
)

RULE_SET = """
def predict(row):
    return CLASSES[_winner(score(row))]

def predict_proba(row):
    return _softmax(score(row))

def score(row):
    return _score(_held(_values(row)))

def explain(row):
    held = _held(_values(row))
    scores = _score(held)
    numbers = tuple(clause for clause, holds in enumerate(held) if holds)
    return {
        "label": CLASSES[_winner(scores)],
        "probabilities": _softmax(scores),
        "scores": scores,
        "held": numbers,
        "because": tuple(CLAUSES[clause] for clause in numbers),
    }

def _score(held):
    scores = list(_BIAS)
    for points, holds in zip(_POINTS, held):
        if holds:
            for c, worth in enumerate(points):
                scores[c] += worth
    return tuple(scores)

def _winner(scores):
    return scores.index(max(scores))

def _softmax(scores):
    top = max(scores)
    weights = [_math.exp(_math.ldexp(points - top, -_SCALE)) for points in scores]
    total = _math.fsum(weights)
    return tuple(weight / total for weight in weights)
"""

RULE_SET_WITH_REASONS = RULE_SET.replace(
    "for clause in numbers),\n    }",
    "for clause in numbers),\n"
    '        "reasons": tuple(REASONS[clause] for clause in numbers if clause in REASONS),\n    }',
)
