/* The columns that a kernel works on: gathered from rows, or picked among columns. */
#ifndef GBFL_NO_BATCH
static void @NAME@_gather(const @REAL@ *x, size_t n, ptrdiff_t stride, @REAL@ (*block)[GBFL_BLOCK])
{
    for (size_t i = 0; i < n; ++i) {
        $each:gathered{ block[$number:slot][i] = x[$number:feature]; $}
        $each:fetched{
        GBFL_PREFETCH(x, GBFL_BLOCK * stride * (ptrdiff_t)sizeof(*x) + $number:bytes);
        $}
        x += stride;
    }
}

static void @NAME@_pick(const @REAL@ *const *columns, const @REAL@ **picked)
{
    $each:picked{ picked[$number:slot] = columns[$number:feature]; $}
}
