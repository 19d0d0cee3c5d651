/* The header of a model. README.md in this folder says what the signs mean. */
#ifndef GBFL_MODEL_@NAME@_H
#define GBFL_MODEL_@NAME@_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    $each:places{ $name:name = $number:place, $}
    $name:last_name = $number:last_place
};
$when:kinds{

enum {
    $name:first_class = $number:first_class_number
    $each:other_classes{ , $name:name = $number:number $}
};
$}
$when:codes{

enum {
    @NAME@_any_other_text = 0
    $each:code_names{ , $name:name = $number:number $}
};
$}

/* gbfl api begins */
enum {
    @NAME@_FEATURES = $number:features,
    @NAME@_CLASSES = $number:classes,
    @NAME@_CLAUSES = $number:clauses,
    @NAME@_HELD_WORDS = $number:words,
    @NAME@_LEAVES = $number:leaves,
    @NAME@_REAL_BITS = @BITS@,
    @NAME@_HAS_BATCH = $number:has_batch
};

int @NAME@_predict(const @REAL@ *x);

$when:tree{
int @NAME@_predict_proba(const @REAL@ *x, double *out);
int32_t @NAME@_explain(const @REAL@ *x, uint32_t *held);
int @NAME@_leaf(int32_t leaf, double *out);
$}
$when:rules{
int @NAME@_score(const @REAL@ *x, int64_t *out);
int32_t @NAME@_explain(const @REAL@ *x, uint32_t *held);

$when:bands{
int @NAME@_predict_proba(const @REAL@ *x, double *out);
void @NAME@_probabilities(const int64_t *points, size_t n, double *out);
$}
$when:softmax{
#ifdef GBFL_WITH_LIBM
int @NAME@_predict_proba(const @REAL@ *x, double *out);
void @NAME@_probabilities(const int64_t *points, size_t n, double *out);
#endif
$}
$}
$when:batch{

#ifndef GBFL_NO_BATCH
void @NAME@_predict_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out);
void @NAME@_predict_columns(const @REAL@ *const *columns, size_t n, int32_t *out);
$when:tree{
void @NAME@_leaf_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int32_t *out);
void @NAME@_leaf_columns(const @REAL@ *const *columns, size_t n, int32_t *out);
$}
$when:rules{
void @NAME@_score_rows(const @REAL@ *x, size_t n, ptrdiff_t stride, int64_t *out);
void @NAME@_score_columns(const @REAL@ *const *columns, size_t n, int64_t *out);
$}
#endif
$}

int @NAME@_uses(int feature);
const char *@NAME@_feature(int feature);
const char *@NAME@_label(int class_number);
char @NAME@_label_kind(void);
$when:kinds{
char @NAME@_kind(int feature);
$}
$when:codes{
@REAL@ @NAME@_code(int feature, const char *text, size_t length);
$}
$when:reasons{
const char *@NAME@_reason(int clause);
$}
const char *@NAME@_digest(void);
int @NAME@_selftest(void);
/* gbfl api ends */

#ifdef __cplusplus
}
#endif

#endif
