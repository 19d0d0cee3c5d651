"""Numbers that an engine computes otherwise than by exact or IEEE arithmetic: a text with them is refused."""

import pytest

from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.reading.nodes import Unread

DOUBLE = {"duckdb": "{}e0", "mariadb": "{}e0", "postgres": "{}::double precision"}
CHOICE, SHARE = "CASE WHEN age > 3 THEN {} ELSE {} END", "CASE WHEN age > 3 THEN 0.29 ELSE 0.1 END"


def of_doubles(dialect, *numbers):
    return CHOICE.format(*map(DOUBLE[dialect].format, numbers))


COMPUTED_OTHERWISE = {
    **{
        f"{words}, {dialect}": (dialect, text)
        for dialect in DOUBLE
        for words, text in {
            "100 as a double times 0.29 is below 29": f"FLOOR({of_doubles(dialect, 100.5, 1)}) * 0.29 >= 29",
            "0.29 beside a double is one": f"GREATEST({SHARE}, {DOUBLE[dialect].format(0)}) > {DOUBLE[dialect].format(0.29)}",
            "and 100 of it are below 29": f"GREATEST({SHARE}, {DOUBLE[dialect].format(0)}) * 100 >= 29",
            "exp is a double": f"EXP({CHOICE.format(0, 1)}) * 100 * 0.29 >= 29",
            "digits that no double has": f"ROUND({of_doubles(dialect, 2.7, 1)}) >= 3.00000000000000000001",
        }.items()
    },
    **{
        f"a product that is rounded before it is, {dialect}": (
            dialect,
            f"ROUND({CHOICE.format('4958.39652004849e0', '1.5e0')}, 15) = 4958.39652004849e0",
        )
        for dialect in ("duckdb", "mariadb", "clickhouse")
    },
    "NULLIF gives its first part the type of its second": (
        "postgres",
        f"NULLIF({CHOICE.format(3, 1)}, 2.2) / 2 >= 1.5",
    ),
    "15 digits of a double": (
        "postgres",
        f"FLOOR({of_doubles('postgres', 9007199254740991, 1)})::numeric = 9007199254740991",
    ),
    "five digits of a quotient": ("mariadb", f"(FLOOR({CHOICE.format(2.5, 1.5)}) + 0.5) / 3 > 0.83333"),
    "five digits of a quotient of the largest": ("mariadb", f"GREATEST(0.5, {CHOICE.format(1, 2)}) / 7.5 > 0.1333333"),
    "two doubles that are equal but for the third digit": (
        "mariadb",
        f"ROUND({CHOICE.format('0.3e0', '0e0')}, 1) * 0.12345 >= 0.03704",
    ),
    "and a product of them": ("mariadb", f"FLOOR({CHOICE.format('2.5e0', '0e0')}) * 0.12345 * 0.12345 >= 0.03048"),
    "and a quotient": ("mariadb", f"ROUND({CHOICE.format('0.5e0', '0e0')}, 1) / 3 < 0.166667"),
    "whole numbers rounded are whole": ("tsql", f"ROUND(FLOOR({CHOICE.format(3, 1)}), 1) / 2 >= 1.5"),
}


@pytest.mark.parametrize("form", COMPUTED_OTHERWISE)
def test_a_number_that_an_engine_computes_otherwise_is_refused(form):
    dialect, text = COMPUTED_OTHERWISE[form]
    layout = TextLayout(("age", "income"), ("no", "yes"), ((0, "age"), (1, "income")), (("label", "label"),))
    with pytest.raises(Unread):
        read_sql(f"SELECT CASE WHEN {text} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, layout)
