/*
 * A synthetic mix of floating point, whole numbers, calls and the functions of mathematics: H. J. Curnow and B. A. Wichmann,
 * "A Synthetic Benchmark", The Computer Journal 19(1), 1976, in double precision. Written anew from that algorithm; its
 * modules keep their numbers, the fifth was left out by its authors, and the first and the tenth have no loops.
 *
 * A cycle is what the program does for LOOP = 10, which its authors count as a million Whetstone instructions, and begins
 * with fresh variables. So the values that they print at the end of each module are known. They are kept of the first
 * cycle, held against those of each other one, and printed for a check.
 */
#include "system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MODULES 10
#define COLUMNS 7

static const double t = 0.499975, t1 = 0.50025, t2 = 2.0;

static double e1[5]; /* numbered from 1 */
static int j, k, l;
static double rows[MODULES][COLUMNS], kept[MODULES][COLUMNS];
static int module;
static long cycles, equal;

static void print_out(long n, long second, long third, double x1, double x2, double x3, double x4)
{
    double row[COLUMNS] = {(double)n, (double)second, (double)third, x1, x2, x3, x4};
    memcpy(rows[module++], row, sizeof row);
}

static void print_array(long n, long second, long third)
{
    print_out(n, second, third, e1[1], e1[2], e1[3], e1[4]);
}

CALLED static void procedure_a(double e[5])
{
    for (int i = 0; i < 6; i++) {
        e[1] = (e[1] + e[2] + e[3] - e[4]) * t;
        e[2] = (e[1] + e[2] - e[3] + e[4]) * t;
        e[3] = (e[1] - e[2] + e[3] + e[4]) * t;
        e[4] = (-e[1] + e[2] + e[3] + e[4]) / t2;
    }
}

CALLED static void procedure_0(void)
{
    e1[j] = e1[k];
    e1[k] = e1[l];
    e1[l] = e1[j];
}

CALLED static void procedure_3(double x, double y, double *z)
{
    double x1 = t * (x + y);
    double y1 = t * (x1 + y);
    *z = (x1 + y1) / t2;
}

static void numbers(long loop)
{
    const long n2 = 12 * loop, n3 = 14 * loop;
    const double x1 = 1.0, x2 = -1.0, x3 = -1.0, x4 = -1.0;
    print_out(0, 0, 0, x1, x2, x3, x4);
    e1[1] = 1.0;
    e1[2] = e1[3] = e1[4] = -1.0;
    for (long i = 0; i < n2; i++) {
        e1[1] = (e1[1] + e1[2] + e1[3] - e1[4]) * t;
        e1[2] = (e1[1] + e1[2] - e1[3] + e1[4]) * t;
        e1[3] = (e1[1] - e1[2] + e1[3] + e1[4]) * t;
        e1[4] = (-e1[1] + e1[2] + e1[3] + e1[4]) * t;
    }
    print_array(n2, n3, n2);
    for (long i = 0; i < n3; i++)
        procedure_a(e1);
    print_array(n3, n2, n2);
}

static void jumps_and_integers(long loop)
{
    const long n4 = 345 * loop, n6 = 210 * loop;
    int a = 1, b = 2, c = 3;
    for (long i = 0; i < n4; i++) {
        a = a == 1 ? 2 : 3;
        HIDE(a);
        a = a > 2 ? 0 : 1;
        HIDE(a);
        a = a < 1 ? 1 : 0;
        HIDE(a);
    }
    print_out(n4, a, a, 1.0, -1.0, -1.0, -1.0);
    a = 1;
    for (long i = 0; i < n6; i++) {
        HIDE(a);
        HIDE(b);
        HIDE(c);
        a = a * (b - a) * (c - b);
        b = c * b - (c - a) * b;
        c = (c - b) * (b + a);
        e1[c - 1] = a + b + c;
        e1[b - 1] = a * b * c;
    }
    print_array(n6, a, b);
    j = a, k = b, l = c;
}

static void functions_and_calls(long loop)
{
    const long n7 = 32 * loop, n8 = 899 * loop, n9 = 616 * loop;
    double x = 0.5, y = 0.5, z = 1.0;
    for (long i = 0; i < n7; i++) {
        x = t * atan(t2 * sin(x) * cos(x) / (cos(x + y) + cos(x - y) - 1.0));
        y = t * atan(t2 * sin(y) * cos(y) / (cos(x + y) + cos(x - y) - 1.0));
    }
    print_out(n7, j, k, x, x, y, y);
    x = y = z = 1.0;
    for (long i = 0; i < n8; i++)
        procedure_3(x, y, &z);
    print_out(n8, j, k, x, y, z, z);
    j = 1, k = 2, l = 3;
    e1[1] = 1.0;
    e1[2] = 2.0;
    e1[3] = 3.0;
    for (long i = 0; i < n9; i++)
        procedure_0();
    print_array(n9, j, k);
    j = 2, k = 3;
    print_out(0, j, k, 1.0, -1.0, -1.0, -1.0);
}

static void roots(long loop)
{
    const long n11 = 93 * loop;
    double x = 0.75;
    for (long i = 0; i < n11; i++)
        x = sqrt(exp(log(x) / t1));
    print_out(n11, j, k, x, x, x, x);
}

static void work(long amount)
{
    long loop = 10;
    for (long cycle = 0; cycle < amount; cycle++) {
        HIDE(loop);
        module = 0;
        numbers(loop);
        jumps_and_integers(loop);
        functions_and_calls(loop);
        roots(loop);
        if (cycles++ == 0)
            memcpy(kept, rows, sizeof rows);
        equal += memcmp(kept, rows, sizeof rows) == 0;
    }
}

void whetstone(long amount)
{
    double times[MOST_SLICES];
    int slices = in_slices("whetstone", amount, work, times);
    begin_result("whetstone", amount, slices, times);
    printf("\"equal\": %ld, \"values\": [", equal);
    for (int row = 0; row < MODULES; row++) {
        printf("%s[", row ? ", " : "");
        for (int column = 0; column < COLUMNS; column++)
            printf("%s%.17g", column ? ", " : "", kept[row][column]);
        printf("]");
    }
    printf("]}\n");
}
