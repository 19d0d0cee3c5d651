/* A decision tree, one row at a time. */
static int32_t @NAME@_leaf_of(const @REAL@ *x)
{
    $each:unused{ (void)x; $}
    $tree:leaf_of
}

static const int32_t @NAME@_leaf_class[$number:leaves] = $int32s:leaf_class;

static const double @NAME@_leaf_probabilities[$number:leaves][$number:classes] = $doubles:leaf_probabilities;

int @NAME@_predict(const @REAL@ *x)
{
    return (int)@NAME@_leaf_class[@NAME@_leaf_of(x)];
}

int @NAME@_predict_proba(const @REAL@ *x, double *out)
{
    return @NAME@_leaf(@NAME@_leaf_of(x), out);
}

int @NAME@_leaf(int32_t leaf, double *out)
{
    if (leaf < 0 || leaf >= $number:leaves) {
        return -1;
    }
    for (int c = 0; c < $number:classes; ++c) {
        out[c] = @NAME@_leaf_probabilities[leaf][c];
    }
    return (int)@NAME@_leaf_class[leaf];
}

static const int32_t @NAME@_leaf_node[$number:leaves] = $int32s:leaf_node;

static const int32_t @NAME@_node_above[$number:nodes] = $int32s:node_above;

static const int32_t @NAME@_node_clause[$number:nodes] = $int32s:node_clause;

int32_t @NAME@_explain(const @REAL@ *x, uint32_t *held)
{
    const int32_t leaf = @NAME@_leaf_of(x);
    if (held != NULL) {
        for (int word = 0; word < $number:words; ++word) {
            held[word] = 0u;
        }
        for (int32_t node = @NAME@_leaf_node[leaf]; node != 0; node = @NAME@_node_above[node] / 2) {
            if (@NAME@_node_above[node] % 2 == 1) {
                const int32_t clause = @NAME@_node_clause[@NAME@_node_above[node] / 2];
                held[clause / 32] |= (uint32_t)1 << (clause % 32);
            }
        }
    }
    return leaf;
}
