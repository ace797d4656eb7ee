/*
 * speed_probe: how long the same short piece of work takes on each CPU, ten times a second.
 *
 * A thread is pinned to each CPU of this process's affinity mask, under SCHED_FIFO where that is permitted.
 * Output, a line each: "fifo 0|1 CPU" once per thread, then "CLOCK_MONOTONIC_ns CPU duration_ns".
 * It ends when standard input ends or its parent dies. Exit code 1: no thread could be started.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 250000, PERIOD_NS = 100000000 };

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

static void *probe(void *argument) {
    int cpu = (int)(intptr_t)argument;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (pthread_setaffinity_np(pthread_self(), sizeof only, &only))
        return NULL; /* the CPU went offline or left the cpuset */
    struct sched_param priority = {.sched_priority = 1};
    printf("fifo %d %d\n", pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0, cpu);
    int64_t due = now_ns();
    for (;;) {
        int64_t start = now_ns();
        work();
        int64_t end = now_ns();
        printf("%lld %d %lld\n", (long long)start, cpu, (long long)(end - start));
        due += PERIOD_NS;
        if (due < end)
            due = end + PERIOD_NS; /* probes that were missed are not made up for */
        struct timespec next = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 1;
    int started = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        pthread_t thread;
        if (CPU_ISSET(cpu, &allowed) && !pthread_create(&thread, NULL, probe, (void *)(intptr_t)cpu))
            started++;
    }
    if (!started)
        return 1;
    char byte;
    while (read(0, &byte, 1) > 0) {}
    _exit(0);
}
