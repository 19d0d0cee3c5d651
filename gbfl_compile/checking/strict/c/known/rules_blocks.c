/* Batches of a rule set by blocks, after the kernel that adds up their points. */
static void @NAME@_predict_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        int64_t best = sums[0][i];
        int32_t winner = 0;
        for (int c = 1; c < $number:classes; ++c) {
            winner = sums[c][i] > best ? (int32_t)c : winner;
            best = sums[c][i] > best ? sums[c][i] : best;
        }
        out[i] = winner;
    }
}

void @NAME@_predict_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    @REAL@ block[$number:slots][GBFL_BLOCK];
    int64_t sums[$number:classes][GBFL_BLOCK];
    const @REAL@ *columns[$number:slots];
    for (int slot = 0; slot < $number:slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        @NAME@_gather(x, count, stride, block);
        @NAME@_sums_block(columns, 0, count, sums);
        @NAME@_predict_of_sums(sums, count, out);
        n -= count;
        out += count;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}

void @NAME@_predict_columns(const @REAL@ *const *columns, size_t n, int32_t *out)
{
    int64_t sums[$number:classes][GBFL_BLOCK];
    const @REAL@ *picked[$number:slots];
    @NAME@_pick(columns, picked);
    for (size_t first = 0; first < n; first += GBFL_BLOCK) {
        const size_t count = n - first < GBFL_BLOCK ? n - first : GBFL_BLOCK;
        @NAME@_sums_block(picked, first, count, sums);
        @NAME@_predict_of_sums(sums, count, out);
        out += count;
    }
}

static void @NAME@_score_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int64_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        for (int c = 0; c < $number:classes; ++c) {
            out[i * $number:classes + (size_t)c] = sums[c][i];
        }
    }
}

void @NAME@_score_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int64_t *out)
{
    @REAL@ block[$number:slots][GBFL_BLOCK];
    int64_t sums[$number:classes][GBFL_BLOCK];
    const @REAL@ *columns[$number:slots];
    for (int slot = 0; slot < $number:slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        @NAME@_gather(x, count, stride, block);
        @NAME@_sums_block(columns, 0, count, sums);
        @NAME@_score_of_sums(sums, count, out);
        n -= count;
        out += count * $number:classes;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}

void @NAME@_score_columns(const @REAL@ *const *columns, size_t n, int64_t *out)
{
    int64_t sums[$number:classes][GBFL_BLOCK];
    const @REAL@ *picked[$number:slots];
    @NAME@_pick(columns, picked);
    for (size_t first = 0; first < n; first += GBFL_BLOCK) {
        const size_t count = n - first < GBFL_BLOCK ? n - first : GBFL_BLOCK;
        @NAME@_sums_block(picked, first, count, sums);
        @NAME@_score_of_sums(sums, count, out);
        out += count * $number:classes;
    }
}
#endif
