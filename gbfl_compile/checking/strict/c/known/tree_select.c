/* The select kernel of a tree, after gather.c. */
GBFL_CLONES
static void @NAME@_class_block(const @REAL@ *const *columns, size_t first, size_t n, int32_t *out)
{
    $each:class_columns{
    const @REAL@ *const $c:feature = columns[$number:slot] + first;
    $}
    $each:unused_columns{ (void)columns; (void)first; $}
$when:double{
    int64_t found[GBFL_BLOCK];
    for (size_t done = 0; done < n; done += GBFL_BLOCK) {
        const size_t count = n - done < GBFL_BLOCK ? n - done : GBFL_BLOCK;
        for (size_t i = 0; i < count; ++i) {
            $each:class_values{ const double $x:feature = $c:feature[done + i]; $}
            $each:class_steps{
            const int64_t $n:step =
                $node:otherwise ^ (($node:then ^ $node:otherwise) & -(int64_t)($lanes:holds));
            $}
            found[i] = $node:class_answer;
        }
        for (size_t i = 0; i < count; ++i) {
            out[done + i] = (int32_t)found[i];
        }
    }
$}
$when:float{
    for (size_t i = 0; i < n; ++i) {
        $each:class_values{ const float $x:feature = $c:feature[i]; $}
        $each:class_steps{
        const int32_t $n:step =
            $node:otherwise ^ (($node:then ^ $node:otherwise) & -(int32_t)($lanes:holds));
        $}
        out[i] = $node:class_answer;
    }
$}
}

GBFL_CLONES
static void @NAME@_leaf_block(const @REAL@ *const *columns, size_t first, size_t n, int32_t *out)
{
    $each:leaf_columns{
    const @REAL@ *const $c:feature = columns[$number:slot] + first;
    $}
    $each:unused_columns{ (void)columns; (void)first; $}
$when:double{
    int64_t found[GBFL_BLOCK];
    for (size_t done = 0; done < n; done += GBFL_BLOCK) {
        const size_t count = n - done < GBFL_BLOCK ? n - done : GBFL_BLOCK;
        for (size_t i = 0; i < count; ++i) {
            $each:leaf_values{ const double $x:feature = $c:feature[done + i]; $}
            $each:leaf_steps{
            const int64_t $n:step =
                $node:otherwise ^ (($node:then ^ $node:otherwise) & -(int64_t)($lanes:holds));
            $}
            found[i] = $node:leaf_answer;
        }
        for (size_t i = 0; i < count; ++i) {
            out[done + i] = (int32_t)found[i];
        }
    }
$}
$when:float{
    for (size_t i = 0; i < n; ++i) {
        $each:leaf_values{ const float $x:feature = $c:feature[i]; $}
        $each:leaf_steps{
        const int32_t $n:step =
            $node:otherwise ^ (($node:then ^ $node:otherwise) & -(int32_t)($lanes:holds));
        $}
        out[i] = $node:leaf_answer;
    }
$}
}

void @NAME@_predict_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    @REAL@ block[$number:slots][GBFL_BLOCK];
    const @REAL@ *columns[$number:slots];
    for (int slot = 0; slot < $number:slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        @NAME@_gather(x, count, stride, block);
        @NAME@_class_block(columns, 0, count, out);
        n -= count;
        out += count;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}

void @NAME@_predict_columns(const @REAL@ *const *columns, size_t n, int32_t *out)
{
    const @REAL@ *picked[$number:slots];
    @NAME@_pick(columns, picked);
    @NAME@_class_block(picked, 0, n, out);
}

void @NAME@_leaf_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    @REAL@ block[$number:slots][GBFL_BLOCK];
    const @REAL@ *columns[$number:slots];
    for (int slot = 0; slot < $number:slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        @NAME@_gather(x, count, stride, block);
        @NAME@_leaf_block(columns, 0, count, out);
        n -= count;
        out += count;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}

void @NAME@_leaf_columns(const @REAL@ *const *columns, size_t n, int32_t *out)
{
    const @REAL@ *picked[$number:slots];
    @NAME@_pick(columns, picked);
    @NAME@_leaf_block(picked, 0, n, out);
}
#endif
