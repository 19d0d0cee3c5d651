/* Batches of a tree, one row after another. */
#ifndef GBFL_NO_BATCH
void @NAME@_predict_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = (int32_t)@NAME@_predict(x);
        x += stride;
    }
}

void @NAME@_predict_columns(const @REAL@ *const *columns, size_t n, int32_t *out)
{
    @REAL@ row[$number:features] = {0};
    $each:unused_columns{ (void)columns; $}
    for (size_t i = 0; i < n; ++i) {
        $each:predict_row{ row[$number:place] = columns[$number:place][i]; $}
        out[i] = (int32_t)@NAME@_predict(row);
    }
}

void @NAME@_leaf_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = @NAME@_leaf_of(x);
        x += stride;
    }
}

void @NAME@_leaf_columns(const @REAL@ *const *columns, size_t n, int32_t *out)
{
    @REAL@ row[$number:features] = {0};
    $each:unused_columns{ (void)columns; $}
    for (size_t i = 0; i < n; ++i) {
        $each:other_row{ row[$number:place] = columns[$number:place][i]; $}
        out[i] = @NAME@_leaf_of(row);
    }
}
#endif
