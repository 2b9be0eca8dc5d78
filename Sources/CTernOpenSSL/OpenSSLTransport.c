// The transport below a session: a socket, or another session.
#if defined(__linux__)
#define _GNU_SOURCE
#include "OpenSSLTypes.h"
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static int read_socket(BIO *bio, char *bytes, int length) {
    tern_ssl_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (length <= 0) return 0;
    ssize_t count;
    do count = recv(session->descriptor, bytes, (size_t)length, 0);
    while (count < 0 && errno == EINTR);
    session->is_drained = count < length;
    if (count > 0) {
        session->count_without_data += (size_t)count;
        return (int)count;
    }
    if (count == 0) {
        session->is_at_end = 1;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        session->has_blocked = 1;
        BIO_set_retry_read(bio);
    } else {
        session->failure.system_error = errno;
    }
    return count == 0 ? 0 : -1;
}

static int write_socket(BIO *bio, const char *bytes, int length) {
    tern_ssl_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (length <= 0) return 0;
    ssize_t count;
    do count = send(session->descriptor, bytes, (size_t)length, MSG_NOSIGNAL);
    while (count < 0 && errno == EINTR);
    if (count >= 0) return (int)count;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        session->has_blocked = 1;
        BIO_set_retry_write(bio);
    } else {
        session->failure.system_error = errno;
    }
    return -1;
}

// Reports that the outer session must wait, or failed.
static int report_outer(BIO *bio, tern_ssl_session *session, tern_ssl_result result) {
    switch (result) {
    case TERN_SSL_WANTS_READ:
        session->has_blocked = 1;
        BIO_set_retry_read(bio);
        return -1;
    case TERN_SSL_WANTS_WRITE:
        session->has_blocked = 1;
        BIO_set_retry_write(bio);
        return -1;
    case TERN_SSL_CLEAN_END:
    case TERN_SSL_UNCLEAN_END:
        session->is_at_end = 1;
        return 0;
    default:
        session->failure.system_error = session->outer->failure.system_error;
        if (session->failure.system_error == 0) session->failure.system_error = EPIPE;
        return -1;
    }
}

// The outer session uses and empties the same queue of errors. An alert, for example, is written after its error is
// queued.
static void keep_error(tern_ssl_session *session) {
    if (session->hidden_error == 0) session->hidden_error = ERR_peek_error();
}

static int read_outer(BIO *bio, char *bytes, int length) {
    tern_ssl_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (length <= 0) return 0;
    size_t count = 0;
    keep_error(session);
    tern_ssl_result result = tern_ssl_read(session->outer, (uint8_t *)bytes, (size_t)length, &count);
    ERR_clear_error();
    session->is_drained = count < (size_t)length;
    session->count_without_data += count;
    return result == TERN_SSL_DONE ? (int)count : report_outer(bio, session, result);
}

static int write_outer(BIO *bio, const char *bytes, int length) {
    tern_ssl_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (length <= 0) return 0;
    size_t count = 0;
    keep_error(session);
    tern_ssl_result result = tern_ssl_write(session->outer, (const uint8_t *)bytes, (size_t)length, &count);
    ERR_clear_error();
    // The end of the connection of the outer session, while it waited for the rest of a message of the handshake.
    if (result == TERN_SSL_CLEAN_END || result == TERN_SSL_UNCLEAN_END) result = TERN_SSL_FAILED;
    return result == TERN_SSL_DONE ? (int)count : report_outer(bio, session, result);
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)number, (void)pointer;
    tern_ssl_session *session = BIO_get_data(bio);
    switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    // OpenSSL asks in order to tell the end of the connection from other failures.
    case BIO_CTRL_EOF: return session && session->is_at_end;
    default: return 0;
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *over_socket, *over_session;

static void create_methods(void) {
    int kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK;
    over_socket = BIO_meth_new(kind, "tern socket");
    over_session = BIO_meth_new(kind, "tern session");
    if (!over_socket || !over_session) return;
    BIO_meth_set_read(over_socket, read_socket);
    BIO_meth_set_write(over_socket, write_socket);
    BIO_meth_set_ctrl(over_socket, control);
    BIO_meth_set_read(over_session, read_outer);
    BIO_meth_set_write(over_session, write_outer);
    BIO_meth_set_ctrl(over_session, control);
}

BIO *tern_ssl_transport(tern_ssl_session *session) {
    pthread_once(&once, create_methods);
    BIO_METHOD *method = session->outer ? over_session : over_socket;
    BIO *bio = method ? BIO_new(method) : NULL;
    if (!bio) return NULL;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    return bio;
}

void tern_ssl_system_text(int number, char *text, size_t length) {
    if (length == 0) return;
    char buffer[128];
    // The form of GNU returns the text; that of POSIX, which musl has, writes it.
#if defined(__GLIBC__)
    const char *found = strerror_r(number, buffer, sizeof buffer);
#else
    const char *found = strerror_r(number, buffer, sizeof buffer) == 0 ? buffer : "unknown error";
#endif
    strncpy(text, found, length - 1);
    text[length - 1] = 0;
}
#else
typedef int tern_openssl_transport_is_for_linux;
#endif
