"""Which feature is where when many rows are scored: gathered, picked and named alike, and all that the rules ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, PointDecision, StepDecision, Test, Unread
from gbfl_compile.checking.strict.c.template import Contents


def check_uses(contents: Contents, decision: StepDecision | PointDecision) -> None:
    """Refuse a model that asks a feature which it says it does not use."""
    used = {feature for feature, flag in enumerate(contents["feature_used"]) if flag}
    if unused := asked_features(_conditions(decision)) - used:
        raise Unread(f"feature {min(unused)} is asked, and the model says that it is not used")


def check_rows(contents: Contents) -> None:
    """Rows that are filled from columns have every feature that the model uses, from the column of that feature."""
    for key in ("predict_row", "other_row"):
        _check_read(contents, [each["place"] for each in contents[key]])


def check_columns(contents: Contents) -> None:
    """Each slot of a block is one feature, the same one for rows and for columns."""
    if contents["gathered"] != contents["picked"] or len(contents["gathered"]) != contents["slots"]:
        raise Unread("rows are gathered into other columns than are picked")
    if [each["slot"] for each in contents["gathered"]] != list(range(contents["slots"])) or not contents["slots"]:
        raise Unread("a column of a block is left out, or there twice")
    _check_read(contents, [each["feature"] for each in contents["gathered"]])


def check_kernel_columns(kind: str, contents: Contents, conditions: Iterable[Condition]) -> None:
    """Each local value of a kernel is the feature that it is named after, and every one that its rules ask is there."""
    features = [each["feature"] for each in contents["gathered"]]
    for column in contents[f"{kind}_columns"]:
        if column["slot"] >= len(features) or features[column["slot"]] != column["feature"]:
            raise Unread(f"{kind}_block: column {column['slot']} is not feature {column['feature']}")
    columns = [column["feature"] for column in contents[f"{kind}_columns"]]
    values = [value["feature"] for value in contents[f"{kind}_values"]]
    if columns != values or len(set(values)) != len(values) or not asked_features(conditions) <= set(values):
        raise Unread(f"{kind}_block: its values are not those that its rules ask")


def _check_read(contents: Contents, features: Sequence[int]) -> None:
    """The features that are read are those the model says it uses: the others may have no column at all."""
    used = [feature for feature, flag in enumerate(contents["feature_used"]) if flag]
    if sorted(features) != used:
        raise Unread(f"features {sorted(features)[:20]} are read, the model says that it uses {used[:20]}")


def _conditions(decision: StepDecision | PointDecision) -> Iterable[Condition]:
    if isinstance(decision, PointDecision):
        return [condition for condition, _ in decision.terms]
    return [step.condition for step in decision.steps if isinstance(step, Ask)]


def asked_features(conditions: Iterable[Condition]) -> set[int]:
    """The features that some condition asks."""
    features: set[int] = set()
    waiting = list(conditions)
    while waiting:
        match waiting.pop():
            case Test(feature):
                features.add(feature)
            case And(parts) | Or(parts):
                waiting += parts
            case Not(part):
                waiting.append(part)
    return features
