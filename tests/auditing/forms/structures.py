"""What is around the rule where it is deployed: views, layers, joins, filters, parameter tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """What is around the rule; {R} is the rule. The last statement makes the view `decisions`."""

    name: str
    statements: tuple[str, ...]
    engines: str = "sdpmc"
    program: str = "tree"
    columns: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    """Texts of the statements that are replaced, where the rule is not one expression."""
    wrong_values: tuple[tuple[str, str], ...] = ()
    """The same for the form with a slip, and the clause that the slip is in."""
    clause: int | None = None
    slip: str = ""
    """A statement that replaces the last one and makes the form different, where the slip is not in the rule."""


FROM = "FROM applications"
FLAT = "SELECT a.id, a.income, a.age, f.debt FROM applications_core a {} features f ON f.id = a.id"
RN = "row_number() OVER (PARTITION BY customer_id ORDER BY updated_at DESC)"
V = "CREATE VIEW decisions AS "
BIN_RULE = "CASE WHEN i.points + d.points + a.points >= 10 THEN 'approve' ELSE 'decline' END"

STRUCTURES = (
    Structure("plain", (f"{V}SELECT id, {{R}} AS label {FROM}",)),
    Structure("ordered", (f"{V}SELECT id, {{R}} AS label {FROM} ORDER BY id DESC",), "sdpc"),
    Structure("star", (f"{V}SELECT *, {{R}} AS label {FROM}",), "sdp"),
    Structure("star of an alias", (f"{V}SELECT a.*, {{R}} AS label FROM applications a",)),
    Structure("card", (f"{V}SELECT id, {{R}} AS label {FROM}",), program="card"),
    Structure(
        "view on view",
        (
            f"CREATE VIEW stg AS SELECT id, customer_id, income, debt, age {FROM}",
            f"{V}SELECT id, {{R}} AS label FROM stg",
        ),
    ),
    Structure(
        "three layers of dbt",
        (
            "CREATE VIEW stg_applications AS SELECT id AS application_id, income, debt, age, status FROM applications",
            "CREATE VIEW int_features AS WITH source AS (SELECT * FROM stg_applications), "
            "kept AS (SELECT application_id, income, debt, age FROM source WHERE status = 'active') SELECT * FROM kept",
            f"{V}SELECT application_id AS id, {{R}} AS label FROM int_features",
        ),
    ),
    Structure(
        "layer renames",
        (
            "CREATE VIEW stg AS SELECT loan_id AS id, annual_inc AS income, dti AS debt, applicant_age AS age FROM raw_loans",
            f"{V}SELECT id, {{R}} AS label FROM stg",
        ),
    ),
    Structure(
        "layer fills gaps",
        (
            "CREATE VIEW stg AS SELECT id, income, debt, coalesce(age, 0) AS age FROM applications",
            f"{V}SELECT id, {{R}} AS label FROM stg",
        ),
    ),
    Structure(
        "CTE chain",
        (
            f"{V}WITH a AS (SELECT id, income, debt, age {FROM}), b AS (SELECT * FROM a) SELECT id, {{R}} AS label FROM b",
        ),
    ),
    Structure("subquery", (f"{V}SELECT q.id, q.label FROM (SELECT id, {{R}} AS label {FROM}) q",)),
    Structure("filter on a flag", (f"{V}SELECT id, {{R}} AS label {FROM} WHERE status = 'active'",)),
    Structure(
        "filter of several",
        (f"{V}SELECT id, {{R}} AS label {FROM} WHERE status IN ('active', 'new') AND customer_id > 0",),
    ),
    Structure("filter on a feature", (f"{V}SELECT id, {{R}} AS label {FROM} WHERE income IS NOT NULL AND age >= 18",)),
    Structure(
        "rule relies on its filter",
        (
            f"{V}SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN debt <= 0.6 THEN 'refer' "
            f"ELSE 'decline' END AS label {FROM} WHERE age >= 25",
        ),
        slip=f"{V}SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN debt <= 0.6 THEN 'refer' "
        f"ELSE 'decline' END AS label {FROM} WHERE age >= 24",
    ),
    Structure("distinct", (f"{V}SELECT DISTINCT id, {{R}} AS label {FROM}",)),
    Structure(
        "newest row", (f"{V}SELECT id, {{R}} AS label FROM (SELECT *, {RN} AS rn {FROM}) q WHERE rn = 1",), "sdp"
    ),
    Structure(
        "newest row by CTE",
        (
            f"{V}WITH r AS (SELECT id, income, debt, age, {RN} AS rn {FROM}) SELECT id, {{R}} AS label FROM r WHERE rn = 1",
        ),
    ),
    Structure("qualify", (f"{V}SELECT id, {{R}} AS label {FROM} QUALIFY {RN} = 1",), "dc"),
    Structure("exclude", (f"{V}WITH a AS (SELECT * EXCLUDE (status) {FROM}) SELECT id, {{R}} AS label FROM a",), "d"),
    Structure("inner join on a key", (f"{V}WITH j AS ({FLAT.format('JOIN')}) SELECT id, {{R}} AS label FROM j",)),
    Structure(
        "left join on a key", (f"{V}WITH j AS ({FLAT.format('LEFT JOIN')}) SELECT id, {{R}} AS label FROM j",), "sdpm"
    ),
    Structure(
        "join USING",
        (f"{V}SELECT id, {{R}} AS label FROM applications_core JOIN features USING (id)",),
        "sdpm",
    ),
    Structure(
        "join to a dimension",
        (
            f"{V}SELECT a.id, {{R}} AS label FROM applications a JOIN customers c ON c.customer_id = a.customer_id WHERE c.segment = 'retail'",
        ),
        "sdpm",
    ),
    Structure(
        "joined to its own score",
        (
            f"{V}WITH s AS (SELECT id, {{R}} AS label {FROM}) SELECT a.id, s.label FROM applications a JOIN s ON s.id = a.id",
        ),
    ),
    Structure(
        "params as a CTE",
        (
            f"{V}WITH p AS (SELECT 30000 AS cut, 0.4 AS most) SELECT a.id, CASE WHEN a.income >= p.cut AND a.debt < p.most "
            "THEN 'approve' WHEN a.age >= 25 AND a.debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label FROM applications a CROSS JOIN p",
        ),
        slip=f"{V}WITH p AS (SELECT 30001 AS cut, 0.4 AS most) SELECT a.id, CASE WHEN a.income >= p.cut AND a.debt < p.most "
        "THEN 'approve' WHEN a.age >= 25 AND a.debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label FROM applications a CROSS JOIN p",
    ),
    Structure(
        "params as a table",
        (
            f"{V}SELECT a.id, CASE WHEN a.income >= p.min_income AND a.debt < p.max_debt THEN 'approve' "
            "WHEN a.age >= p.min_age AND a.debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label FROM applications a CROSS JOIN params p",
        ),
        slip=f"{V}SELECT a.id, CASE WHEN a.income >= p.min_income AND a.debt < p.max_debt THEN 'approve' "
        "WHEN a.age > p.min_age AND a.debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label FROM applications a CROSS JOIN params p",
    ),
    Structure(
        "scalar subquery of a key and value table",
        (
            f"{V}SELECT id, CASE WHEN income >= (SELECT v FROM settings WHERE k = 'min_income') THEN 'approve' ELSE 'decline' END AS label {FROM}",
        ),
        program="one",
        slip=f"{V}SELECT id, CASE WHEN income > (SELECT v FROM settings WHERE k = 'min_income') THEN 'approve' ELSE 'decline' END AS label {FROM}",
        engines="sdpm",
    ),
    Structure(
        "scorecard as bin tables",
        (
            f"{V}SELECT t.id, {BIN_RULE} AS label FROM applications t "
            "JOIN bins_income i ON t.income >= i.lo AND t.income < i.hi "
            "JOIN bins_debt d ON t.debt >= d.lo AND t.debt < d.hi JOIN bins_age a ON t.age >= a.lo AND t.age < a.hi",
        ),
        program="card",
        slip=f"{V}SELECT t.id, {BIN_RULE.replace('10', '9')} AS label FROM applications t "
        "JOIN bins_income i ON t.income >= i.lo AND t.income < i.hi "
        "JOIN bins_debt d ON t.debt > d.lo AND t.debt <= d.hi JOIN bins_age a ON t.age >= a.lo AND t.age < a.hi",
        engines="sdpm",
    ),
    Structure(
        "scorecard in steps",
        (
            f"{V}WITH p AS (SELECT id, CASE WHEN income >= 30000 THEN 6 ELSE 0 END AS p1, CASE WHEN debt < 0.4 THEN 5 ELSE 0 END AS p2, "
            f"CASE WHEN age >= 25 THEN 3 ELSE 0 END AS p3 {FROM}), t AS (SELECT id, p1 + p2 + p3 AS score FROM p) "
            "SELECT id, CASE WHEN score >= 10 THEN 'approve' ELSE 'decline' END AS label FROM t",
        ),
        program="card",
        slip=f"{V}WITH p AS (SELECT id, CASE WHEN income >= 30000 THEN 6 ELSE 0 END AS p1, CASE WHEN debt <= 0.4 THEN 5 ELSE 0 END AS p2, "
        f"CASE WHEN age >= 25 THEN 3 ELSE 0 END AS p3 {FROM}), t AS (SELECT id, p1 + p2 + p3 AS score FROM p) "
        "SELECT id, CASE WHEN score >= 10 THEN 'approve' ELSE 'decline' END AS label FROM t",
    ),
    Structure(
        "alias of the same list",
        (
            f"{V}SELECT id, CASE WHEN income >= 30000 THEN 6 ELSE 0 END + CASE WHEN debt < 0.4 THEN 5 ELSE 0 END "
            f"+ CASE WHEN age >= 25 THEN 3 ELSE 0 END AS score, CASE WHEN score >= 10 THEN 'approve' ELSE 'decline' END AS label {FROM}",
        ),
        "dc",
        "card",
        slip=f"{V}SELECT id, CASE WHEN income >= 30000 THEN 6 ELSE 0 END + CASE WHEN debt < 0.4 THEN 5 ELSE 0 END "
        f"+ CASE WHEN age > 25 THEN 3 ELSE 0 END AS score, CASE WHEN score >= 10 THEN 'approve' ELSE 'decline' END AS label {FROM}",
    ),
    Structure(
        "decimal points",
        (
            f"{V}SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 1.5 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 1.25 ELSE 0 END) "
            f"+ (CASE WHEN age >= 25 THEN 0.75 ELSE 0 END) >= 2.5 THEN 'approve' ELSE 'decline' END AS label {FROM}",
        ),
        program="card",
        slip=f"{V}SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 1.5 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 1.25 ELSE 0 END) "
        f"+ (CASE WHEN age >= 25 THEN 0.75 ELSE 0 END) >= 2.25 THEN 'approve' ELSE 'decline' END AS label {FROM}",
    ),
    Structure(
        "union of rules",
        (
            f"{V}SELECT id, 'approve' AS label {FROM} WHERE income >= 30000 UNION ALL "
            f"SELECT id, 'decline' AS label {FROM} WHERE income < 30000 OR income IS NULL",
        ),
        program="one",
        slip=f"{V}SELECT id, 'approve' AS label {FROM} WHERE income > 30000 UNION ALL "
        f"SELECT id, 'decline' AS label {FROM} WHERE income <= 30000 OR income IS NULL",
    ),
    Structure(
        "lateral",
        (f"{V}SELECT a.id, s.label FROM applications a CROSS JOIN LATERAL (SELECT {{R}} AS label) s",),
        "dp",
    ),
    Structure(
        "a column called reason",
        (f"{V}SELECT id, {{R}} AS label, CASE WHEN debt > 0.6 THEN 'too much debt' ELSE 'ok' END AS reason {FROM}",),
    ),
    Structure(
        "feature computed in a layer",
        (
            "CREATE VIEW stg AS SELECT id, income, debt_pct / 100.0 AS debt, age FROM applications_pct",
            f"{V}SELECT id, {{R}} AS label FROM stg",
        ),
        "sdpm",
        columns=(("debt", "debt_pct / 100.0"),),
    ),
    Structure(
        "feature computed in place",
        (
            f"{V}SELECT id, CASE WHEN income_k * 1000 >= 30000 THEN 'approve' ELSE 'decline' END AS label FROM applications_k",
        ),
        program="one",
        columns=(("income", "income_k * 1000"),),
        slip=f"{V}SELECT id, CASE WHEN income_k * 1000 > 30000 THEN 'approve' ELSE 'decline' END AS label FROM applications_k",
        engines="sdpm",
    ),
)
