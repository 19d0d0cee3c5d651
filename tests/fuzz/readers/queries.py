"""Random queries: stages that read, rename and hide columns, each name written in one of the ways there are."""

from tests.fuzz.readers.conditions import condition
from tests.fuzz.readers.spellings import Pool, name, quoted

STAGES = ("s", "t", "S", "gbfl_s", "gbfl_t", "data", "u v", "gbfl_rows")


def query(choose, pool):
    """Some stages and a SELECT: gbfl_row and the label come out."""
    stages: list[str] = []
    bodies: list[str] = []
    columns = list(pool.columns)
    for _ in range(choose.choice((0, 1, 1, 2, 2, 3))):
        stage = choose.choice(STAGES)
        body, columns = _stage(choose, pool, columns, stages)
        stages.append(stage)
        bodies.append(f"{_stage_name(choose, pool, stage)} AS ({body})")
    if len(bodies) > 1 and choose.random() < 0.05:
        bodies.reverse()
    row = _row(choose, pool)
    label = f"CASE WHEN {_condition(choose, pool, columns)} THEN 'yes' ELSE 'no' END AS {quoted(pool.lexis, 'label')}"
    made = f"SELECT {row}, {label} FROM {_source(choose, pool, stages)}{_end(choose)}"
    return (f"WITH {', '.join(bodies)} " if bodies else "") + made


def _stage(choose, pool, columns, stages):
    """A SELECT that passes columns on, some under other names, and the names that come out of it."""
    items, made = [_row(choose, pool)], []
    for column in columns:
        kind = choose.randrange(14)
        as_written = name(choose, pool, column, plain=0.1)
        new = choose.choice((*columns, "a", "b", "gbfl_a", "A"))
        if kind < 7:
            items.append(as_written)
            made.append(column)
        elif kind < 9:
            items.append(f"{as_written} AS {name(choose, pool, new, plain=0.15)}")
            made.append(new)
        elif kind < 11:
            items.append(f"CAST({as_written} AS {pool.lexis.double}) AS {quoted(pool.lexis, column)}")
            made.append(column)
        elif kind == 11:
            condition = _condition(choose, pool, columns)
            items.append(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS {quoted(pool.lexis, new)}")
            made.append(new)
        elif kind == 12:
            items += [
                as_written,
                f"{name(choose, pool, choose.choice(columns), plain=0.2)} AS {quoted(pool.lexis, new)}",
            ]
            made += [column, new]
    choose.shuffle(items)
    listed = ", ".join(items) if choose.random() < 0.95 else "*"
    text = f"SELECT {listed} FROM {_source(choose, pool, stages)}{_end(choose)}"
    return text, (list(dict.fromkeys(made)) or columns)


def _condition(choose, pool, columns):
    """A condition on the columns in scope; on one that is a number by now, a comparison of integers."""
    if choose.random() < 0.15:
        return f"{name(choose, pool, choose.choice(columns), plain=0.1)} {choose.choice(('=', '>', '<'))} {choose.choice('012')}"
    return condition(choose, Pool(pool.dialect, tuple(columns), pool.decimals))


def _row(choose, pool):
    return name(choose, pool, "gbfl_row") if choose.random() < 0.97 else "gbfl_row AS gbfl_row"


def _source(choose, pool, stages):
    if not stages or choose.random() < 0.05:
        return choose.choice(
            (quoted(pool.lexis, "data"),) * 6 + ("data", "DATA", f"{quoted(pool.lexis, 'data')} AS data")
        )
    stage = stages[-1] if choose.random() < 0.93 else choose.choice(stages)
    return _stage_name(choose, pool, stage)


def _stage_name(choose, pool, stage):
    return stage if choose.random() < 0.3 and " " not in stage else quoted(pool.lexis, stage)


def _end(choose):
    ends = (
        " LIMIT 1000",
        " OFFSET 0",
        " WHERE 1 = 1",
        " LIMIT -1 OFFSET 0",
        " WHERE age IS NOT NULL",
        " ORDER BY 1",
        " LIMIT 3",
    )
    return choose.choice(ends) if choose.random() < 0.06 else ""
