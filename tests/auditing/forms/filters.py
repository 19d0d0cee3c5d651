"""What is around the rule where it is deployed: filters that say what is left out, points taken away."""

from tests.auditing.forms.structures import FROM, Structure, V

PER_AGE = "- CASE WHEN age >= 25 THEN 0 ELSE {} END >= 10 THEN 'approve' ELSE 'decline' END AS label"
DEDUCTIONS = (
    f"{V}SELECT id, CASE WHEN 14 - CASE WHEN income >= 30000 THEN 0 ELSE 6 END - CASE WHEN debt < 0.4 THEN 0 ELSE 5 END "
    f"{PER_AGE} {FROM}"
)
SUM = (
    f"{V}SELECT id, CASE WHEN CASE WHEN income >= 30000 THEN 6 ELSE 0 END + CASE WHEN debt < 0.4 THEN 5 ELSE 0 END "
    f"+ CASE WHEN age >= 25 THEN 3 ELSE 0 END {{}} THEN 'approve' ELSE 'decline' END AS label {FROM}"
)

FILTERS = (
    Structure("all but one status", (f"{V}SELECT id, {{R}} AS label {FROM} WHERE status <> 'closed'",)),
    Structure(
        "one segment, all but one status",
        (
            f"{V}SELECT a.id, {{R}} AS label FROM applications a JOIN customers c ON c.customer_id = a.customer_id "
            "WHERE c.segment = 'retail' AND a.status NOT IN ('closed', 'test')",
        ),
    ),
    Structure(
        "nobody on a list",
        (
            f"{V}SELECT id, {{R}} AS label FROM applications a WHERE NOT EXISTS "
            "(SELECT 1 FROM customers c WHERE c.customer_id = a.customer_id AND c.segment = 'staff')",
        ),
        "sdpm",
    ),
    Structure("points taken away", (DEDUCTIONS.format(3),), program="card", slip=DEDUCTIONS.format(6)),
    Structure("points that have to be more", (SUM.format(">= 10"),), program="card", slip=SUM.format("> 11")),
)

HITS = (
    "SELECT id, 1 AS priority, 'approve' AS outcome FROM applications WHERE income >= 30000 AND debt < 0.4 UNION ALL "
    "SELECT id, 2, 'refer' FROM applications WHERE age >= 25 AND debt <= {most} UNION ALL "
    "SELECT id, 3, 'decline' FROM applications"
)
POINTS = (
    "SELECT 'income' AS f, 6 AS points UNION ALL SELECT 'debt', 5 UNION ALL SELECT 'age', 3 UNION ALL SELECT 'any', 0"
)
MOST = {"values": (("{most}", "0.6"),), "wrong_values": (("{most}", "0.65"),), "clause": 1}

BRANCHES = (
    Structure(
        "rules of a union, the least priority",
        (
            f"{V}WITH hits AS ({HITS}) SELECT id, CASE MIN(priority) WHEN 1 THEN 'approve' WHEN 2 THEN 'refer' "
            "ELSE 'decline' END AS label FROM hits GROUP BY id",
        ),
        **MOST,
    ),
    Structure(
        "rules of a union, numbered by priority",
        (
            f"{V}SELECT id, outcome AS label FROM (SELECT id, outcome, row_number() OVER (PARTITION BY id ORDER BY priority) "
            f"AS place FROM ({HITS}) h) numbered WHERE place = 1",
        ),
        **MOST,
    ),
    Structure(
        "points added up over the conditions that are met",
        (
            f"{V}SELECT a.id, CASE WHEN SUM(b.points) >= 10 THEN 'approve' ELSE 'decline' END AS label FROM applications a "
            f"CROSS JOIN ({POINTS}) b WHERE (b.f = 'income' AND a.income >= {{least}}) OR (b.f = 'debt' AND a.debt < 0.4) "
            "OR (b.f = 'age' AND a.age >= 25) OR b.f = 'any' GROUP BY a.id",
        ),
        program="card",
        values=(("{least}", "30000"),),
        wrong_values=(("{least}", "30001"),),
        clause=0,
    ),
    Structure(
        "parameters in rows, turned into columns",
        (
            f"{V}WITH p AS (SELECT MAX(CASE WHEN k = '{{name}}' THEN v END) AS least FROM settings) "
            "SELECT a.id, CASE WHEN a.income >= p.least THEN 'approve' ELSE 'decline' END AS label "
            "FROM applications a CROSS JOIN p",
        ),
        program="one",
        values=(("{name}", "min_income"),),
        wrong_values=(("{name}", "max_debt"),),
        clause=0,
    ),
    Structure(
        "conditions joined by AND",
        (
            f"{V}SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 {{and}} debt <= 0.6 "
            "THEN 'refer' ELSE 'decline' END AS label FROM applications",
        ),
        values=(("{and}", "AND"),),
        wrong_values=(("{and}", "OR"),),
        clause=1,
    ),
)
