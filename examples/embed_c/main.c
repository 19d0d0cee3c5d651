/* Scores loans from standard input, one a line: income, debt share, late payments; "-" is missing.
 *
 * The scorer itself is build/c/loans.c, compiled from ../loans.gbfl.json by the Makefile. It allocates nothing, and its
 * answers are those of the program on every input: `gbfl compile` has proved and run it before make sees the file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loans.h"

enum { LONGEST_LINE = 256 };

/* One number of a line, NaN for "-"; 0 where there is none. */
static int number(char *text, double *value) {
    char *end = NULL;

    if (text == NULL) {
        return 0;
    }
    if (strcmp(text, "-") == 0) {
        *value = (double)NAN;
        return 1;
    }
    *value = strtod(text, &end);
    return end != text && *end == '\0';
}

/* A row from a line; 0 where it does not hold one number per feature. */
static int read_row(char *line, double *row) {
    char *word = strtok(line, " \t\r\n");
    int feature;

    for (feature = 0; feature < loans_FEATURES; feature++) {
        if (!number(word, &row[feature])) {
            return 0;
        }
        word = strtok(NULL, " \t\r\n");
    }
    return word == NULL;
}

int main(void) {
    char line[LONGEST_LINE];
    double row[loans_FEATURES];
    int lines = 0;

    if (loans_selftest() != 0) {
        fprintf(stderr, "this build does not answer as its program does: check the compiler's flags\n");
        return 1;
    }
    printf("program %.12s\n", loans_digest());
    while (fgets(line, sizeof line, stdin) != NULL) {
        lines++;
        if (!read_row(line, row)) {
            fprintf(stderr, "line %d: give %d numbers\n", lines, loans_FEATURES);
            return 2;
        }
        printf("%s\n", loans_label(loans_predict(row)));
    }
    return 0;
}
