"""Conditions as people and tools write them, in spellings that engines take in different ways."""

NUMBERS = """5/2;-7/2;5%3;2^3;1<<2;~1;-(-3);+3;- 3;0x10;1_000;.5;5.;1e2;1E+2;1D;1.5F;1L;1.5BD;1.10;3.0;0.1;
0.30000000000000004;18.0000000000000001;0.1+0.2;0.1e0+0.2e0;1e0/3e0;1e0/4e0;1/3;3*0.1;10-3-2;'5';'5.5';'0x10';' 5 ';'5e0';
'abc';'';'NaN';'inf';'-Infinity';NULL;TRUE;CAST(2.5 AS INTEGER);CAST('2.5' AS INTEGER);CAST(0.1 AS FLOAT);CAST(0.1 AS REAL);
CAST(0.1 AS DOUBLE);CAST(0.1 AS DOUBLE PRECISION);CAST(0.1 AS DECIMAL(10,1));CAST(0.3 AS DECIMAL(10,0));CAST(0.1 AS NUMERIC);
CAST(0.1 AS FLOAT(24));CAST(0.1 AS FLOAT(53));CAST(0.1 AS FLOAT8);CAST(0.1 AS Float64);CAST(0.1 AS Float32);0.1::real;
0.1::float;'0.1'::float;'0.1'::numeric;2.5::int;CAST('1e1' AS DOUBLE);CAST(' 1 ' AS DOUBLE);CAST('.5' AS DOUBLE);
CAST('0x1p1' AS DOUBLE);CAST('1e' AS DOUBLE);CAST('1d' AS DOUBLE);CAST('\u0663' AS DOUBLE);CAST('\u0663' AS REAL);
CAST('infinity' AS DOUBLE);CAST('1e400' AS DOUBLE);CAST('1e-400' AS DOUBLE);ROUND(2.5);ABS(-3);POWER(2,3);MOD(5,3);
GREATEST(1,2);COALESCE(NULL,3);NULLIF(3,4);2147483648;2147483647+1;9007199254740992;9007199254740993;9223372036854775808;
1e400;1.7976931348623157e308;4.9e-324;2.4703282292062328e-324;3e0/1125899906842624e0""".replace("\n", "").split(";")

CONDITIONS = """NOT age >= 3;NOT age = 3 OR age > 5;age > 3 = TRUE;(age > 3) = 1;(age > 3) > 0;(age > 3) <> (age > 5);
(age > 3) IS TRUE;(age > 3) IS NOT FALSE;(age > 3) IS UNKNOWN;age > 3 IS NULL;age BETWEEN 1 AND 5;age NOT BETWEEN 1 AND 5;
NOT (age BETWEEN 1 AND 5);age BETWEEN SYMMETRIC 5 AND 1;age BETWEEN NULL AND 5;age NOT BETWEEN 1 AND NULL;
age BETWEEN '-Infinity' AND 'Infinity';age BETWEEN 3 AND 'NaN';age IN (1, 2, 3);age NOT IN (1, 2, 3);age IN (0);age IN (0, 1);
age IN (-0.0, 1);age NOT IN (0, 1);age IN (1, NULL);age NOT IN (1, NULL);age IN (0.1, 0.30000000000000004);age IN ('1');
age IN (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16);age NOT IN (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16);
(age, income) = (1, 1);age = NULL;age IS NULL;age IS NOT NULL;age ISNULL;age IS 3;age IS NOT 3;age IS DISTINCT FROM 3;
age IS NOT DISTINCT FROM 3;age IS DISTINCT FROM NULL;age IS DISTINCT FROM age;age IS NOT DISTINCT FROM income;age <=> 3;
age <=> NULL;age == 3;age != 3;age = age;age <> age;age >= age;NOT (age = age);age = income;age = 0;age >= 0;age > 0;
age <= -0.0;age < -0.0;age > 3 AND income > 0 OR age < 1;age > 3 XOR income > 0;age > 3 || income > 0;age > 3 && income > 0;age;
NOT age;1;NULL;'yes';age > 3 AND NULL;age > 3 OR NULL;age + 0 > 3;-age > 3;-(age) <= 0;age * 1 > 3;3 < age;1 < age < 5;
CASE WHEN age > 3 THEN TRUE ELSE FALSE END;CASE age WHEN 3 THEN TRUE WHEN NULL THEN TRUE ELSE FALSE END;
CASE age WHEN 0 THEN TRUE ELSE FALSE END;CASE age WHEN 0 THEN 1 WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 0 END = 1;
CASE age WHEN income THEN TRUE ELSE FALSE END;CASE WHEN age > 3 THEN 1 END = 1;
CASE WHEN age > 3 THEN 1 WHEN age > 1 THEN NULL ELSE 0 END = 0;CASE WHEN age > 3 THEN NULL ELSE TRUE END;COALESCE(age, 5) >= 5;
COALESCE(age > 3, TRUE);COALESCE(age, income) > 0;COALESCE(age > NULL, age > 3);NULLIF(age, 3) > 1;NULLIF(age, 0) IS NULL;
NULLIF(age, 'NaN') > 1;NULLIF(age > 3, TRUE);IFNULL(age, 5) >= 5;NVL(age, 5) > 3;DECODE(age, 3, 1, 0) = 1;isnan(age);
isNaN(age) = 0;age = 'NaN';age <> 'NaN';age < 'NaN';age > 'NaN';age >= 'inf';age < 'Infinity';age > '-Infinity';age > '10';
GREATEST(age, 3) > 4;LEAST(age, 3) = 3;GREATEST(age, income) > 3;LEAST(age > 3, income > 0);ABS(age) > 3;ROUND(age) >= 3;
CAST(age AS INTEGER) >= 3;CAST(age AS REAL) >= 0.1;CAST(age AS FLOAT) >= 0.1;CAST(age AS DECIMAL(10,2)) >= 0.3;
CAST(age AS DOUBLE) >= 0.1;age::real >= 0.1;age::double precision >= 0.1;TRY_CAST(age AS DOUBLE) >= 0.1;toFloat64(age) > 3;
CAST(age AS Nullable(Float64)) > 3;age > ALL (ARRAY[1, 2]);age = ANY (ARRAY[0, 1]);age = ANY (ARRAY[1, NULL]);
age <> ALL (ARRAY[1, NULL]);age > (SELECT 1);IF(age > 3, TRUE, FALSE);IF(age > 3, age > 5, age < 1);IIF(age > 3, 1, 0);
multiIf(age > 3, 1, age < 1, 1, 0) = 1;isNull(age) OR age > 3;age > 3 /*! AND age > 5 */;age > 3 /*M! AND age > 5 */;
age > 3 /*+ AND age > 5 */;age > 3 /* a */ AND age > 5;age > 3 AND 'a' = 'A';age > 3 AND 'a' = 'a ';age > 3 AND '' IS NULL;
age > 3 AND '1' = 1;age > 3 AND 1/0 IS NULL;data.age > 3;AGE > 3;"AGE" > 3;"age" > 3;`age` > 3;[age] > 3;'age' > 3;age>-1;
age>.5e1;age>5.e0;NOT age IS NULL;NOT age > 3 = FALSE;(age > 3) = (income > 0);(age IS NULL) = (income IS NULL);
(age IS NULL) > (income IS NULL);(age > 3) IS DISTINCT FROM (income > 0);(age > 3) IN (TRUE, NULL);
(age > 3) BETWEEN FALSE AND TRUE;1 - (age > 3);(age > 3) + (income > 0) > 1;(age > 3)::int = 1;CAST(age > 3 AS INTEGER) = 1;
(age > 3 OR NULL) IS NULL;(age > 3) IS NOT TRUE;((age > 3) IS TRUE) IS FALSE;3 IN (age, income);3 NOT IN (age, 5);
CASE age WHEN age THEN TRUE ELSE FALSE END;age NOTNULL AND income > 0;NOT age ISNULL;(age > 3) IS DISTINCT FROM TRUE AND income > 0;
(age > 3) IS NOT DISTINCT FROM NULL IS TRUE;NOT age > ANY (ARRAY[1, NULL]);age < 3 AND 'ab' = CAST('ab' AS STRING)""".replace(
    "\n", ""
).split(";")

POINTS = (
    "CASE WHEN age > 3 THEN 2 ELSE 0 END",
    "CASE WHEN income > 0 THEN 1 WHEN income <= 0 THEN 0 END",
    "CASE age WHEN 3 THEN 5 END",
)
TEXTS = (
    "CASE WHEN age > 3 THEN 'High' WHEN age < 1 THEN 'low x' ELSE ' mid ' END",
    "CASE WHEN income > 0 THEN 'High' END",
)

COMPUTED = """{a} + {b} >= 2;{a} + {b} = 3;{a} - {b} > 0;{a} * {b} = 2;{a} * {b} IS NULL;COALESCE({a}, 0) + COALESCE({b}, 0) >= 2;
-({a} + {b}) <= -2;({a} + {b}) / 2 >= 1;({a} + 1) / 2.0 > 0.6;({a} + 1) / 2e0 >= 0.5e0;{a} / 2 = 1;{b} / {a} > 0;
ABS({a} - {b}) = 1;SIGN({a} - {b}) >= 0;SIGN({a} - 1) = -1;GREATEST({a}, {b}) = 2;LEAST({a}, {b}) < 1;GREATEST({a}, {b}, {c}) >= 2;
MAX({a}, {b}) = 2;MIN({a}, {b}) IS NULL;GREATEST({a}, 1) = 1;LEAST({a}, 1.5) = 1.5;GREATEST(age, 3) >= 4;LEAST(age, 3) < 3;
GREATEST(LEAST(age, 10), 0) >= 5;MAX(MIN(age, 10), 0) >= 5;LEAST(age, 3, 5) = 3;GREATEST(age, NULL) > 3;LEAST(COALESCE(age, 7), 8) >= 7;
0.1 * {a} + 0.2 >= 0.3;0.1e0 * {a} + 0.2e0 >= 0.4e0;0.6 * {a} + 0.3 * {b} > 1.4;CASE WHEN age > 3 THEN 0.6 ELSE 0 END + 0.3 >= 0.9;
CASE WHEN age > 3 THEN 0.1 ELSE 0 END + 0.2 = 0.3;CASE WHEN age > 3 THEN 0.1e0 ELSE 0e0 END + 0.2e0 = 0.3e0;
0.3e0 - CASE WHEN age > 3 THEN 0.1e0 ELSE 0e0 END = 0.2e0;0.7e0 + (0.1e0 + CASE WHEN age > 3 THEN 0.2e0 ELSE 0e0 END) = 1e0;
ROUND({a} + {b}) >= 2;ROUND({a} * 0.34, 1) >= 0.7;ROUND({a} * 0.34, 1) = 0.7;ROUND({a} * 0.25, 1) >= 0.5;ROUND(({a} + {b}) * 0.3, 2) = 0.9;
FLOOR({a} * 0.6) = 1;CEIL({a} * 0.6) = 2;CEILING({a} * 0.6) = 2;FLOOR({a}) = 2;ROUND({a} * 0.5) = 1;ROUND(2.4 - {a}) = 0;
1 / (1 + EXP(-({a} + {b} - 2))) >= 0.5;1.0 / (1.0 + EXP(-(0.5 * {a} - 0.5))) > 0.5;1 / (1 + EXP(1.5 - {a})) < 0.4;EXP({a}) > 7;
EXP({a} - 2) = 1;LN({a} + 1) > 1;LN({a} + 1) <= 1.0986;ROUND(1 / (1 + EXP(-({a} - 1))), 2) >= 0.73;EXP(0 * {a}) >= 1;
CAST({a} AS DOUBLE PRECISION) + 0.5 > 2;CAST({a} + {b} AS DOUBLE PRECISION) / 2 >= 1;CAST(age > 3 AS INTEGER) * 6 + {b} >= 6;
(age > 3)::int * 6 + COALESCE((income > 0)::int, 0) >= 7;(age > 3) * 6 + {b} >= 6;COALESCE(age > 3, 0) * 2 + {b} = 2;
LOWER({s}) = 'high';UPPER({t}) = 'HIGH';LOWER({s}) <> 'high';TRIM({s}) = 'mid';LTRIM({s}) = 'mid ';RTRIM({s}) = ' mid';
REPLACE({s}, 'i', 'o') = 'Hogh';REPLACE({s}, 'I', 'o') = 'High';SUBSTR({s}, 1, 3) = 'low';SUBSTRING({s}, 2) = 'igh';LEFT({s}, 3) = 'Hig';
RIGHT({s}, 2) = ' x';CONCAT({s}, '!') = 'High!';{s} || '!' = 'High!';{s} || {t} = 'HighHigh';CONCAT({t}, '!') = '!';{s} LIKE 'H%';
{s} LIKE 'h%';{s} LIKE '%x';{s} LIKE '_igh';{s} NOT LIKE 'l%';{t} LIKE 'H%';{t} NOT LIKE 'H%';{s} ILIKE 'h%';{s} LIKE '%.%';
LEFT(LOWER({s}), 1) IN ('h', 'l');CASE {s} WHEN 'High' THEN TRUE ELSE FALSE END;CASE {a} WHEN 0 THEN TRUE WHEN 2 THEN FALSE END;
COALESCE({t}, 'none') = 'none';COALESCE({b}, {c}, 9) >= 5;NULLIF({a}, 0) = 2;{a} + {b} BETWEEN 1 AND 2;{a} + {b} IN (1, 3);
CASE WHEN {a} + {b} >= 2 AND age < 10 THEN TRUE ELSE income < 0 END;NOT ({a} + {b} = 2 OR income > 0);{a} = {b};{a} + {b} = {a};
30 * 10 / 4 < age;age >= 2 * 1.5;age > 1 - 0.7;age >= 0.1 + 0.2;age > 10 / 4;age > -7 / 2;age >= 10 / 4.0;age >= 7 / 2e0""".replace(
    "\n", ""
)
"""Functions and arithmetic on what is one of some constants."""


def computed_conditions():
    """Each of them, by itself and within others."""
    (a, b, c), (s, t) = POINTS, TEXTS
    filled = [each.format(a=a, b=b, c=c, s=s, t=t) for each in COMPUTED.split(";")]
    return [form.format(one) for one in filled for form in WITHIN]


COMMENTED = [
    "age > 3 --AND age > 5\n",
    "age > 5--3\n",
    "age > 3 # AND age > 5\n",
    "age > 3 /* /* */ AND age > 5 -- */\n",
]

WITHIN = ("{}", "NOT ({})", "({}) IS NULL", "COALESCE({}, TRUE)", "CASE WHEN {} THEN FALSE ELSE TRUE END")
"""What shows whether a condition is false or unknown."""


def conditions():
    """Every condition, by itself and within others."""
    comparisons = [f"age {sign} {number}" for number in NUMBERS for sign in (">=", "<")]
    within = [form.format(one) for one in (*comparisons, *CONDITIONS) for form in WITHIN]
    return list(dict.fromkeys([*within, *COMMENTED]))
