/*
 * Four kernels over arrays that fit into no cache, and the bandwidth of the memory that follows from their times.
 *
 * Kernels, initial values, byte counts, the first run that is left out, and the check of the arrays are those of
 * STREAM: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA
 * Newsletter, December 1995, https://www.cs.virginia.edu/stream/ . Where STREAM asks for a mean error below 1e-13,
 * every single element has to keep to it here.
 *
 *   stream THREADS ELEMENTS RUNS
 *
 * ELEMENTS are doubles in each of three arrays, RUNS at least 2. Prints a line of JSON after each run, and one with
 * all figures at the end; times are in seconds. Exits with 1 when memory or threads cannot be had, or an array holds
 * what it should not, with 2 for bad arguments.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_THREADS 256
#define MOST_RUNS 200 /* each run multiplies the values by 15, and a double ends at 1.8e308 */
#define EPSILON 1e-13

enum { COPY, SCALE, ADD, TRIAD, KERNELS };

static const char *const names[KERNELS] = {"copy", "scale", "add", "triad"};
static const int arrays_moved[KERNELS] = {2, 2, 3, 3};
static const double scalar = 3.0;

static double *a, *b, *c;
static long threads, elements, runs;
static double times[MOST_RUNS][KERNELS];
static struct {
    double begin, end;
    char apart[48]; /* a cache line for each thread */
} stamps[MOST_THREADS];
static pthread_barrier_t barrier;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double span(void)
{
    double first = INFINITY, last = 0;
    for (long i = 0; i < threads; i++) {
        first = fmin(first, stamps[i].begin);
        last = fmax(last, stamps[i].end);
    }
    return last - first;
}

static void fill(long from, long to)
{
    for (long i = from; i < to; i++) {
        a[i] = 2.0; /* STREAM starts with 1.0 and doubles it to try the clock */
        b[i] = 2.0;
        c[i] = 0.0;
    }
}

static void work(int kernel, long from, long to)
{
    double *restrict x = a, *restrict y = b, *restrict z = c;
    long i;
    switch (kernel) {
    case COPY:
        for (i = from; i < to; i++)
            z[i] = x[i];
        break;
    case SCALE:
        for (i = from; i < to; i++)
            y[i] = scalar * z[i];
        break;
    case ADD:
        for (i = from; i < to; i++)
            z[i] = x[i] + y[i];
        break;
    default:
        for (i = from; i < to; i++)
            x[i] = y[i] + scalar * z[i];
    }
}

/*
 * Each thread stamps when it begins its own part and when it has done it, and a kernel lasts from the first beginning to
 * the last end: a thread that waits for a processor right after the barrier cannot make the time shorter.
 */
static void *thread(void *argument)
{
    long own = (long)argument;
    long from = elements * own / threads, to = elements * (own + 1) / threads;
    fill(from, to);
    for (long run = 0; run < runs; run++) {
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            pthread_barrier_wait(&barrier);
            stamps[own].begin = now();
            work(kernel, from, to);
            stamps[own].end = now();
            pthread_barrier_wait(&barrier);
            if (own == 0)
                times[run][kernel] = span();
        }
        if (own == 0) {
            printf("{\"run\": %ld, \"of\": %ld}\n", run + 1, runs);
            fflush(stdout);
        }
    }
    return NULL;
}

static int wrong(const char *name, const double *array, double expected)
{
    for (long i = 0; i < elements; i++)
        if (!(fabs(array[i] - expected) <= EPSILON * fabs(expected))) {
            fprintf(stderr, "element %ld of array %s is %.17g, and should be %.17g\n", i, name, array[i], expected);
            return 1;
        }
    return 0;
}

static int results_wrong(void)
{
    double x = 2.0, y = 2.0, z = 0.0;
    for (long run = 0; run < runs; run++) {
        z = x;
        y = scalar * z;
        z = x + y;
        x = y + scalar * z;
    }
    return wrong("a", a, x) || wrong("b", b, y) || wrong("c", c, z);
}

static void report(void)
{
    printf("{\"threads\": %ld, \"elements\": %ld, \"runs\": %ld, \"checked\": %ld, \"compiler\": \"gcc %s\", \"kernels\": {",
           threads, elements, runs, 3 * elements, __VERSION__);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        double bytes = (double)arrays_moved[kernel] * (double)elements * sizeof(double);
        double least = INFINITY, most = 0, sum = 0;
        for (long run = 1; run < runs; run++) {
            least = fmin(least, times[run][kernel]);
            most = fmax(most, times[run][kernel]);
            sum += times[run][kernel];
        }
        printf("%s\"%s\": {\"bytes\": %.0f, \"best\": %.1f, \"avg\": %.9f, \"min\": %.9f, \"max\": %.9f, \"times\": [",
               kernel ? ", " : "", names[kernel], bytes, bytes / least, sum / (double)(runs - 1), least, most);
        for (long run = 0; run < runs; run++)
            printf("%s%.9f", run ? ", " : "", times[run][kernel]);
        printf("]}");
    }
    printf("}}\n");
}

static double *array(void)
{
    void *got = mmap(NULL, (size_t)elements * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        perror("stream: memory");
        exit(1);
    }
    return got;
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "stream: %s is not a whole number from %ld to %ld\n", text, least, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    pthread_t ids[MOST_THREADS];
    if (argc != 4) {
        fprintf(stderr, "usage: stream THREADS ELEMENTS RUNS\n");
        return 2;
    }
    threads = number(argv[1], 1, MOST_THREADS);
    elements = number(argv[2], threads, 1L << 40);
    runs = number(argv[3], 2, MOST_RUNS);
    a = array();
    b = array();
    c = array();
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long own = 0; own < threads; own++) {
        int error = pthread_create(&ids[own], NULL, thread, (void *)own);
        if (error != 0) {
            fprintf(stderr, "stream: thread: %s\n", strerror(error));
            return 1;
        }
    }
    for (long own = 0; own < threads; own++)
        pthread_join(ids[own], NULL);
    if (results_wrong())
        return 1;
    report();
    return 0;
}
