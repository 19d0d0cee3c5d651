"""The points of a rule set, added up: balanced sums of integers, in as many stages as suit the engine.

Two shapes. For one sum, or in an engine that shares equal expressions, each clause is tested in place:

    CASE WHEN "age" >= 18.0e0 THEN 3 ELSE 0 END + …

Where several classes get points and testing once is faster, a stage tests and the next multiplies, chunk by chunk:

    gbfl_asked    CASE WHEN "age" >= 18.0e0 THEN 1 ELSE 0 END AS "gbfl_held_0", …
    gbfl_points   "gbfl_held_0" * 3 + …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from gbfl_compile.backends.sql.conditions import clause_holds
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.text import Item, Stage, identifier, item, string, whole
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.ir.text import reasons_of, rule_reasons

REASON = "gbfl_rules"

Term: TypeAlias = Callable[[str, str, str], str]
"""A term of a sum, from the texts of a condition, of the points it gives and of no points."""


def points_name(index: int) -> str:
    """The column with the points of a class."""
    return f"gbfl_points_{index}"


def points_stages(
    dialect: Dialect, program: Program, card: Scorecard, names: Mapping[int, str], with_reason: bool
) -> list[Stage]:
    """The stages from the features to `gbfl_points_…` for each class that gets points, and `gbfl_rules` if needed."""
    columns = {feature: identifier(dialect, name) for feature, name in names.items()}
    clause_conditions = [clause_holds(dialect, clause, columns, program.kinds) for clause in program.clauses]
    varying = varying_classes(card)
    words = rule_words(dialect, program) if with_reason else []
    several = len(varying) + with_reason > 1
    if (added := len(clause_conditions) * len(varying)) > dialect.added:
        raise BadInput(
            f"{len(clause_conditions)} rules with points for {len(varying)} classes, {added} terms: "
            f"{dialect.engine} does not plan more than {dialect.added} in reasonable time, fit fewer rules"
        )
    if several and clause_conditions and dialect.shares_clauses:
        return _in_chunks(dialect, card, clause_conditions, tuple(names.values()), varying, words)
    sums = {c: terms(dialect, card, c, range(len(clause_conditions)), clause_conditions) for c in varying}
    return _in_place(dialect, card, sums, _words_where(words, clause_conditions) if words else [])


def varying_classes(card: Scorecard) -> list[int]:
    """The classes that get points from some clause; the others keep their bias."""
    return [c for c in range(len(card.bias)) if any(points[c] for points in card.points)]


def _in_place(dialect: Dialect, card: Scorecard, sums: Mapping[int, list[str]], numbers: list[str]) -> list[Stage]:
    """Sums of CASEs; those too long for one expression are first added up in parts."""
    reason = (item(REASON, *concatenate(dialect, numbers)),) if numbers else ()
    if max((len(added) for added in sums.values()), default=0) <= dialect.terms:
        return [Stage("gbfl_points", (*_totals(dialect, card, sums), *reason), (), True)]
    parts: list[Item] = []
    left: dict[int, list[str]] = {}
    for c, added in sums.items():
        chunks = [added[start : start + dialect.terms] for start in range(0, len(added), dialect.terms)]
        subtotals = [item(f"gbfl_part_{c}_{n}", *join_terms(dialect, chunk)) for n, chunk in enumerate(chunks)]
        parts += subtotals
        left[c] = [identifier(dialect, part.name) for part in subtotals]
    passed_on = tuple(column.name for column in reason)
    return [
        Stage("gbfl_parts", (*parts, *reason), (), True),
        Stage("gbfl_points", _totals(dialect, card, left), passed_on, True),
    ]


def _totals(dialect: Dialect, card: Scorecard, sums: Mapping[int, Sequence[str]]) -> tuple[Item, ...]:
    return tuple(
        item(points_name(c), *cast(join_terms(dialect, [whole(dialect, card.bias[c]), *added]), dialect.bigint))
        for c, added in sums.items()
    )


def _in_chunks(
    dialect: Dialect,
    card: Scorecard,
    clause_conditions: Sequence[str],
    features: tuple[str, ...],
    varying: Sequence[int],
    words: Sequence[str],
) -> list[Stage]:
    """Test some clauses, add up their points, then test the next. DuckDB plans 1,300 columns at once far slower."""
    stages: list[Stage] = []
    parts: dict[int, list[str]] = {c: [] for c in varying}
    texts: list[str] = []
    passed_on: tuple[str, ...] = ()
    size = dialect.shares_clauses
    for number, start in enumerate(range(0, len(clause_conditions), size)):
        chunk = range(start, min(start + size, len(clause_conditions)))
        held = tuple(item(f"gbfl_held_{i}", f"CASE WHEN {clause_conditions[i]} THEN 1 ELSE 0 END") for i in chunk)
        stages.append(Stage(f"gbfl_asked_{number}", held, (*features, *passed_on), True))
        ones = [f"{identifier(dialect, column.name)} = 1" for column in held]
        sums = []
        for c in varying:
            if added := terms(dialect, card, c, chunk, ones, times):
                sums.append(item(f"gbfl_part_{c}_{number}", *join_terms(dialect, added)))
                parts[c].append(identifier(dialect, sums[-1].name))
        if words:
            held_words = _words_where(words[start : start + size], ones)
            sums.append(item(f"gbfl_rules_{number}", *concatenate(dialect, held_words)))
            texts.append(identifier(dialect, sums[-1].name))
        stages.append(Stage(f"gbfl_added_{number}", tuple(sums), (*features, *passed_on), True))
        passed_on = (*passed_on, *(column.name for column in sums))
    reason = (item(REASON, *concatenate(dialect, texts)),) if texts else ()
    return [*stages, Stage("gbfl_points", (*_totals(dialect, card, parts), *reason), (), True)]


def terms(
    dialect: Dialect,
    card: Scorecard,
    index: int,
    clauses: Sequence[int],
    clause_conditions: Sequence[str],
    term: Term | None = None,
) -> list[str]:
    """What each of these clauses adds to one class. Where a sum could exceed 32 bits, every number gets 64."""
    wide = sum(abs(row[index]) for row in card.points) + abs(card.bias[index]) >= 2**31
    none = _number(dialect, 0, wide)
    pairs = ((text, card.points[i][index]) for i, text in zip(clauses, clause_conditions, strict=True))
    return [(term or when)(text, _number(dialect, points, wide), none) for text, points in pairs if points]


def when(condition: str, points: str, none: str) -> str:
    """Points where a condition holds."""
    return f"CASE WHEN {condition} THEN {points} ELSE {none} END"


def times(condition: str, points: str, none: str) -> str:
    """Points times a column of ones and zeros: faster than another CASE."""
    return f"{condition.removesuffix(' = 1')} * {points}"


def _number(dialect: Dialect, number: int, wide: bool) -> str:
    return f"CAST({number} AS {dialect.bigint})" if wide and abs(number) < 2**31 else whole(dialect, number)


def join_terms(dialect: Dialect, added: Sequence[str], sign: str = "+") -> list[str]:
    """Terms joined by a sign: balanced, or flat where the engine parses brackets slowly and the terms are few."""
    if dialect.brackets:
        return balance(added, sign)
    lines = [added[0], *(f"{sign} {term}" for term in added[1:])]
    return lines if len(lines) == 1 else [f"({lines[0]}", *lines[1:-1], f"{lines[-1]})"]


def balance(added: Sequence[str], sign: str = "+") -> list[str]:
    """Terms joined in pairs, one line each, so that a thousand are ten levels deep.

    >>> balance(["a", "b", "c"])
    ['((a', '+ b)', '+ c)']
    """
    parts = [[term] for term in added]
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [_pair(pair[0], pair[1], sign) if len(pair) > 1 else pair[0] for pair in pairs]
    return parts[0]


def _pair(left: list[str], right: list[str], sign: str) -> list[str]:
    lines = [*left, f"{sign} {right[0]}", *right[1:]]
    lines[0] = f"({lines[0]}"
    lines[-1] = f"{lines[-1]})"
    return lines


def cast(lines: Sequence[str], kind: str) -> list[str]:
    """`CAST(… AS kind)` around an expression of several lines."""
    return ["CAST(", *(f"  {line}" for line in lines), f"AS {kind})"]


def rule_words(dialect: Dialect, program: Program) -> list[str]:
    """The text of each rule where it holds, as string literals: its number, or the user's reason."""
    words = rule_reasons(program)
    return [string(dialect, text) for text in words] if reasons_of(program) else [f"'{text}'" for text in words]


def _words_where(words: Sequence[str], clause_conditions: Sequence[str]) -> list[str]:
    return [f"CASE WHEN {text} THEN {word} ELSE '' END" for word, text in zip(words, clause_conditions, strict=True)]


def held_rules_text(dialect: Dialect, program: Program, clause_conditions: Sequence[str]) -> list[str]:
    """The rules that hold, as one text: `0 3 17 `."""
    return concatenate(dialect, _words_where(rule_words(dialect, program), clause_conditions))


def concatenate(dialect: Dialect, texts: Sequence[str]) -> list[str]:
    """Texts joined into one."""
    if not texts:
        return ["''"]
    if dialect.concatenates or len(texts) == 1:
        return join_terms(dialect, texts, "||")
    return ["CONCAT(", *(f"  {text}," for text in texts[:-1]), f"  {texts[-1]})"]
