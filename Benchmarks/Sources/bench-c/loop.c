#include "bench.h"

#if defined(__linux__)
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/// The registration of a descriptor in epoll. It lags behind the requests of libcurl on purpose.
struct descriptor {
    uint32_t registered;  // the events in the epoll set; 0: not in it
    bool ours;            // opened by us, so its close is seen by us
    bool idle;            // libcurl has no transfer on it
};

struct loop {
    CURLM *multi;
    int epoll;
    long live;
    double deadline;      // seconds, monotonic; negative: no timer
    loop_done done;
    void *context;
    struct descriptor *table;
    int count;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct descriptor *at(struct loop *loop, int fd) {
    if (fd >= loop->count) {
        int count = fd * 2 + 64;
        struct descriptor *table = realloc(loop->table, (size_t)count * sizeof *table);
        if (!table) abort();
        for (int i = loop->count; i < count; i++) table[i] = (struct descriptor){ 0 };
        loop->table = table;
        loop->count = count;
    }
    return &loop->table[fd];
}

static void forget(struct loop *loop, int fd) {
    struct descriptor *d = at(loop, fd);
    if (d->registered) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
    d->registered = 0;
}

/// Lazy: between two requests a pooled connection stays in the epoll set with the same mask, so that the
/// usual request costs no epoll_ctl at all.
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *unused) {
    struct loop *loop = context;
    struct descriptor *d = at(loop, fd);
    (void)easy, (void)unused;
    if (what == CURL_POLL_REMOVE) {
        d->idle = true;
        if (!d->ours) forget(loop, fd);  // e.g. the resolver's pipe, closed behind our back
        return 0;
    }
    uint32_t wanted = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    d->idle = false;
    if (d->registered == wanted) return 0;
    struct epoll_event event = { .events = wanted, .data.fd = fd };
    int operation = d->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    d->registered = wanted;
    return epoll_ctl(loop->epoll, operation, fd, &event);
}

static int on_timer(CURLM *multi, long milliseconds, void *context) {
    struct loop *loop = context;
    (void)multi;
    loop->deadline = milliseconds < 0 ? -1 : milliseconds == 0 ? 0 : now() + (double)milliseconds / 1e3;
    return 0;
}

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd >= 0) *at(context, fd) = (struct descriptor){ .ours = true };
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_close(void *context, curl_socket_t fd) {
    forget(context, fd);
    *at(context, fd) = (struct descriptor){ 0 };
    return close(fd);
}

struct loop *loop_open(long connections, long limit, loop_done done, void *context) {
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop) abort();
    *loop = (struct loop){ .multi = curl_multi_init(), .epoll = epoll_create1(EPOLL_CLOEXEC), .deadline = -1,
                           .done = done, .context = context };
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, connections + 8);
    curl_multi_setopt(loop->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 256L);
    if (limit) curl_multi_setopt(loop->multi, CURLMOPT_MAX_HOST_CONNECTIONS, limit);
    return loop;
}

/// The loop's own options of an easy handle, set once for its life.
void loop_configure(struct loop *loop, CURL *easy) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, loop);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop);
}

void loop_add(struct loop *loop, CURL *easy) {
    loop->live++;
    curl_multi_add_handle(loop->multi, easy);
}

static void serve(struct loop *loop, const struct epoll_event *event) {
    int fd = event->data.fd, running, mask = 0;
    struct descriptor *d = at(loop, fd);
    if (d->idle) { forget(loop, fd); return; }  // the server closed it; libcurl finds out when it picks it
    if (event->events & (EPOLLIN | EPOLLHUP)) mask |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
    if (event->events & EPOLLERR) mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(loop->multi, fd, mask, &running);
}

static void drain(struct loop *loop) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;
        curl_multi_remove_handle(loop->multi, easy);
        loop->live--;
        loop->done(loop->context, easy, result);
    }
}

/// Serves until no transfer is left. New transfers start in the turn that ended the old ones, before the
/// next epoll_wait.
void loop_run(struct loop *loop) {
    struct epoll_event events[256];
    int running;
    while (loop->live > 0) {
        while (loop->deadline >= 0 && (loop->deadline == 0 || loop->deadline <= now())) {
            loop->deadline = -1;
            curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
            drain(loop);
        }
        if (loop->live == 0) break;
        int timeout = loop->deadline < 0 ? -1 : (int)((loop->deadline - now()) * 1e3) + 1;
        int count = epoll_wait(loop->epoll, events, 256, timeout);
        if (count < 0 && errno != EINTR) abort();
        for (int i = 0; i < count; i++) serve(loop, &events[i]);
        drain(loop);
    }
}

void loop_close(struct loop *loop) {
    curl_multi_cleanup(loop->multi);
    close(loop->epoll);
    free(loop->table);
    free(loop);
}
#endif
