// The server of the upload scenario: reads a request's body at full speed, throws it away, and answers with
// the number of bytes it got. It prints its port and serves until its standard input ends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024 };

#if defined(__linux__)
enum { DISCARD = MSG_TRUNC | MSG_WAITALL };  // TCP drops the bytes in the kernel: the sink costs next to nothing
#else
enum { DISCARD = MSG_WAITALL };
#endif

static const char *header(const char *head, const char *name) {
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, strlen(name)) == 0) return line + 2 + strlen(name);
    }
    return NULL;
}

static int say(int fd, const char *text) {
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/// Serves one request; false when the connection is over.
static int serve(int fd, char *buffer) {
    size_t filled = 0;
    char *end = NULL;
    while (!end) {
        if (filled == CHUNK - 1) return 0;
        ssize_t got = recv(fd, buffer + filled, CHUNK - 1 - filled, 0);
        if (got <= 0) return 0;
        filled += (size_t)got;
        buffer[filled] = 0;
        end = strstr(buffer, "\r\n\r\n");
    }
    end[2] = 0;  // the search for a header stops here
    const char *length = header(buffer, "content-length:");
    if (header(buffer, "transfer-encoding:")) {
        say(fd, "HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return 0;
    }
    long long total = length ? atoll(length) : 0;
    long long left = total - (long long)(filled - (size_t)(end + 4 - buffer));
    if (header(buffer, "expect:") && !say(fd, "HTTP/1.1 100 Continue\r\n\r\n")) return 0;
    while (left > 0) {
        ssize_t got = recv(fd, buffer, left < CHUNK ? (size_t)left : CHUNK, DISCARD);
        if (got <= 0) return 0;
        left -= got;
    }
    char answer[160], body[32];
    int size = snprintf(body, sizeof body, "%lld", total);
    snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
             size, body);
    return say(fd, answer);
}

static void *connection(void *context) {
    int fd = (int)(intptr_t)context;
    char *buffer = malloc(CHUNK);
    while (buffer && serve(fd, buffer)) {}
    free(buffer);
    close(fd);
    return NULL;
}

_Noreturn static void *accept_all(void *context) {
    int listener = (int)(intptr_t)context, one = 1;
    for (;;) {  // until the process ends
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_t thread;
        if (pthread_create(&thread, NULL, connection, (void *)(intptr_t)fd) == 0) pthread_detach(thread);
        else close(fd);
    }
}

int main(void) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGPIPE, SIG_IGN);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 512) != 0
        || getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        perror("bench-sink");
        return 1;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener) != 0) return 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
