#include "bench.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct sample sample_now(void) {
    struct timespec now;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &now);
    getrusage(RUSAGE_SELF, &usage);
    return (struct sample){
        .wall = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
        .cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
    };
}

/// VmHWM: `ru_maxrss` would also count what the parent held when it forked.
double peak_rss_mib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return 0;
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "VmHWM:", 6) == 0) sscanf(line + 6, "%ld", &kib);
    }
    fclose(status);
    return (double)kib / 1024;
}
