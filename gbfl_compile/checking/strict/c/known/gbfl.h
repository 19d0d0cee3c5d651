/* gbfl.h: what every scorer emitted by gbfl-compile shares. C99, no allocation, nothing written but `out`.
 *
 * Comparisons are the whole of a rule program, so this header refuses the compiler modes that change them.
 * Define GBFL_NO_BATCH to leave out the batch entry points, GBFL_NO_CLONES to build one plain version of
 * them, GBFL_WITH_LIBM to have the probabilities of rule sets (they need exp; nothing else needs libm).
 */
#ifndef GBFL_H
#define GBFL_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "gbfl: -ffast-math, or a part of it, changes what NaN and tiny numbers answer: build without it"
#endif

/* -fsingle-precision-constant makes floats of all literals, so other thresholds and rates: build without it. */
typedef char gbfl_literals_are_doubles[sizeof(1.0) == sizeof(double) ? 1 : -1];

#if FLT_RADIX != 2 || FLT_MANT_DIG != 24
#error "gbfl: float is not IEEE binary32 here"
#endif

/* Rows a batch kernel handles at a time: 20 columns of that many doubles stay in a 32 KiB first-level cache. */
#define GBFL_BLOCK 64

/* One binary that runs anywhere and still uses the vector units it finds. Elsewhere: plain C, same answers. */
#if !defined(GBFL_NO_CLONES) && defined(__x86_64__) && defined(__ELF__) && defined(__GLIBC__) && \
    ((defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 8)) && \
    !defined(__SANITIZE_ADDRESS__)
#define GBFL_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GBFL_CLONES
#endif

/* Asks for the memory `bytes` past `row` before it is needed; it may lie outside the rows, nothing is read. */
#if defined(__GNUC__)
#define GBFL_PREFETCH(row, bytes) __builtin_prefetch((const void *)((uintptr_t)(row) + (uintptr_t)(bytes)))
#else
#define GBFL_PREFETCH(row, bytes) ((void)0)
#endif

/* C99 has no literal for it. */
#if defined(__GNUC__)
#define GBFL_INFINITY __builtin_inff()
#else
#include <math.h>
#define GBFL_INFINITY INFINITY
#endif

/* The highest of `classes` sums; ties go to the lower index. */
static inline int gbfl_winner(const int64_t *sums, int classes)
{
    int best = 0;
    for (int c = 1; c < classes; ++c) {
        if (sums[c] > sums[best]) {
            best = c;
        }
    }
    return best;
}

/* The number of the lowest bit that is set; `word` is not 0. */
static inline unsigned gbfl_lowest_bit(uint64_t word)
{
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(word);
#else
    unsigned number = 0;
    while ((word & 1u) == 0) {
        word >>= 1;
        ++number;
    }
    return number;
#endif
}

#ifdef GBFL_WITH_LIBM
#include <math.h>

/* Probabilities of whole points worth `worth` logits each: their softmax. */
static inline void gbfl_softmax(const int64_t *sums, int classes, double worth, double *out)
{
    const int64_t top = sums[gbfl_winner(sums, classes)];
    double total = 0.0;
    for (int c = 0; c < classes; ++c) {
        out[c] = exp((double)(sums[c] - top) * worth);
        total += out[c];
    }
    for (int c = 0; c < classes; ++c) {
        out[c] /= total;
    }
}
#endif

#endif
