"""The batch functions of emitted C, as this reader knows them (c_match says what P_, N_ and H_ are)."""

from __future__ import annotations

ROW_BY_ROW = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, OUT *out)
{
    for (size_t i = 0; i < n; ++i) {
        ONE(x);
        x += stride;
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, OUT *out)
{
    REAL row[N_features] = {0};
    H_VERB_unused;
    for (size_t i = 0; i < n; ++i) {
        H_VERB_fill;
        ONE(row);
    }
}
"""

ONE_ROW = {
    "predict": "out[i] = (int32_t)P_predict({0})",
    "leaf": "out[i] = P_leaf_of({0})",
    "score": "(void)P_score({0}, out + i * N_classes)",
}

GATHER = """
static void P_gather(const REAL *x, size_t n, ptrdiff_t stride, REAL (*block)[GBFL_BLOCK])
{
    for (size_t i = 0; i < n; ++i) {
        H_gather;
        x += stride;
    }
}
static void P_pick(const REAL *const *columns, const REAL **picked)
{
    H_pick;
}
"""

BLOCKS_OF_ANSWERS = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    REAL block[N_slots][GBFL_BLOCK];
    const REAL *columns[N_slots];
    for (int slot = 0; slot < N_slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        P_gather(x, count, stride, block);
        P_KIND_block(columns, 0, count, out);
        n -= count;
        out += count;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, int32_t *out)
{
    const REAL *picked[N_slots];
    P_pick(columns, picked);
    P_KIND_block(picked, 0, n, out);
}
static void P_KIND_block(const REAL *const *columns, size_t first, size_t n, int32_t *out)
{
    H_KIND_start;
    for (size_t i = 0; i < n; ++i) {
        H_KIND_row;
    }
}
static void P_KIND_block(const REAL *const *columns, size_t first, size_t n, int32_t *out)
{
    H_KIND_start;
    int64_t found[GBFL_BLOCK];
    for (size_t done = 0; done < n; done += GBFL_BLOCK) {
        const size_t count = n - done < GBFL_BLOCK ? n - done : GBFL_BLOCK;
        for (size_t i = 0; i < count; ++i) {
            H_KIND_wide_row;
        }
        for (size_t i = 0; i < count; ++i) {
            out[done + i] = (int32_t)found[i];
        }
    }
}
"""

BLOCKS_OF_SUMS = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, OUT *out)
{
    REAL block[N_slots][GBFL_BLOCK];
    int64_t sums[N_classes][GBFL_BLOCK];
    const REAL *columns[N_slots];
    for (int slot = 0; slot < N_slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        P_gather(x, count, stride, block);
        P_sums_block(columns, 0, count, sums);
        P_VERB_of_sums(sums, count, out);
        n -= count;
        out += STEP;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, OUT *out)
{
    int64_t sums[N_classes][GBFL_BLOCK];
    const REAL *picked[N_slots];
    P_pick(columns, picked);
    for (size_t first = 0; first < n; first += GBFL_BLOCK) {
        const size_t count = n - first < GBFL_BLOCK ? n - first : GBFL_BLOCK;
        P_sums_block(picked, first, count, sums);
        P_VERB_of_sums(sums, count, out);
        out += STEP;
    }
}
"""

SUMS = """
static void P_predict_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        int64_t best = sums[0][i];
        int32_t winner = 0;
        for (int c = 1; c < N_classes; ++c) {
            winner = sums[c][i] > best ? (int32_t)c : winner;
            best = sums[c][i] > best ? sums[c][i] : best;
        }
        out[i] = winner;
    }
}
static void P_score_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int64_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        for (int c = 0; c < N_classes; ++c) {
            out[i * N_classes + (size_t)c] = sums[c][i];
        }
    }
}
"""

SELECT_SUMS = """
static void P_sums_block(const REAL *const *columns, size_t first, size_t n, int64_t (*sums)[GBFL_BLOCK])
{
    H_sums_start;
    for (size_t i = 0; i < n; ++i) {
        H_sums_row;
    }
}
"""


def row_by_row(verb: str) -> str:
    """The batch functions that do one row after another."""
    out = "int64_t" if verb == "score" else "int32_t"
    text = ROW_BY_ROW.replace("VERB", verb).replace("OUT", out)
    return text.replace("ONE(x)", ONE_ROW[verb].format("x")).replace("ONE(row)", ONE_ROW[verb].format("row"))


def blocks_of_answers(verb: str, kind: str) -> str:
    """The batch functions of a tree, a block of rows at a time."""
    return BLOCKS_OF_ANSWERS.replace("VERB", verb).replace("KIND", kind)


def blocks_of_sums(verb: str) -> str:
    """The batch functions of a rule set, a block of rows at a time."""
    out, step = ("int64_t", "count * N_classes") if verb == "score" else ("int32_t", "count")
    return BLOCKS_OF_SUMS.replace("VERB", verb).replace("OUT", out).replace("STEP", step)
