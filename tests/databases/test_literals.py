"""A threshold written down in SQL is read by the engine itself as the very same double.

GBFL_DOUBLES=1000000 python -m pytest tests/databases/test_literals.py runs a million per engine; 20,000 otherwise.
"""

import math

from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.text import literal
from tests.databases.doubles import doubles

BATCH = 5_000


def reading(dialect, literals):
    """A query whose rows are the literals, in their order."""
    if dialect == "clickhouse":
        return f"SELECT arrayJoin([{', '.join(literals)}])"
    return f"VALUES {', '.join(f'({text})' for text in literals)}"


def test_every_literal_is_read_as_the_double_it_was(database):
    dialect = DIALECTS[database.dialect]
    values = [value for value in doubles().tolist() if math.isfinite(value)]
    for start in range(0, len(values), BATCH):
        batch = values[start : start + BATCH]
        found = database.fetch(reading(database.dialect, [literal(dialect, value) for value in batch]))
        wrong = [(value, read) for value, (read,) in zip(batch, found, strict=True) if read != value]
        assert not wrong, f"{len(wrong)} of {len(batch)}: {wrong[:3]}"
