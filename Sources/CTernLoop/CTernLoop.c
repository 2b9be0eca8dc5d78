#define _GNU_SOURCE
#include "CTernLoop.h"

#if defined(__linux__)
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

int tern_loop_control(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = { .events = events, .data = { .u64 = data } };
    return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : errno;
}

void tern_loop_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void tern_loop_keep_heap(void) {
    void *volatile block = malloc(1 << 20);
    free(block);
}

int64_t tern_loop_thread_user_microseconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) { return 0; }
    return (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
}
#else
// An empty translation unit on other systems.
typedef int tern_loop_is_linux_only;
#endif
