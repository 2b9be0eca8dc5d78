#if defined(__linux__)
#define _GNU_SOURCE
#include "CTernCurl.h"

#include <errno.h>
#include <pthread.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

int tern_epoll_control(int epoll, int operation, int fd, uint32_t events) {
    struct epoll_event event = { .events = events, .data = { .fd = fd } };
    return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : errno;
}

int tern_close(int fd) { return close(fd) == 0 ? 0 : errno; }

int64_t tern_read_in_memory(int fd, void *bytes, size_t count, int64_t offset) {
    struct iovec part = { bytes, count };
    ssize_t got = preadv2(fd, &part, 1, offset, RWF_NOWAIT);
    if (got >= 0 || errno != EOPNOTSUPP) { return got; }
    struct statfs system;
    if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) { return -1; }
    return pread(fd, bytes, count, offset);
}

void tern_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void tern_keep_heap(void) {
    void *volatile block = malloc(1 << 20);
    free(block);
}

void tern_block_sigpipe(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, 0);
}

int64_t tern_thread_user_microseconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) { return 0; }
    return (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
}

int tern_has_input(int fd) {
    char byte;
    ssize_t count;
    do { count = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT); } while (count < 0 && errno == EINTR);
    return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

int tern_local_port(int fd) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_storage space;
    } address;
    socklen_t length = sizeof address;
    if (getsockname(fd, &address.any, &length) != 0) { return 0; }
    if (address.any.sa_family == AF_INET) { return ntohs(address.four.sin_port); }
    return address.any.sa_family == AF_INET6 ? ntohs(address.six.sin6_port) : 0;
}

int tern_descriptor_problem(void) {
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) { return errno; }
    close(fd);
    return 0;
}

curl_socket_t tern_open_socket(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
#else
// An empty translation unit on other systems. Apple's systems use the URLSession transport.
typedef int tern_curl_is_linux_only;
#endif
