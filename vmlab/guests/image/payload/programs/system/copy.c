/*
 * A file copied over another one again and again, with read(2) and write(2) and a buffer of one block, from page cache to
 * page cache. The first pass, which reads the file from the disk and makes the copy, is not timed. What the kernel counted
 * of the timed reads and writes is printed for a check (`rchar`, `wchar` and `syscw` of proc(5)).
 */
#define _GNU_SOURCE
#include "system.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *buffer;
static long block, blocks;
static int from, to;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int opened(const char *folder, const char *name, int flags)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%ld", folder, name, block);
    int file = open(path, flags, 0644);
    if (file < 0)
        fail(path);
    return file;
}

static void work(long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        if (lseek(from, 0, SEEK_SET) != 0 || lseek(to, 0, SEEK_SET) != 0)
            fail("system: copy: lseek");
        for (long i = 0; i < blocks; i++) {
            if (read(from, buffer, (size_t)block) != block)
                fail("system: copy: read");
            if (write(to, buffer, (size_t)block) != block)
                fail("system: copy: write");
        }
    }
}

static void counted(long counts[3])
{
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL)
        fail("system: copy: /proc/self/io");
    int found = fscanf(file, "rchar: %ld wchar: %ld syscr: %*d syscw: %ld", &counts[0], &counts[1], &counts[2]);
    fclose(file);
    if (found != 3)
        fail("system: copy: /proc/self/io");
}

void copy(long size, long passes, const char *folder)
{
    double times[MOST_SLICES];
    long before[3], after[3];
    char test[32];
    snprintf(test, sizeof test, "copy-%ld", size);
    block = size;
    from = opened(folder, "source", O_RDONLY);
    to = opened(folder, "copy", O_WRONLY | O_CREAT | O_TRUNC);
    buffer = aligned_alloc(4096, (size_t)(size + 4095) / 4096 * 4096);
    off_t length = lseek(from, 0, SEEK_END);
    blocks = length / size;
    if (buffer == NULL || blocks < 1 || length % size != 0) {
        fprintf(stderr, "system: copy: the source must be whole blocks of %ld bytes\n", size);
        exit(1);
    }
    work(1);
    fflush(stdout); /* what is written to it later is one line for each slice */
    counted(before);
    int slices = in_slices(test, passes, work, times);
    counted(after);
    if (fsync(to) != 0 || close(to) != 0)
        fail("system: copy");
    close(from);
    free(buffer);
    begin_result(test, passes, slices, times);
    printf("\"blocks\": %ld, \"read\": %ld, \"written\": %ld, \"writes\": %ld}\n", blocks, after[0] - before[0],
           after[1] - before[1], after[2] - before[2] - slices);
}
