"""What is around the rule where it is deployed: functions, macros."""

from tests.auditing.forms.structures import FROM, Structure, V

ROUTINES = (
    Structure(
        "SQL function",
        (
            "CREATE FUNCTION decide(income integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT {R} $$",
            f"{V}SELECT id, decide(income) AS label {FROM}",
        ),
        "p",
        "one",
    ),
    Structure(
        "SQL function of three columns",
        (
            "CREATE FUNCTION decide(income integer, debt numeric, age integer) RETURNS text IMMUTABLE RETURN {R}",
            f"{V}SELECT id, decide(income, debt, age) AS label {FROM} WHERE status = 'active'",
        ),
        "p",
    ),
    Structure(
        "PL/pgSQL with returns",
        (
            "CREATE FUNCTION decide(p_income integer, p_debt double precision, p_age integer) RETURNS varchar AS $$\n"
            "BEGIN\n  -- policy 7\n  IF p_income >= 30000 AND p_debt < 0.4 THEN\n    RETURN 'approve';\n"
            "  ELSIF p_age >= 25 AND p_debt <= {most} THEN\n    RETURN 'refer';\n  END IF;\n  RETURN 'decline';\nEND;\n"
            "$$ LANGUAGE plpgsql IMMUTABLE",
            f"{V}SELECT id, decide(income, debt, age) AS label {FROM}",
        ),
        "p",
        values=(("{most}", "0.6"),),
        wrong_values=(("{most}", "0.5"),),
        clause=1,
    ),
    Structure(
        "PL/pgSQL with a score",
        (
            "CREATE FUNCTION decide(income integer, debt numeric, age integer) RETURNS text LANGUAGE plpgsql AS $$\n"
            "DECLARE\n  score integer := 0;\n  answer text;\nBEGIN\n  IF income >= 30000 THEN score := score + 6; END IF;\n"
            "  IF debt {sign} 0.4 THEN score := score + 5; END IF;\n  IF age >= 25 THEN score := score + 3; END IF;\n"
            "  CASE WHEN score >= 10 THEN answer := 'approve'; ELSE answer := 'decline'; END CASE;\n  RETURN answer;\nEND $$",
            f"{V}SELECT id, decide(income, debt, age) AS label {FROM}",
        ),
        "p",
        "card",
        values=(("{sign}", "<"),),
        wrong_values=(("{sign}", "<="),),
        clause=1,
    ),
    Structure(
        "macro",
        ("CREATE MACRO decide(income) AS {R}", f"{V}SELECT id, decide(income) AS label {FROM}"),
        "d",
        "one",
    ),
    Structure(
        "macro of three columns, on a layer",
        (
            "CREATE MACRO decide(income, debt, age) AS {R}",
            "CREATE VIEW stg AS SELECT id, income, debt, age AS years FROM applications",
            f"{V}SELECT id, decide(income, debt, years) AS label FROM stg",
        ),
        "d",
    ),
    Structure(
        "MariaDB function",
        (
            "CREATE FUNCTION decide(p_income INT, p_debt DOUBLE, p_age INT) RETURNS VARCHAR(20) DETERMINISTIC\n"
            "BEGIN\n  IF p_income >= 30000 AND p_debt < 0.4 THEN\n    RETURN 'approve';\n"
            "  ELSEIF p_age >= 25 AND p_debt <= {most} THEN\n    RETURN 'refer';\n  ELSE\n    RETURN 'decline';\n  END IF;\nEND",
            f"{V}SELECT id, decide(income, debt, age) AS label {FROM}",
        ),
        "m",
        values=(("{most}", "0.6"),),
        wrong_values=(("{most}", "0.66"),),
        clause=1,
    ),
    Structure(
        "MariaDB function of one expression",
        (
            "CREATE FUNCTION decide(income INT, debt DECIMAL(6,4), age INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN {R}",
            f"{V}SELECT id, decide(income, debt, age) AS label {FROM}",
        ),
        "m",
    ),
    Structure(
        "PL/pgSQL with a constant, called by the names of its parameters",
        (
            "CREATE FUNCTION decide(p_age integer, p_income integer, p_debt numeric) RETURNS text LANGUAGE plpgsql AS $$\n"
            "DECLARE\n  least CONSTANT integer := 30000;\n  most constant numeric := 0.6;\nBEGIN\n"
            "  IF p_income >= least AND p_debt < 0.4 THEN RETURN 'approve'; END IF;\n"
            "  IF p_age >= {age} AND p_debt <= most THEN RETURN 'refer'; END IF;\n  RETURN 'decline';\nEND $$",
            f"{V}SELECT id, decide(age, p_debt => debt, p_income => income) AS label {FROM}",
        ),
        "p",
        values=(("{age}", "25"),),
        wrong_values=(("{age}", "24"),),
        clause=1,
    ),
)
