/* Tests gbfl.h: exit code 0 where all holds, else the number of the first thing that does not. */
#include "gbfl.h"

int main(void)
{
    const int64_t tied[3] = {5, 7, 7};
    const int64_t below[2] = {-4, -9};
    const int64_t even[2] = {3, 3};
    double half[2];
    if (gbfl_winner(tied, 3) != 1) {
        return 1;
    }
    if (gbfl_winner(below, 2) != 0 || gbfl_winner(even, 2) != 0 || gbfl_winner(tied, 1) != 0) {
        return 2;
    }
    for (unsigned bit = 0; bit < 64u; ++bit) {
        if (gbfl_lowest_bit(UINT64_MAX << bit) != bit) {
            return 3;
        }
    }
    gbfl_softmax(even, 2, 0x1p-3, half);
    if (half[0] < 0.5 || half[0] > 0.5 || half[1] < 0.5 || half[1] > 0.5) {
        return 4;
    }
    gbfl_softmax(below, 2, 0x1p+10, half);
    if (half[0] < 1.0 || half[1] > 0.0) {
        return 5;
    }
    return 0;
}
