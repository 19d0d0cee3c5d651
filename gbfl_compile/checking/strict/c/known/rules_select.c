/* The select kernel of a rule set, between gather.c and rules_blocks.c. */
GBFL_CLONES
static void @NAME@_sums_block(const @REAL@ *const *columns, size_t first, size_t n, int64_t (*sums)[GBFL_BLOCK])
{
    $each:sums_columns{
    const @REAL@ *const $c:feature = columns[$number:slot] + first;
    $}
    $each:unused_columns{ (void)columns; (void)first; $}
    for (size_t i = 0; i < n; ++i) {
        $each:sums_values{ const @REAL@ $x:feature = $c:feature[i]; $}
        $each:starts{ int64_t $s:class = $integer:start; $}
        $each:sums_rules{
        const int64_t $h:rule = -(int64_t)($lanes:holds);
        $each:worth{ $s:class += $integer:points & $h:rule; $}
        $}
        $each:ends{ sums[$number:class][i] = $s:class; $}
    }
}
