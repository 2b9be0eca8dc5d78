#include "CTernRedis.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

struct ctern_redis {
    redisContext *context;
    redisReplyObjectFunctions functions;
    redisReply *reply;
    size_t reply_limit;
    size_t received;
    int has_output;
    int idle_ms;
    int64_t deadline_ms;
};

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// The commands in use have no arrays as replies. An array could ask for memory that its elements never fill.
#if HIREDIS_MAJOR >= 1
static void *refuse_array(const redisReadTask *task, size_t count) {
#else
static void *refuse_array(const redisReadTask *task, int count) {
#endif
    (void)task;
    (void)count;
    return NULL;
}

ctern_redis *ctern_redis_connect(
    const char *path, const char *host, int port, int timeout_ms, size_t reply_limit, int *failure
) {
    ctern_redis *connection = calloc(1, sizeof(*connection));
    *failure = CTERN_REDIS_NO_MEMORY;
    if (!connection) return NULL;
    struct timeval timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1000};
    int64_t start = now_ms();
    redisContext *context = path ? redisConnectUnixWithTimeout(path, timeout) : redisConnectWithTimeout(host, port, timeout);
    if (!context) {
        free(connection);
        return NULL;
    }
    if (context->err) {
        *failure = now_ms() - start >= timeout_ms ? CTERN_REDIS_TIMED_OUT : CTERN_REDIS_CLOSED;
        redisFree(context);
        free(connection);
        return NULL;
    }
    // hiredis opens a socket that the programs that this process starts would inherit.
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    // This file waits by itself, because hiredis limits the time of each system call and not of an operation.
    int flags = fcntl(context->fd, F_GETFL);
    if (flags < 0 || fcntl(context->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        *failure = CTERN_REDIS_CLOSED;
        redisFree(context);
        free(connection);
        return NULL;
    }
    context->flags &= ~REDIS_BLOCK;
    connection->context = context;
    connection->reply_limit = reply_limit;
    connection->functions = *context->reader->fn;
    connection->functions.createArray = refuse_array;
    context->reader->fn = &connection->functions;
    *failure = CTERN_REDIS_OK;
    return connection;
}

void ctern_redis_close(ctern_redis *connection) {
    if (connection->reply) freeReplyObject(connection->reply);
    redisFree(connection->context);
    free(connection);
}

void ctern_redis_begin(ctern_redis *connection, int idle_ms, int total_ms) {
    connection->idle_ms = idle_ms;
    connection->deadline_ms = now_ms() + total_ms;
    connection->received = 0;
}

int ctern_redis_append(ctern_redis *connection, const uint8_t *bytes, const size_t *lengths, int count) {
    const char *arguments[16];
    if (count < 1 || count > 16) return CTERN_REDIS_MALFORMED;
    const char *next = (const char *)bytes;
    for (int index = 0; index < count; index++) {
        arguments[index] = next;
        next += lengths[index];
    }
    if (redisAppendCommandArgv(connection->context, count, arguments, lengths) != REDIS_OK) return CTERN_REDIS_NO_MEMORY;
    connection->has_output = 1;
    return CTERN_REDIS_OK;
}

static int wait_for(ctern_redis *connection, short events) {
    for (;;) {
        int64_t left = connection->deadline_ms - now_ms();
        if (left <= 0) return CTERN_REDIS_TIMED_OUT;
        struct pollfd item = {connection->context->fd, events, 0};
        int result = poll(&item, 1, left < connection->idle_ms ? (int)left : connection->idle_ms);
        if (result > 0) return CTERN_REDIS_OK;
        if (result == 0) return CTERN_REDIS_TIMED_OUT;
        if (errno != EINTR) return CTERN_REDIS_CLOSED;
    }
}

static int flush_output(ctern_redis *connection) {
    while (connection->has_output) {
        int is_done = 0;
        if (redisBufferWrite(connection->context, &is_done) != REDIS_OK) return CTERN_REDIS_CLOSED;
        if (is_done) {
            connection->has_output = 0;
            break;
        }
        int result = wait_for(connection, POLLOUT);
        if (result != CTERN_REDIS_OK) return result;
    }
    return CTERN_REDIS_OK;
}

static int receive(ctern_redis *connection) {
    int result = wait_for(connection, POLLIN);
    if (result != CTERN_REDIS_OK) return result;
    redisReader *reader = connection->context->reader;
    size_t before = reader->len;
    if (redisBufferRead(connection->context) != REDIS_OK) {
        int error = connection->context->err;
        return error == REDIS_ERR_IO || error == REDIS_ERR_EOF ? CTERN_REDIS_CLOSED : CTERN_REDIS_MALFORMED;
    }
    if (reader->len > before) connection->received += reader->len - before;
    return connection->received > connection->reply_limit ? CTERN_REDIS_MALFORMED : CTERN_REDIS_OK;
}

static int read_reply(const redisReply *own, ctern_redis_reply *reply) {
    memset(reply, 0, sizeof(*reply));
    switch (own->type) {
    case REDIS_REPLY_NIL: reply->type = CTERN_REDIS_NIL; return CTERN_REDIS_OK;
    case REDIS_REPLY_INTEGER:
        reply->type = CTERN_REDIS_INTEGER;
        reply->integer = own->integer;
        return CTERN_REDIS_OK;
    case REDIS_REPLY_STRING: reply->type = CTERN_REDIS_BYTES; break;
    case REDIS_REPLY_STATUS: reply->type = CTERN_REDIS_STATUS; break;
    case REDIS_REPLY_ERROR: reply->type = CTERN_REDIS_ERROR; break;
    default: return CTERN_REDIS_MALFORMED;
    }
    reply->bytes = (const uint8_t *)own->str;
    reply->length = own->len;
    return CTERN_REDIS_OK;
}

int ctern_redis_next(ctern_redis *connection, ctern_redis_reply *reply) {
    if (connection->reply) freeReplyObject(connection->reply);
    connection->reply = NULL;
    int result = flush_output(connection);
    while (result == CTERN_REDIS_OK) {
        void *own = NULL;
        if (redisGetReplyFromReader(connection->context, &own) != REDIS_OK) return CTERN_REDIS_MALFORMED;
        if (own) {
            connection->reply = own;
            return read_reply(own, reply);
        }
        result = receive(connection);
    }
    return result;
}

struct start {
    void (*body)(void *);
    void *argument;
};

static void *enter(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    // hiredis writes to a socket that the server may have closed.
    sigset_t signals;
    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    start.body(start.argument);
    return NULL;
}

int ctern_redis_start_thread(void (*body)(void *), void *argument) {
    struct start *start = malloc(sizeof(*start));
    if (!start) return ENOMEM;
    start->body = body;
    start->argument = argument;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int code = pthread_create(&thread, &attributes, enter, start);
    pthread_attr_destroy(&attributes);
    if (code) free(start);
    return code;
}

size_t ctern_redis_deflate(const uint8_t *bytes, size_t count, uint8_t *target, size_t capacity) {
    uLongf length = capacity;
    return compress2(target, &length, bytes, count, 1) == Z_OK ? length : 0;
}

int ctern_redis_inflate(const uint8_t *bytes, size_t length, uint8_t *target, size_t count) {
    z_stream stream;
    memset(&stream, 0, sizeof(stream));
    if (length > UINT32_MAX || count > UINT32_MAX || inflateInit(&stream) != Z_OK) return 0;
    stream.next_in = (Bytef *)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = target;
    stream.avail_out = (uInt)count;
    int result = inflate(&stream, Z_FINISH);
    int is_whole = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole;
}

uint32_t ctern_redis_checksum(const uint8_t *bytes, size_t count) {
    uLong sum = crc32(0, NULL, 0);
    while (count > 0) {
        uInt part = count > 1 << 30 ? 1 << 30 : (uInt)count;
        sum = crc32(sum, bytes, part);
        bytes += part;
        count -= part;
    }
    return (uint32_t)sum;
}
