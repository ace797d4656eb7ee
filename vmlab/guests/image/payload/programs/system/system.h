/* The three tests of `system`, and what they share. Each prints progress and then one line of JSON with its figures. */
#ifndef SYSTEM_H
#define SYSTEM_H

/* Hides a value from the compiler, so that it can neither foresee nor leave out what is done with it. */
#define HIDE(value) __asm__ volatile("" : "+r"(value))

/* A function that is really called, each time: not inlined, not merged, not specialised for its arguments. */
#define CALLED __attribute__((noipa))

#define MOST_SLICES 10

/* The amount is done in slices, each of which is timed; returns how many there are, with their seconds in `times`. */
int in_slices(const char *test, long amount, void (*work)(long), double times[MOST_SLICES]);

/* Begins the line of a test that has ended; the test adds its own figures and the closing brace. */
void begin_result(const char *test, long amount, int slices, const double times[MOST_SLICES]);

void dhrystone(long runs);
void whetstone(long cycles);
void copy(long block, long passes, const char *folder);

#endif
