/*
 * speed_probe [MS]: how long the same short piece of work takes on each CPU, every MS milliseconds (100 unless said).
 *
 * A thread is pinned to each CPU of this process's affinity mask, under SCHED_FIFO where that is permitted. Each probe
 * runs the work three times and keeps the shortest time, so that an interrupt or a preemption does not count.
 *
 * Standard output is a file, which is mapped: a `struct slot` for each CPU number up to the last one, in which probes
 * are added up. Nothing is written otherwise, so a reader that is slow or gone blocks nothing.
 * It ends when standard input ends or its parent dies. Exit code 1: MS is no number, or file or threads could not be had.
 *
 * A thread under SCHED_FIFO that does not sleep takes a CPU from all others, so the kernel ends this process where one
 * works for LONGEST_US without a sleep (RLIMIT_RTTIME), and a thread whose sleep fails ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 83000, REPEATS = 3, LONGEST_US = 200000 };

struct slot {
    uint64_t sequence; /* odd while the slot changes */
    uint64_t probes;
    uint64_t inverse; /* the sum of 10^12 / duration */
    uint64_t best;    /* the shortest duration since the start, ns */
    uint64_t fifo;    /* 1: under SCHED_FIFO, 0: normal priority */
    uint64_t unused[3];
};

static struct slot *slots;
static int64_t period_ns = 100000000;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Six independent chains: bound by throughput, which a neighbour on the other hardware thread halves.
 * The empty asm keeps the compiler from joining rounds or using vector registers. */
static void work(void) {
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    for (int i = 0; i < ROUNDS; i++) {
        a += i; b ^= i; c += i; d ^= i; e += i; f ^= i;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
}

static uint64_t shortest(void) {
    int64_t least = INT64_MAX, before = now_ns();
    for (int i = 0; i < REPEATS; i++) {
        work();
        int64_t now = now_ns();
        if (now - before < least)
            least = now - before;
        before = now;
    }
    return least > 0 ? (uint64_t)least : 1;
}

static void add(struct slot *slot, uint64_t took) {
    __atomic_add_fetch(&slot->sequence, 1, __ATOMIC_SEQ_CST);
    slot->probes++;
    slot->inverse += UINT64_C(1000000000000) / took;
    if (!slot->best || took < slot->best)
        slot->best = took;
    __atomic_add_fetch(&slot->sequence, 1, __ATOMIC_SEQ_CST);
}

static void *probe(void *argument) {
    int cpu = (int)(intptr_t)argument;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (pthread_setaffinity_np(pthread_self(), sizeof only, &only))
        return NULL; /* the CPU went offline or left the cpuset */
    struct sched_param priority = {.sched_priority = 1};
    slots[cpu].fifo = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
    int64_t due = now_ns();
    for (;;) {
        uint64_t took = shortest();
        if (sched_getcpu() == cpu) /* a CPU that goes offline loses its threads to others */
            add(&slots[cpu], took);
        due += period_ns;
        int64_t end = now_ns();
        if (due < end)
            due = end + period_ns; /* probes that were missed are not made up for */
        struct timespec next = {due / 1000000000, due % 1000000000};
        int failed = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        if (failed && failed != EINTR)
            return NULL;
    }
}

int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count > 1)
        period_ns = atoll(words[1]) * 1000000;
    if (period_ns <= 0)
        return 1;
    struct rlimit longest = {LONGEST_US, LONGEST_US};
    if (setrlimit(RLIMIT_RTTIME, &longest))
        return 1;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 1;
    int last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            last = cpu;
    size_t size = (size_t)(last + 1) * sizeof *slots;
    if (ftruncate(1, (off_t)size))
        return 1;
    slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, 1, 0);
    if (slots == MAP_FAILED)
        return 1;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    int started = 0;
    for (int cpu = 0; cpu <= last; cpu++) {
        pthread_t thread;
        if (CPU_ISSET(cpu, &allowed) && !pthread_create(&thread, &small, probe, (void *)(intptr_t)cpu))
            started++;
    }
    if (!started)
        return 1;
    char byte;
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
