"""What was found of a weighted rule set, as points: one row at a time, and by its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gbfl_compile.checking.reading.nodes import Condition, PointDecision, Unread
from gbfl_compile.checking.reading.tables import scale_of
from gbfl_compile.checking.strict.c.bits import bits_scored
from gbfl_compile.checking.strict.c.classes import check_each_class, starts
from gbfl_compile.checking.strict.c.columns import check_columns, check_kernel_columns, check_rows
from gbfl_compile.checking.strict.c.names import check_shape
from gbfl_compile.checking.strict.c.template import Contents

Place = tuple[tuple[str, ...], PointDecision]
ONE_ROW = ("score", "predict", "predict_proba", "explain")
BATCH = ("predict_rows", "predict_columns", "score_rows", "score_columns")


def rule_set_places(batch: str, contents: Contents) -> list[Place]:
    """The functions of a rule set, those that come to the same together, and what they add up."""
    if contents["leaves"] != 0:
        raise Unread("a rule set that has leaves")
    whole = within_64_bits(_one_row(contents))
    match batch:
        case "row by row":
            check_rows(contents)
            return [((*ONE_ROW, *BATCH), whole)]
        case "select" | "bits":
            check_columns(contents)
            scored = _select_scored(contents) if batch == "select" else bits_scored(contents)
            return [(ONE_ROW, whole), (BATCH, replace(within_64_bits(scored), scale=whole.scale))]
        case _:
            return [(ONE_ROW, whole)]


def within_64_bits(scored: PointDecision) -> PointDecision:
    """The points, refused where some row could have more than 64 bits hold."""
    for c, start in enumerate(scored.bias):
        if abs(start) + sum(abs(points[c]) for _, points in scored.terms) >= 2**63:
            raise Unread("the points may add up past 64 bits")
    return scored


def _one_row(contents: Contents) -> PointDecision:
    clauses = contents["clauses"]
    held: dict[int, Condition] = {}
    for each in contents["rules"]:
        word, bit = each["word"], each["bit"].bit_length() - 1
        number = 32 * word + bit
        if bit not in range(32) or each["bit"] != 1 << bit or number >= clauses or number in held:
            raise Unread(f"held[{word}] |= {each['bit']:#x}: not the bit of a rule of its own")
        held[number] = each["holds"]
    if len(held) != clauses:
        raise Unread(f"{len(held)} of {clauses} rules are asked")
    if contents["point_rows"] != max(1, clauses):
        raise Unread(f"points for {contents['point_rows']} rules, there are {clauses}")
    check_shape(contents, "rule_points", "point_rows", "classes")
    _check_type(contents["points_type"], contents["rule_points"])
    conditions = tuple(held[number] for number in range(clauses))
    terms = tuple(zip(conditions, contents["rule_points"], strict=False))
    return PointDecision(starts(contents, "bias"), terms, scale_of(contents["worth"]), held=conditions)


def _check_type(kind: str, table: Sequence[Sequence[int]]) -> None:
    largest = 2 ** (int(kind[3:-2]) - 1)
    if not all(-largest <= points < largest for row in table for points in row):
        raise Unread(f"points that {kind} does not hold")


def _select_scored(contents: Contents) -> PointDecision:
    """The points that the select kernel adds up for a row."""
    conditions = [each["holds"] for each in contents["sums_rules"]]
    check_kernel_columns("sums", contents, conditions)
    bias = starts(contents, "starts")
    check_each_class(contents, "ends")
    if len({each["rule"] for each in contents["sums_rules"]}) != len(conditions):
        raise Unread("sums_block has a rule twice")
    terms = []
    for each in contents["sums_rules"]:
        points = [0] * contents["classes"]
        for worth in each["worth"]:
            if worth["rule"] != each["rule"] or worth["class"] >= contents["classes"]:
                raise Unread(f"sums_block: s{worth['class']} gets points of h{worth['rule']} out of place")
            points[worth["class"]] += worth["points"]
        terms.append((each["holds"], tuple(points)))
    return PointDecision(bias, tuple(terms))
