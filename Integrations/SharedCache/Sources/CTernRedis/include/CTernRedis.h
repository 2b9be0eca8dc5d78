// A connection to a Redis or Valkey server through hiredis, whose calls block for a limited time, and the compression of its
// values through zlib. Each connection is used by one thread at a time.
#ifndef CTERNREDIS_H
#define CTERNREDIS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctern_redis ctern_redis;

enum {
    CTERN_REDIS_OK = 0,
    CTERN_REDIS_TIMED_OUT = 1,
    // The connection could not be made, or was closed.
    CTERN_REDIS_CLOSED = 2,
    // The server sent what is no reply, an array, or more than the limit.
    CTERN_REDIS_MALFORMED = 3,
    CTERN_REDIS_NO_MEMORY = 4,
};

enum {
    CTERN_REDIS_NIL = 0,
    CTERN_REDIS_BYTES = 1,
    CTERN_REDIS_INTEGER = 2,
    CTERN_REDIS_STATUS = 3,
    CTERN_REDIS_ERROR = 4,
};

typedef struct {
    int type;
    long long integer;
    // Of bytes, a status and an error. Valid until the next call on the connection.
    const uint8_t *bytes;
    size_t length;
} ctern_redis_reply;

// Connects to a Unix socket, or to a host and a port if `path` is NULL. The name of a host is resolved without a limit of time.
// `reply_limit` is the greatest number of bytes that the server may send between two calls of ctern_redis_begin.
ctern_redis *ctern_redis_connect(
    const char *path, const char *host, int port, int timeout_ms, size_t reply_limit, int *failure);

void ctern_redis_close(ctern_redis *connection);

// Begins a pipeline of commands: each byte has to come within `idle_ms`, and the end within `total_ms`.
void ctern_redis_begin(ctern_redis *connection, int idle_ms, int total_ms);

// Adds a command whose arguments lie one after the other.
int ctern_redis_append(ctern_redis *connection, const uint8_t *bytes, const size_t *lengths, int count);

// Sends what was added, and waits for the next reply. After a failure, the connection can only be closed.
int ctern_redis_next(ctern_redis *connection, ctern_redis_reply *reply);

// Runs a function on a new thread that no signal reaches, SIGPIPE included, and that ends with it. Returns 0, or the error number.
int ctern_redis_start_thread(void (*body)(void *), void *argument);

// Compresses bytes. Returns the number of bytes written, or 0 if they do not fit.
size_t ctern_redis_deflate(const uint8_t *bytes, size_t count, uint8_t *target, size_t capacity);

// Decompresses bytes. Returns 1 if they are the whole compressed form of exactly `count` bytes.
int ctern_redis_inflate(const uint8_t *bytes, size_t length, uint8_t *target, size_t count);

uint32_t ctern_redis_checksum(const uint8_t *bytes, size_t count);

#endif
