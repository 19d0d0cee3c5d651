"""Views as a catalog prints them, with the results of proving them."""

from dataclasses import replace

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.checking.general.sql import layout_in_header, read_sql
from gbfl_compile.checking.prove import prove

CATALOG = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE name = 'scored'",
    "duckdb": "SELECT sql FROM duckdb_views() WHERE view_name = 'scored'",
    "postgres": "SELECT pg_get_viewdef('scored'::regclass)",
    "mariadb": "SELECT view_definition FROM information_schema.views WHERE table_name = 'scored'",
    "clickhouse": "SELECT create_table_query FROM system.tables WHERE name = 'scored'",
}


def catalog_text(database, program, options=None):
    """The definition of a view made of the program, as the engine tells it, and what the header said."""
    options = {"outputs": "label", **(options or {}), "form": "view", "table": "people", "view": "scored"}
    text = emit(program, f"sql:{database.dialect}", "model", options).files["model.sql"].decode()
    layout = replace(layout_in_header(text), form=None)
    database.insert("people", [name for _, name in layout.columns], np.zeros((1, len(layout.columns))))
    for statement in text.split("\n;\n"):
        if statement.strip():
            database.execute(statement)
    try:
        ((definition,),) = database.fetch(CATALOG[database.dialect])
    finally:
        database.execute(f"DROP VIEW {database.quote('scored')}")
    return definition, layout


def assert_view_is_proved(database, program, options=None):
    definition, layout = catalog_text(database, program, options)
    (reading,) = read_sql(definition, database.dialect, layout)
    proof = prove(program, reading)
    assert proof.answer == "proved", definition
