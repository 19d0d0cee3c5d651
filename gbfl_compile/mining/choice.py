"""Which columns of a table are mined, as what kinds, and what is done about missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Kind
from gbfl_compile.tables.read import feature_names, refuse_absent

Missing: TypeAlias = Literal["keep", "drop", "refuse"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which columns of a table are used, as what, and what means a missing value."""

    target: str
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """These and no others, where there are any."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    na: tuple[str, ...] | None = None
    missing: Missing = "keep"

    def names(self, there: Sequence[str], where: str) -> tuple[str, ...]:
        """The features among the columns of a table."""
        if self.features:
            refuse_absent(there, (self.target, *self.features), where)
            if self.target in self.features or set(self.features) & set(self.drop):
                raise BadInput(f"{where}: --features names the target, or a column of --drop")
            return self.features
        return feature_names(there, self.target, self.drop, where)

    def is_asked_for(self, name: str) -> bool:
        """Whether the column is named as a feature."""
        return name in self.features or name in self.kinds
