"""A dbt project as people have it (staging, intermediate, mart, a seed with parameters, an incremental model): the
mart's rule is read through all layers.
"""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, connect, scratch
from tests.auditing.forms.corpus import TREE

PROJECT = Path(__file__).parent.parent / "auditing" / "dbt_project"
ROWS = [
    (number, 100 + number, income, age, "complete")
    for number, (income, age) in enumerate((income, age) for income in (29999, 30000, None) for age in (24, 25, None))
]
REPORTS = [(100 + number, debt) for number, debt in zip(range(9), (0.39, 0.4, 0.6, 0.4, None) * 2, strict=False)]


def fill(database):
    """The tables that the project reads."""
    database.execute(
        "CREATE TABLE applications (id INT, customer_id INT, annual_income INT, applicant_age INT, status VARCHAR(20))"
    )
    database.execute("CREATE TABLE bureau_reports (customer_id INT, debt_ratio DOUBLE PRECISION)")
    for table, rows in (("applications", ROWS), ("bureau_reports", REPORTS)):
        values = ", ".join(f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in rows)
        database.execute(f"INSERT INTO {table} VALUES {values}")


def run_dbt(folder, profile, *replacements):
    """Build the project, with some texts of the mart replaced."""
    dbt = shutil.which("dbt")
    if dbt is None:
        pytest.skip("dbt is not installed: pip install dbt-core dbt-duckdb dbt-postgres")
    project = folder / "project"
    shutil.copytree(PROJECT, project, dirs_exist_ok=True)
    mart = project / "models" / "marts" / "credit_decisions.sql"
    for old, new in replacements:
        assert old in mart.read_text()
        mart.write_text(mart.read_text().replace(old, new))
    (project / "profiles.yml").write_text(f"lending: {{target: dev, outputs: {{dev: {profile}}}}}\n")
    for command in ("seed", "run", "run"):  # the second run is the incremental one
        flags = ["--project-dir", str(project), "--profiles-dir", str(project)]
        done = subprocess.run(
            [dbt, "--no-send-anonymous-usage-stats", command, *flags],
            capture_output=True,
            text=True,
            env={**os.environ, "DBT_LOG_PATH": str(folder / "logs")},
        )
        assert done.returncode == 0, done.stdout


SLIP = ("features.debt < policy.max_debt", "features.debt <= policy.max_debt")


def assert_the_mart_is_read(found, slip):
    """Equal with the rule as it was approved; different with the slip."""
    assert found.verdict == ("different" if slip else "equal"), found
    assert any("policy_parameters as it is now (1 row)" in each for each in found.row_effects)
    assert any("'complete'" in each for each in found.row_effects)
    assert found.feature_columns == {"income": "annual_income", "debt": "debt_ratio", "age": "applicant_age"}


@pytest.mark.parametrize("slip", [False, True])
def test_the_rule_of_a_mart_is_read_through_all_layers_in_duckdb(tmp_path, slip):
    if reason := availability("duckdb"):
        pytest.skip(reason)
    file = tmp_path / "lending.duckdb"
    import duckdb

    duckdb.connect(str(file)).close()
    with closing(connect(f"duckdb:///{file}", read_only=False)) as database:
        fill(database)
    run_dbt(tmp_path, f"{{type: duckdb, path: '{file}', threads: 1}}", *([SLIP] if slip else []))
    with closing(connect(f"duckdb:///{file}", read_only=True)) as database:
        (found,) = audit(TREE, database=database, view="credit_decisions").verdicts
        assert_the_mart_is_read(found, slip)
        (scored,) = audit(TREE, database=database, scored="decision_history", key="application_id").verdicts
        assert (scored.checked_rows, bool(scored.different_rows)) == (len(ROWS), slip)


@pytest.mark.parametrize("slip", [False, True])
def test_the_rule_of_a_mart_is_read_through_all_layers_in_postgres(tmp_path, slip):
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        fill(database)
        ((name, socket),) = database.fetch("SELECT current_database(), current_setting('unix_socket_directories')")
        profile = f"{{type: postgres, host: '{socket}', port: 5432, user: postgres, password: x, dbname: {name}, "
        run_dbt(tmp_path, f"{profile}schema: public, threads: 1}}", *([SLIP] if slip else []))
        (found,) = audit(TREE, database=database, view="credit_decisions").verdicts
        assert_the_mart_is_read(found, slip)
