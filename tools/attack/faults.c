/* Faults of disks and clocks, preloaded into a process: see disks.py.
 *
 * FAULT_CALL  fsync, rename, write or short: which call fails (short: writes take a part of what they are given)
 * FAULT_AT    the number of the call, from 1, from which on it fails
 * FAULT_ERRNO what it fails with
 * FAULT_SLOW  microseconds that every fsync takes
 * FAULT_CLOCK seconds that the wall clock jumps, back and forth, at every tenth look
 * Only regular files are affected: pipes and terminals work.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls, looks;

static int is(const char *call) {
    const char *wanted = getenv("FAULT_CALL");
    return wanted && strcmp(wanted, call) == 0;
}

static int fails(const char *call) {
    if (!is(call)) return 0;
    const char *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    if (atomic_fetch_add(&calls, 1) + 1 < (at ? atoi(at) : 1)) return 0;
    errno = number ? atoi(number) : ENOSPC;
    return 1;
}

static int regular(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    const char *slow = getenv("FAULT_SLOW");
    if (slow) usleep(atoi(slow));
    return regular(fd) && fails("fsync") ? -1 : real(fd);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "rename");
    return fails("rename") ? -1 : real(from, to);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (regular(fd)) {
        if (is("short") && count > 1) return real(fd, bytes, count / 2);
        if (fails("write")) return -1;
    }
    return real(fd, bytes, count);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    const char *jump = getenv("FAULT_CLOCK");
    if (status == 0 && clock == CLOCK_REALTIME && jump && atomic_fetch_add(&looks, 1) / 10 % 2) now->tv_sec += atoi(jump);
    return status;
}
