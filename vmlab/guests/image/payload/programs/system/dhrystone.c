/*
 * A synthetic mix of statements on whole numbers, characters, texts, records and arrays, in the shares that R. P. Weicker
 * counted in real programs: "Dhrystone: A Synthetic Systems Programming Benchmark", Communications of the ACM 27(10),
 * 1984, in the form of its version 2.1: "Dhrystone Benchmark: Rationale for Version 2 and Measurement Rules", ACM SIGPLAN
 * Notices 23(8), 1988. Written anew from that algorithm. As its rules ask, procedures are really called, so none of them is merged
 * with its caller. Texts are copied and compared by loops of our own: the C library would choose code by the processor.
 * The final values of all variables are known; they are printed for a check.
 */
#include "system.h"

#include <stdio.h>

#define TEXT 31

enum ident { FIRST, SECOND, THIRD, FOURTH, FIFTH };

struct record {
    struct record *next;
    enum ident discriminant;
    enum ident choice;
    int number;
    char text[TEXT];
};

static struct record records[2];
static struct record *head = &records[0];
static int global_number, global_truth;
static char global_first, global_second;
static int vector[50], matrix[50][50];

/* What is local to the main loop, kept over its slices for the check at the end. */
static int one, two, three;
static enum ident choice;
static char first_text[TEXT], second_text[TEXT];

CALLED static void put(char *to, const char *from)
{
    while ((*to++ = *from++) != '\0')
        ;
}

CALLED static int compare(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right)
        left++, right++;
    return (unsigned char)*left - (unsigned char)*right;
}

CALLED static enum ident function_1(char left, char right)
{
    char copied = left, again = copied;
    if (again != right)
        return FIRST;
    global_first = copied;
    return SECOND;
}

CALLED static int function_2(const char *left, const char *right)
{
    int at = 2;
    char letter = '\0';
    while (at <= 2)
        if (function_1(left[at], right[at + 1]) == FIRST) {
            letter = 'A';
            at++;
        }
    if (letter >= 'W' && letter < 'Z')
        at = 7;
    if (letter == 'R')
        return 1;
    if (compare(left, right) <= 0)
        return 0;
    at += 7;
    global_number = at;
    return 1;
}

CALLED static int function_3(enum ident value)
{
    enum ident copied = value;
    return copied == THIRD;
}

CALLED static void procedure_6(enum ident value, enum ident *result)
{
    *result = value;
    if (!function_3(value))
        *result = FOURTH;
    switch (value) {
    case FIRST:
        *result = FIRST;
        break;
    case SECOND:
        *result = global_number > 100 ? FIRST : FOURTH;
        break;
    case THIRD:
        *result = SECOND;
        break;
    case FOURTH:
        break;
    case FIFTH:
        *result = THIRD;
    }
}

CALLED static void procedure_7(int left, int right, int *result)
{
    int sum = left + 2;
    *result = right + sum;
}

CALLED static void procedure_3(struct record **result)
{
    if (head != NULL)
        *result = head->next;
    procedure_7(10, global_number, &head->number);
}

CALLED static void procedure_1(struct record *record)
{
    struct record *next = record->next;
    *record->next = *head;
    record->number = 5;
    next->number = record->number;
    next->next = record->next;
    procedure_3(&next->next);
    if (next->discriminant == FIRST) {
        next->number = 6;
        procedure_6(record->choice, &next->choice);
        next->next = head->next;
        procedure_7(next->number, 10, &next->number);
    } else {
        *record = *record->next;
    }
}

CALLED static void procedure_2(int *result)
{
    int number = *result + 10;
    enum ident found = SECOND;
    do
        if (global_first == 'A') {
            number -= 1;
            *result = number - global_number;
            found = FIRST;
        }
    while (found != FIRST);
}

CALLED static void procedure_4(void)
{
    int truth = global_first == 'A';
    global_truth = truth | global_truth;
    global_second = 'B';
}

CALLED static void procedure_5(void)
{
    global_first = 'A';
    global_truth = 0;
}

CALLED static void procedure_8(int *line, int (*table)[50], int left, int right)
{
    int at = left + 5;
    line[at] = right;
    line[at + 1] = line[at];
    line[at + 30] = at;
    for (int i = at; i <= at + 1; i++)
        table[at][i] = at;
    table[at][at - 1] += 1;
    table[at + 20][at] = line[at];
    global_number = 5;
}

static void prepare(void)
{
    head->next = &records[1];
    head->discriminant = FIRST;
    head->choice = THIRD;
    head->number = 40;
    put(head->text, "DHRYSTONE PROGRAM, SOME STRING");
    put(first_text, "DHRYSTONE PROGRAM, 1'ST STRING");
    matrix[8][7] = 10;
}

static void work(long runs)
{
    for (long run = 1; run <= runs; run++) {
        procedure_5();
        procedure_4();
        one = 2;
        two = 3;
        put(second_text, "DHRYSTONE PROGRAM, 2'ND STRING");
        choice = SECOND;
        global_truth = !function_2(first_text, second_text);
        while (one < two) {
            three = 5 * one - two;
            procedure_7(one, two, &three);
            one += 1;
        }
        procedure_8(vector, matrix, one, three);
        procedure_1(head);
        for (char letter = 'A'; letter <= global_second; letter++)
            if (choice == function_1(letter, 'C')) {
                procedure_6(FIRST, &choice);
                put(second_text, "DHRYSTONE PROGRAM, 3'RD STRING");
                two = (int)run;
                global_number = (int)run;
            }
        two = two * one;
        one = two / three;
        two = 7 * (two - three) - one;
        procedure_2(&one);
    }
}

void dhrystone(long runs)
{
    double times[MOST_SLICES];
    prepare();
    int slices = in_slices("dhrystone", runs, work, times);
    const struct record *next = head->next;
    begin_result("dhrystone", runs, slices, times);
    printf("\"values\": [%d, %d, \"%c\", \"%c\", %d, %d, ", global_number, global_truth, global_first, global_second,
           vector[8], matrix[8][7]);
    printf("%d, %d, %d, \"%s\", ", head->discriminant, head->choice, head->number, head->text);
    printf("%d, %d, %d, \"%s\", ", next->discriminant, next->choice, next->number, next->text);
    printf("%d, %d, %d, %d, \"%s\", \"%s\"]}\n", one, two, three, choice, first_text, second_text);
}
