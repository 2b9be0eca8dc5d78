#define _DEFAULT_SOURCE
#include "CTernFuzz.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static uint8_t *kept;
static int limit;

extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static void hung(int number) {
    static const char text[] = "fuzz: an input takes too long\n";
    (void)number;
    (void)!write(2, text, sizeof text - 1);
    _exit(3);
}

bool tern_fuzz_open(const char *path, int seconds) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, TERN_FUZZ_CAPACITY + 8) != 0) return false;
    kept = mmap(NULL, TERN_FUZZ_CAPACITY + 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    limit = seconds;
    signal(SIGPROF, hung);
    signal(SIGALRM, hung);
    return kept != MAP_FAILED;
}

static void arm(int seconds) {
    struct itimerval timer = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
    timer.it_value.tv_sec *= 10;
    setitimer(ITIMER_REAL, &timer, NULL);
}

void tern_fuzz_begin(const uint8_t *bytes, size_t count) {
    uint64_t length = count < TERN_FUZZ_CAPACITY ? count : TERN_FUZZ_CAPACITY;
    memcpy(kept, &length, sizeof length);
    if (length > 0) memcpy(kept + 8, bytes, length);
    arm(limit);
}

void tern_fuzz_end(void) { arm(0); }

uint64_t tern_fuzz_spent(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

size_t tern_fuzz_allocated(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

size_t tern_fuzz_resident(void) {
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}
