#define _GNU_SOURCE
#include "CTernLoop.h"

#if defined(__linux__)
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <time.h>

int tern_loop_control(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = { .events = events, .data = { .u64 = data } };
    return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : errno;
}

void tern_loop_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void tern_loop_keep_heap(void) {
    void *volatile block = malloc(1 << 20);
    free(block);
}

int64_t tern_loop_send_file(int socket, int file, int64_t offset, int64_t count) {
    // sendfile has no MSG_NOSIGNAL.
    struct tern_pipe_signal before;
    if (!tern_pipe_signal_hold(&before)) { return -1; }
    off_t position = offset;
    int64_t sent = sendfile(socket, file, &position, (size_t)count);
    tern_pipe_signal_release(&before);
    return sent;
}

int64_t tern_loop_thread_microseconds(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) { return 0; }
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
#else
// An empty translation unit on other systems.
typedef int tern_loop_is_linux_only;
#endif
