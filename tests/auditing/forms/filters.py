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
