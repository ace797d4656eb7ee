/*
 * Small tests of a system, one after another: whole numbers and texts, floating point, and files copied through buffers.
 *
 *   system FOLDER TEST:AMOUNT...
 *
 * TEST is dhrystone (AMOUNT runs), whetstone (AMOUNT cycles), or copy-BLOCK (AMOUNT passes over FOLDER/source.BLOCK,
 * with buffers of BLOCK bytes). Prints a line of JSON after each slice of a test, and one with all its figures at its
 * end; times are in seconds. The figures have what the test computed, so that another program can check it. Exits with 1
 * when a file cannot be read or written, with 2 for bad arguments.
 */
#define _GNU_SOURCE
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 2000000000L /* dhrystone counts its runs in an int */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int in_slices(const char *test, long amount, void (*work)(long), double times[MOST_SLICES])
{
    int slices = amount < MOST_SLICES ? (int)amount : MOST_SLICES;
    for (int slice = 0; slice < slices; slice++) {
        long part = amount * (slice + 1) / slices - amount * slice / slices;
        double began = now();
        work(part);
        times[slice] = now() - began;
        printf("{\"test\": \"%s\", \"slice\": %d, \"of\": %d}\n", test, slice + 1, slices);
        fflush(stdout);
    }
    return slices;
}

void begin_result(const char *test, long amount, int slices, const double times[MOST_SLICES])
{
    printf("{\"test\": \"%s\", \"compiler\": \"gcc %s\", \"amount\": %ld, \"times\": [", test, __VERSION__, amount);
    for (int slice = 0; slice < slices; slice++)
        printf("%s%.9f", slice ? ", " : "", times[slice]);
    printf("], ");
}

static long number(const char *text, char end, long most)
{
    char *stop;
    long value = strtol(text, &stop, 10);
    if (stop == text || *stop != end || value < 1 || value > most) {
        fprintf(stderr, "system: %s is not a whole number from 1 to %ld\n", text, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: system FOLDER TEST:AMOUNT...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        const char *colon = strchr(argv[i], ':');
        if (colon == NULL) {
            fprintf(stderr, "system: %s has no amount\n", argv[i]);
            return 2;
        }
        long amount = number(colon + 1, '\0', MOST);
        if (strncmp(argv[i], "dhrystone:", 10) == 0)
            dhrystone(amount);
        else if (strncmp(argv[i], "whetstone:", 10) == 0)
            whetstone(amount);
        else if (strncmp(argv[i], "copy-", 5) == 0)
            copy(number(argv[i] + 5, ':', 1L << 20), amount, argv[1]);
        else {
            fprintf(stderr, "system: there is no test %s\n", argv[i]);
            return 2;
        }
    }
    return 0;
}
