-- nested case | sdpmc | tree
SELECT id, CASE WHEN debt < 0.4 THEN CASE WHEN income >= 30000 THEN 'approve' WHEN age >= 25 THEN 'refer' ELSE 'decline' END WHEN debt <= 0.6 THEN CASE WHEN age >= 25 THEN 'refer' ELSE 'decline' END ELSE 'decline' END AS label {F}
-- iif | s | tree
SELECT id, iif(income >= 30000 AND debt < 0.4, 'approve', iif(age >= 25 AND debt <= 0.6, 'refer', 'decline')) AS label {F}
-- IF() | mdc | tree
SELECT id, if(income >= 30000 AND debt < 0.4, 'approve', if(age >= 25 AND debt <= 0.6, 'refer', 'decline')) AS label {F}
-- case true when | pds | tree
SELECT id, CASE TRUE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- case code when | sdpmc | tree
SELECT id, CASE (CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END) WHEN 2 THEN 'approve' WHEN 1 THEN 'refer' ELSE 'decline' END AS label {F}
-- code in a cte then names | sdpmc | tree
WITH c AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END AS code {F}) SELECT id, CASE code WHEN 2 THEN 'approve' WHEN 1 THEN 'refer' WHEN 0 THEN 'decline' END AS label FROM c
-- coalesce flags | sdpmc | tree
SELECT id, CASE WHEN COALESCE(income, 0) >= 30000 AND COALESCE(debt, 1) < 0.4 THEN 'approve' WHEN COALESCE(age, 0) >= 25 AND COALESCE(debt, 1) <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- coalesce flags sentinel | sdpm | tree
SELECT id, CASE WHEN COALESCE(income, -1) >= 30000 AND COALESCE(debt, 9.99) < 0.4 THEN 'approve' WHEN COALESCE(age, -1) >= 25 AND COALESCE(debt, 9.99) <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- ifnull | sdm | tree
SELECT id, CASE WHEN ifnull(income, 0) >= 30000 AND ifnull(debt, 1) < 0.4 THEN 'approve' WHEN ifnull(age, 0) >= 25 AND ifnull(debt, 1) <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- boolean columns | sdpmc | tree
WITH t AS (SELECT id, income >= 30000 AND debt < 0.4 AS good, age >= 25 AND debt <= 0.6 AS fair {F}) SELECT id, CASE WHEN good THEN 'approve' WHEN fair THEN 'refer' ELSE 'decline' END AS label FROM t
-- 0/1 flags | sdpmc | tree
WITH t AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 1 ELSE 0 END AS good, CASE WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END AS fair {F}) SELECT id, CASE WHEN good = 1 THEN 'approve' WHEN good = 0 AND fair = 1 THEN 'refer' ELSE 'decline' END AS label FROM t
-- Y/N flags | sdpmc | tree
WITH t AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'Y' ELSE 'N' END AS good, CASE WHEN age >= 25 AND debt <= 0.6 THEN 'Y' ELSE 'N' END AS fair {F}) SELECT id, CASE WHEN good = 'Y' THEN 'approve' WHEN fair = 'Y' THEN 'refer' ELSE 'decline' END AS label FROM t
-- hard declines first | sdpmc | tree
SELECT id, CASE WHEN debt IS NULL THEN 'decline' WHEN debt > 0.6 THEN 'decline' WHEN debt < 0.4 AND income >= 30000 THEN 'approve' WHEN age IS NULL OR age < 25 THEN 'decline' ELSE 'refer' END AS label {F}
-- not (or) | sdpmc | tree
SELECT id, CASE WHEN NOT (income < 30000 OR debt >= 0.4) THEN 'approve' WHEN NOT (age < 25 OR debt > 0.6) THEN 'refer' ELSE 'decline' END AS label {F}
-- least | m | tree
SELECT id, CASE WHEN LEAST(income, 99999999) >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- clamped age | m | tree
SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN greatest(least(age, 120), 0) >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- min max scalar | s | tree
SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN max(min(age, 120), 0) >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- nullif sentinel | sdpm | tree
SELECT id, CASE WHEN NULLIF(income, -999) >= 30000 AND debt < 0.4 THEN 'approve' WHEN NULLIF(age, -999) >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- income minus | sdpmc | tree
SELECT id, CASE WHEN income - 30000 >= 0 AND debt < 0.4 THEN 'approve' WHEN age - 25 >= 0 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- thresholds computed | sdpmc | tree
SELECT id, CASE WHEN income >= 30 * 1000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- thresholds computed 12 | sdpmc | tree
SELECT id, CASE WHEN income >= 2500 * 12 AND debt < 1 - 0.6 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- casts | sdpm | tree
SELECT id, CASE WHEN CAST(income AS DECIMAL(12,2)) >= 30000 AND CAST(debt AS DECIMAL(8,4)) < 0.4 THEN 'approve' WHEN age >= 25 AND CAST(debt AS DECIMAL(8,4)) <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- cast int | sdp | tree
SELECT id, CASE WHEN CAST(income AS INTEGER) >= 30000 AND debt < 0.4 THEN 'approve' WHEN CAST(age AS BIGINT) >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- pg :: | pd | tree
SELECT id, CASE WHEN income::numeric >= 30000 AND debt::float8 < 0.4 THEN 'approve' WHEN age::int >= 25 AND debt::float8 <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- label cast | pd | tree
SELECT id, (CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END)::varchar(10) AS label {F}
-- lower label | sdpm | tree
SELECT id, LOWER(CASE WHEN income >= 30000 AND debt < 0.4 THEN 'APPROVE' WHEN age >= 25 AND debt <= 0.6 THEN 'REFER' ELSE 'DECLINE' END) AS label {F}
-- trim label | sdpm | tree
SELECT id, TRIM(CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve ' WHEN age >= 25 AND debt <= 0.6 THEN 'refer ' ELSE 'decline' END) AS label {F}
-- coalesce of cases | sdpmc | tree
SELECT id, COALESCE(CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' END, CASE WHEN age >= 25 AND debt <= 0.6 THEN 'refer' END, 'decline') AS label {F}
-- lookup join by code | sdpm | tree
WITH c AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END AS code {F}), n AS (SELECT 2 AS code, 'approve' AS name UNION ALL SELECT 1, 'refer' UNION ALL SELECT 0, 'decline') SELECT c.id, n.name AS label FROM c JOIN n ON n.code = c.code
-- lookup values | pd | tree
WITH c AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END AS code {F}) SELECT c.id, n.name AS label FROM c JOIN (VALUES (2,'approve'),(1,'refer'),(0,'decline')) AS n(code, name) ON n.code = c.code
-- left joined sets of ids | sdpm | tree
WITH good AS (SELECT id {F} WHERE income >= 30000 AND debt < 0.4), fair AS (SELECT id {F} WHERE age >= 25 AND debt <= 0.6) SELECT a.id, CASE WHEN g.id IS NOT NULL THEN 'approve' WHEN f.id IS NOT NULL THEN 'refer' ELSE 'decline' END AS label {F} a LEFT JOIN good g ON g.id = a.id LEFT JOIN fair f ON f.id = a.id
-- id in subquery | sdpm | tree
SELECT id, CASE WHEN id IN (SELECT id {F} WHERE income >= 30000 AND debt < 0.4) THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- exists subquery | sdpm | tree
SELECT a.id, CASE WHEN EXISTS (SELECT 1 {F} b WHERE b.id = a.id AND b.income >= 30000 AND b.debt < 0.4) THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F} a
-- union of three | sdpmc | tree
SELECT id, 'approve' AS label {F} WHERE income >= 30000 AND debt < 0.4 UNION ALL SELECT id, 'refer' {F} WHERE age >= 25 AND debt <= 0.6 AND NOT COALESCE(income >= 30000 AND debt < 0.4, 1=0) UNION ALL SELECT id, 'decline' {F} WHERE COALESCE(income >= 30000 AND debt < 0.4, 1=0) = (1=0) AND COALESCE(age >= 25 AND debt <= 0.6, 1=0) = (1=0)
-- union of three is not true | sdpm | tree
SELECT id, 'approve' AS label {F} WHERE income >= 30000 AND debt < 0.4 UNION ALL SELECT id, 'refer' {F} WHERE (age >= 25 AND debt <= 0.6) AND (income >= 30000 AND debt < 0.4) IS NOT TRUE UNION ALL SELECT id, 'decline' {F} WHERE (income >= 30000 AND debt < 0.4) IS NOT TRUE AND (age >= 25 AND debt <= 0.6) IS NOT TRUE
-- priority rules row_number | sdpm | tree
WITH hits AS (SELECT id, 1 AS prio, 'approve' AS label {F} WHERE income >= 30000 AND debt < 0.4 UNION ALL SELECT id, 2, 'refer' {F} WHERE age >= 25 AND debt <= 0.6 UNION ALL SELECT id, 3, 'decline' {F}), r AS (SELECT id, label, row_number() OVER (PARTITION BY id ORDER BY prio) AS rn FROM hits) SELECT id, label FROM r WHERE rn = 1
-- min prio group by | sdpmc | tree
WITH hits AS (SELECT id, 1 AS prio {F} WHERE income >= 30000 AND debt < 0.4 UNION ALL SELECT id, 2 {F} WHERE age >= 25 AND debt <= 0.6 UNION ALL SELECT id, 3 {F}) SELECT id, CASE min(prio) WHEN 1 THEN 'approve' WHEN 2 THEN 'refer' ELSE 'decline' END AS label FROM hits GROUP BY id
-- distinct on | p | tree
SELECT DISTINCT ON (id) id, label FROM (SELECT id, 1 AS prio, 'approve' AS label {F} WHERE income >= 30000 AND debt < 0.4 UNION ALL SELECT id, 2, 'refer' {F} WHERE age >= 25 AND debt <= 0.6 UNION ALL SELECT id, 3, 'decline' {F}) q ORDER BY id, prio
-- lateral values chain | p | tree
SELECT a.id, l.label {F} a, LATERAL (SELECT a.income >= 30000 AND a.debt < 0.4 AS good) g, LATERAL (SELECT CASE WHEN g.good THEN 'approve' WHEN a.age >= 25 AND a.debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label) l
-- array index | p | tree
SELECT id, (ARRAY['decline','refer','approve'])[CASE WHEN income >= 30000 AND debt < 0.4 THEN 3 WHEN age >= 25 AND debt <= 0.6 THEN 2 ELSE 1 END] AS label {F}
-- list index | d | tree
SELECT id, ['decline','refer','approve'][CASE WHEN income >= 30000 AND debt < 0.4 THEN 3 WHEN age >= 25 AND debt <= 0.6 THEN 2 ELSE 1 END] AS label {F}
-- elt | m | tree
SELECT id, ELT(CASE WHEN income >= 30000 AND debt < 0.4 THEN 3 WHEN age >= 25 AND debt <= 0.6 THEN 2 ELSE 1 END, 'decline','refer','approve') AS label {F}
-- multiIf | c | tree
SELECT id, multiIf(income >= 30000 AND debt < 0.4, 'approve', age >= 25 AND debt <= 0.6, 'refer', 'decline') AS label {F}
-- transform | c | tree
SELECT id, transform(multiIf(income >= 30000 AND debt < 0.4, 2, age >= 25 AND debt <= 0.6, 1, 0), [2, 1, 0], ['approve', 'refer', 'decline'], 'decline') AS label {F}
-- arrayElement | c | tree
SELECT id, ['decline','refer','approve'][multiIf(income >= 30000 AND debt < 0.4, 3, age >= 25 AND debt <= 0.6, 2, 1)] AS label {F}
-- and() or() functions | c | tree
SELECT id, if(and(greaterOrEquals(income, 30000), less(debt, 0.4)), 'approve', if(age >= 25 AND debt <= 0.6, 'refer', 'decline')) AS label {F}
-- with scalars | c | tree
WITH 30000 AS cut SELECT id, if(income >= cut AND debt < 0.4, 'approve', if(age >= 25 AND debt <= 0.6, 'refer', 'decline')) AS label {F}
-- ifNull clickhouse | c | tree
SELECT id, multiIf(ifNull(income, 0) >= 30000 AND ifNull(debt, 1) < 0.4, 'approve', ifNull(age, 0) >= 25 AND ifNull(debt, 1) <= 0.6, 'refer', 'decline') AS label {F}
-- assumeNotNull | c | tree
SELECT id, multiIf(income >= 30000 AND debt < 0.4, 'approve', isNotNull(age) AND assumeNotNull(age) >= 25 AND debt <= 0.6, 'refer', 'decline') AS label {F}
-- struct | d | tree
WITH s AS (SELECT id, struct_pack(good := income >= 30000 AND debt < 0.4, fair := age >= 25 AND debt <= 0.6) AS f {F}) SELECT id, CASE WHEN f.good THEN 'approve' WHEN f.fair THEN 'refer' ELSE 'decline' END AS label FROM s
-- filter out nulls | sdpmc | tree
SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F} WHERE income IS NOT NULL AND debt IS NOT NULL AND age IS NOT NULL
-- greatest of codes | dpmc | tree
SELECT id, CASE GREATEST(CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 ELSE 0 END, CASE WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END) WHEN 2 THEN 'approve' WHEN 1 THEN 'refer' ELSE 'decline' END AS label {F}
-- max of codes | s | tree
SELECT id, CASE MAX(CASE WHEN income >= 30000 AND debt < 0.4 THEN 2 ELSE 0 END, CASE WHEN age >= 25 AND debt <= 0.6 THEN 1 ELSE 0 END) WHEN 2 THEN 'approve' WHEN 1 THEN 'refer' ELSE 'decline' END AS label {F}
-- product of flags | sdpmc | tree
WITH t AS (SELECT id, CASE WHEN income >= 30000 THEN 1 ELSE 0 END AS f1, CASE WHEN debt < 0.4 THEN 1 ELSE 0 END AS f2, CASE WHEN age >= 25 THEN 1 ELSE 0 END AS f3, CASE WHEN debt <= 0.6 THEN 1 ELSE 0 END AS f4 {F}) SELECT id, CASE WHEN f1 * f2 = 1 THEN 'approve' WHEN f3 * f4 = 1 THEN 'refer' ELSE 'decline' END AS label FROM t
-- sum of flags = n | sdpmc | tree
WITH t AS (SELECT id, CASE WHEN income >= 30000 THEN 1 ELSE 0 END AS f1, CASE WHEN debt < 0.4 THEN 1 ELSE 0 END AS f2, CASE WHEN age >= 25 THEN 1 ELSE 0 END AS f3, CASE WHEN debt <= 0.6 THEN 1 ELSE 0 END AS f4 {F}) SELECT id, CASE WHEN f1 + f2 = 2 THEN 'approve' WHEN f3 + f4 = 2 THEN 'refer' ELSE 'decline' END AS label FROM t
-- concat of flags | dpmc | tree
WITH t AS (SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'A' ELSE 'x' END AS f1, CASE WHEN age >= 25 AND debt <= 0.6 THEN 'R' ELSE 'x' END AS f2 {F}) SELECT id, CASE WHEN concat(f1, f2) IN ('AR', 'Ax') THEN 'approve' WHEN concat(f1, f2) = 'xR' THEN 'refer' ELSE 'decline' END AS label FROM t
-- like on band | sdpmc | tree
WITH t AS (SELECT id, debt, age, CASE WHEN income >= 30000 THEN 'high income' ELSE 'low income' END AS band {F}) SELECT id, CASE WHEN band LIKE 'high%' AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label FROM t
-- bool arithmetic pg | pd | card
SELECT id, CASE WHEN COALESCE((income >= 30000)::int, 0) * 6 + COALESCE((debt < 0.4)::int, 0) * 5 + COALESCE((age >= 25)::int, 0) * 3 >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- bool arithmetic | sm | card
SELECT id, CASE WHEN COALESCE(income >= 30000, 0) * 6 + COALESCE(debt < 0.4, 0) * 5 + COALESCE(age >= 25, 0) * 3 >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- bool arithmetic null | sm | card
SELECT id, CASE WHEN (income >= 30000) * 6 + (debt < 0.4) * 5 + (age >= 25) * 3 >= 10 THEN 'approve' ELSE 'decline' END AS label {F} WHERE income IS NOT NULL AND debt IS NOT NULL AND age IS NOT NULL
-- bool arithmetic null pg | pd | card
SELECT id, CASE WHEN (income >= 30000)::int * 6 + (debt < 0.4)::int * 5 + (age >= 25)::int * 3 >= 10 THEN 'approve' ELSE 'decline' END AS label {F} WHERE income IS NOT NULL AND debt IS NOT NULL AND age IS NOT NULL
-- bool arithmetic null open | smpd | card
SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 6 WHEN income < 30000 THEN 0 END) + (CASE WHEN debt < 0.4 THEN 5 ELSE 0 END) + (CASE WHEN age >= 25 THEN 3 ELSE 0 END) >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- score filtered card | sdpmc | card
SELECT id, CASE WHEN {S} >= 10 THEN 'approve' ELSE 'decline' END AS label {F} WHERE income > 0
-- base points | sdpmc | card
SELECT id, CASE WHEN 600 + {S} >= 610 THEN 'approve' ELSE 'decline' END AS label {F}
-- points times factor | sdpm | card
SELECT id, CASE WHEN 20 * ({S}) >= 200 THEN 'approve' ELSE 'decline' END AS label {F}
-- round score | sdpm | card
SELECT id, CASE WHEN ROUND({S}) >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- round decimal score | sdpm | card
SELECT id, CASE WHEN ROUND((CASE WHEN income >= 30000 THEN 0.6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 0.5 ELSE 0 END) + (CASE WHEN age >= 25 THEN 0.3 ELSE 0 END), 2) >= 1.0 THEN 'approve' ELSE 'decline' END AS label {F}
-- decimal tenths | sdpmc | card
SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 0.6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 0.5 ELSE 0 END) + (CASE WHEN age >= 25 THEN 0.3 ELSE 0 END) >= 1.0 THEN 'approve' ELSE 'decline' END AS label {F}
-- decimal tenths loose | sdpmc | card
SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 0.6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 0.5 ELSE 0 END) + (CASE WHEN age >= 25 THEN 0.3 ELSE 0 END) > 0.95 THEN 'approve' ELSE 'decline' END AS label {F}
-- logistic | sdpmc | card
SELECT id, CASE WHEN 1 / (1 + exp(-(-9.5 + {S}))) >= 0.5 THEN 'approve' ELSE 'decline' END AS label {F}
-- logistic 1.0 | sdpmc | card
WITH s AS (SELECT id, -9.5 + {S} AS z {F}), p AS (SELECT id, 1.0 / (1.0 + exp(-z)) AS p FROM s) SELECT id, CASE WHEN p >= 0.5 THEN 'approve' ELSE 'decline' END AS label FROM p
-- scores argmax union | sdpm | card
WITH s AS (SELECT id, 'approve' AS label, {S} AS score {F} UNION ALL SELECT id, 'decline', 9 {F}), r AS (SELECT id, label, row_number() OVER (PARTITION BY id ORDER BY score DESC, label DESC) AS rn FROM s) SELECT id, label FROM r WHERE rn = 1
-- ntile bands of score | sdpm | card
WITH s AS (SELECT id, {S} AS score {F}) SELECT s.id, b.label FROM s JOIN (SELECT 0 AS lo, 9 AS hi, 'decline' AS label UNION ALL SELECT 10, 99, 'approve') b ON s.score BETWEEN b.lo AND b.hi
-- score then case between | sdpmc | card
WITH s AS (SELECT id, {S} AS score {F}) SELECT id, CASE WHEN score BETWEEN 0 AND 9 THEN 'decline' WHEN score BETWEEN 10 AND 14 THEN 'approve' END AS label FROM s
-- score and override | sdpmc | card
WITH s AS (SELECT id, income, {S} AS score {F}) SELECT id, CASE WHEN score >= 10 AND income IS NOT NULL THEN 'approve' WHEN score >= 10 THEN 'approve' ELSE 'decline' END AS label FROM s
-- lists sum | d | card
SELECT id, CASE WHEN list_sum([CASE WHEN income >= 30000 THEN 6 ELSE 0 END, CASE WHEN debt < 0.4 THEN 5 ELSE 0 END, CASE WHEN age >= 25 THEN 3 ELSE 0 END]) >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- arraySum | c | card
SELECT id, if(arraySum([if(income >= 30000, 6, 0), if(debt < 0.4, 5, 0), if(age >= 25, 3, 0)]) >= 10, 'approve', 'decline') AS label {F}
-- ifs with points | m | card
SELECT id, IF(IF(income >= 30000, 6, 0) + IF(debt < 0.4, 5, 0) + IF(age >= 25, 3, 0) >= 10, 'approve', 'decline') AS label {F}
-- coalesce points | sdpmc | card
SELECT id, CASE WHEN COALESCE(CASE WHEN income >= 30000 THEN 6 END, 0) + COALESCE(CASE WHEN debt < 0.4 THEN 5 END, 0) + COALESCE(CASE WHEN age >= 25 THEN 3 END, 0) >= 10 THEN 'approve' ELSE 'decline' END AS label {F}
-- unpivoted points summed | sdpm | card
WITH p AS (SELECT id, CASE WHEN income >= 30000 THEN 6 ELSE 0 END AS points {F} UNION ALL SELECT id, CASE WHEN debt < 0.4 THEN 5 ELSE 0 END {F} UNION ALL SELECT id, CASE WHEN age >= 25 THEN 3 ELSE 0 END {F}) SELECT id, CASE WHEN sum(points) >= 10 THEN 'approve' ELSE 'decline' END AS label FROM p GROUP BY id
-- sum over lateral values | p | card
SELECT a.id, CASE WHEN s.total >= 10 THEN 'approve' ELSE 'decline' END AS label {F} a CROSS JOIN LATERAL (SELECT sum(v.p) AS total FROM (VALUES (CASE WHEN a.income >= 30000 THEN 6 ELSE 0 END), (CASE WHEN a.debt < 0.4 THEN 5 ELSE 0 END), (CASE WHEN a.age >= 25 THEN 3 ELSE 0 END)) v(p)) s
-- boolean name | pd | one
SELECT id, CASE (income >= 30000) WHEN true THEN 'approve' ELSE 'decline' END AS label {F}
-- sign | sdpm | one
SELECT id, CASE WHEN sign(income - 30000) >= 0 THEN 'approve' ELSE 'decline' END AS label {F}
-- decode | m | one
SELECT id, CASE income >= 30000 WHEN 1 THEN 'approve' ELSE 'decline' END AS label {F}
-- nvl2 | m | one
SELECT id, NVL2(income, IF(income >= 30000, 'approve', 'decline'), 'decline') AS label {F}
-- typeof or real | s | one
SELECT id, CASE WHEN typeof(income) IN ('integer','real') AND income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F}
-- try_cast | d | one
SELECT id, CASE WHEN TRY_CAST(income AS DOUBLE) >= 30000 THEN 'approve' ELSE 'decline' END AS label {F}
-- is true | sdpm | one
SELECT id, CASE WHEN (income >= 30000) IS TRUE THEN 'approve' ELSE 'decline' END AS label {F}
-- not is not true | sdpm | one
SELECT id, CASE WHEN (income >= 30000) IS NOT TRUE THEN 'decline' ELSE 'approve' END AS label {F}
-- filter where label | sdpmc | one
SELECT id, label FROM (SELECT id, CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F}) q WHERE label = 'approve'
-- limit | sdpmc | one
SELECT id, CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F} LIMIT 1000
-- group by all | sdpmc | one
SELECT id, CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F} GROUP BY id, income
-- max per group | sdpmc | one
SELECT id, CASE WHEN MAX(income) >= 30000 THEN 'approve' ELSE 'decline' END AS label {F} GROUP BY id
-- bool_or group | pd | one
SELECT id, CASE WHEN bool_or(income >= 30000) THEN 'approve' ELSE 'decline' END AS label {F} GROUP BY id
-- window in label stage | sdpmc | one
SELECT id, CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label, rank() OVER (ORDER BY income DESC) AS rnk {F}
-- cross join settings pivot | sdpm | one
WITH s AS (SELECT max(CASE WHEN k = 'min_income' THEN v END) AS cut FROM settings) SELECT a.id, CASE WHEN a.income >= s.cut THEN 'approve' ELSE 'decline' END AS label {F} a CROSS JOIN s
-- settings join on key | sdpm | one
SELECT a.id, CASE WHEN a.income >= s.v THEN 'approve' ELSE 'decline' END AS label {F} a JOIN settings s ON s.k = 'min_income'
-- self join newest | sdpm | one
SELECT a.id, CASE WHEN a.income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F} a JOIN (SELECT customer_id, MAX(updated_at) AS m {F} GROUP BY customer_id) l ON l.customer_id = a.customer_id AND l.m = a.updated_at
-- not exists newer | sdpm | one
SELECT a.id, CASE WHEN a.income >= 30000 THEN 'approve' ELSE 'decline' END AS label {F} a WHERE NOT EXISTS (SELECT 1 {F} b WHERE b.customer_id = a.customer_id AND b.updated_at > a.updated_at)
-- recursive or materialized cte | p | one
WITH x AS MATERIALIZED (SELECT * {F}) SELECT id, CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label FROM x
-- replace label | sdpm | one
SELECT id, REPLACE(CASE WHEN income >= 30000 THEN 'auto_approve' ELSE 'auto_decline' END, 'auto_', '') AS label {F}
-- age from bucket order | sm | tree
SELECT id, CASE WHEN (income, 1) >= (30000, 1) AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- case in where parts | sdpmc | tree
SELECT id, CASE WHEN (CASE WHEN income >= 30000 THEN 1 ELSE 0 END) = 1 AND (CASE WHEN debt < 0.4 THEN 1 ELSE 0 END) = 1 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- floor age | sdpm | tree
SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN floor(age) >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- arithmetic both sides | sdpm | one
SELECT id, CASE WHEN income * 2 >= 60000 THEN 'approve' ELSE 'decline' END AS label {F}
-- monthly | sdpm | one
SELECT id, CASE WHEN income / 12.0 >= 2500 THEN 'approve' ELSE 'decline' END AS label {F}
-- income by the month | sdpmc | tree
SELECT id, CASE WHEN income / 12 >= 2500 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- income in thousands | sdpmc | tree
SELECT id, CASE WHEN income / 1000.0 >= 30 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
-- age in months | sdpmc | tree
SELECT id, CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age * 12 >= 300 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END AS label {F}
