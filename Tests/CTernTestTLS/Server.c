// A server over a non-blocking socket.
#if defined(__linux__)
#define _GNU_SOURCE
#include "Identities.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct tern_test_settings {
    SSL_CTX *context;
    char *protocol;
    int forces_protocol;
    uint8_t *staple;
    size_t staple_count;
};

struct tern_test_server {
    SSL *ssl;
    int descriptor;
    // The number of bytes that may still be sent. Later ones are dropped, or kept.
    size_t limit;
    int keeps;
    uint8_t kept[8192];
    size_t kept_count;
};

static int choose_protocol(
    SSL *ssl, const unsigned char **chosen, unsigned char *count, const unsigned char *offered, unsigned length,
    void *argument) {
    (void)ssl;
    tern_test_settings *settings = argument;
    size_t own = strlen(settings->protocol);
    for (unsigned index = 0; index < length; index += 1u + offered[index]) {
        if (settings->forces_protocol || (offered[index] == own && !memcmp(offered + index + 1, settings->protocol, own))) {
            *chosen = (const unsigned char *)settings->protocol;
            *count = (unsigned char)own;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static int send_staple(SSL *ssl, void *argument) {
    tern_test_settings *settings = argument;
    uint8_t *copy = OPENSSL_memdup(settings->staple, settings->staple_count);
    if (!copy) return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)settings->staple_count);
    return SSL_TLSEXT_ERR_OK;
}

tern_test_settings *tern_test_settings_create(tern_test_options options) {
    tern_test_settings *settings = calloc(1, sizeof *settings);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!settings || !context) return NULL;
    settings->context = context;
    if (options.version) {
        int version = options.version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION;
        SSL_CTX_set_min_proto_version(context, version);
        SSL_CTX_set_max_proto_version(context, version);
    }
    SSL_CTX_use_certificate(context, options.identity->certificate);
    SSL_CTX_use_PrivateKey(context, options.identity->key);
    if (options.intermediate) SSL_CTX_add1_chain_cert(context, options.intermediate->certificate);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"tern", 4);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (options.client_authority) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), options.client_authority->certificate);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    if (options.protocol) {
        settings->protocol = strdup(options.protocol);
        settings->forces_protocol = options.forces_protocol;
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, settings);
    }
    if (options.staple_count) {
        settings->staple = malloc(options.staple_count);
        if (!settings->staple) return NULL;
        memcpy(settings->staple, options.staple, options.staple_count);
        settings->staple_count = options.staple_count;
        SSL_CTX_set_tlsext_status_cb(context, send_staple);
        SSL_CTX_set_tlsext_status_arg(context, settings);
    }
    return settings;
}

void tern_test_settings_free(tern_test_settings *settings) {
    if (!settings) return;
    SSL_CTX_free(settings->context);
    free(settings->protocol);
    free(settings->staple);
    free(settings);
}

// A transport with MSG_NOSIGNAL, so that only the client's own code can cause a SIGPIPE in a test.
static int send_bytes(BIO *bio, const char *bytes, int count) {
    BIO_clear_retry_flags(bio);
    tern_test_server *server = BIO_get_data(bio);
    size_t length = (size_t)count < server->limit ? (size_t)count : server->limit;
    size_t rest = (size_t)count - length;
    if (server->keeps && rest <= sizeof server->kept - server->kept_count) {
        memcpy(server->kept + server->kept_count, bytes + length, rest);
        server->kept_count += rest;
    }
    if (length == 0) return count;
    ssize_t sent = send(server->descriptor, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
    if (sent < 0 || server->limit == SIZE_MAX) return (int)sent;
    server->limit -= (size_t)sent;
    return server->limit == 0 ? count : (int)sent;
}

static int receive_bytes(BIO *bio, char *bytes, int count) {
    BIO_clear_retry_flags(bio);
    tern_test_server *server = BIO_get_data(bio);
    ssize_t received = recv(server->descriptor, bytes, (size_t)count, 0);
    if (received < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    return (int)received;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method;

static void create_method(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "test");
    BIO_meth_set_write(method, send_bytes);
    BIO_meth_set_read(method, receive_bytes);
    BIO_meth_set_ctrl(method, control);
}

tern_test_server *tern_test_server_create(tern_test_settings *settings, int descriptor) {
    pthread_once(&once, create_method);
    tern_test_server *server = calloc(1, sizeof *server);
    BIO *bio = BIO_new(method);
    SSL *ssl = SSL_new(settings->context);
    if (!server || !bio || !ssl) return NULL;
    server->descriptor = descriptor;
    server->limit = SIZE_MAX;
    BIO_set_data(bio, server);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    server->ssl = ssl;
    return server;
}

void tern_test_server_free(tern_test_server *server) {
    if (!server) return;
    SSL_free(server->ssl);
    free(server);
}

static int is_waiting(tern_test_server *server, int result) {
    int error = SSL_get_error(server->ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

int tern_test_server_handshake(tern_test_server *server) {
    ERR_clear_error();
    int result = SSL_do_handshake(server->ssl);
    if (result == 1) return 1;
    return is_waiting(server, result) ? 0 : -1;
}

long tern_test_server_read(tern_test_server *server, uint8_t *bytes, size_t length) {
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_read_ex(server->ssl, bytes, length, &count);
    if (result == 1) return (long)count;
    if (is_waiting(server, result)) return 0;
    return SSL_get_error(server->ssl, result) == SSL_ERROR_ZERO_RETURN ? -2 : -1;
}

long tern_test_server_write(tern_test_server *server, const uint8_t *bytes, size_t length) {
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_write_ex(server->ssl, bytes, length, &count);
    if (result == 1) return (long)count;
    return is_waiting(server, result) ? 0 : -1;
}

void tern_test_server_close(tern_test_server *server) { SSL_shutdown(server->ssl); }

void tern_test_server_limit_output(tern_test_server *server, size_t limit) { server->limit = limit; }

void tern_test_server_hold_output(tern_test_server *server, size_t limit) {
    server->limit = limit;
    server->keeps = 1;
}

int tern_test_server_release_output(tern_test_server *server) {
    ssize_t sent = send(server->descriptor, server->kept, server->kept_count, MSG_NOSIGNAL);
    int is_whole = sent >= 0 && (size_t)sent == server->kept_count;
    server->limit = SIZE_MAX;
    server->keeps = 0;
    server->kept_count = 0;
    return is_whole;
}

static int enlarge_ticket(SSL *ssl, void *argument) {
    (void)argument;
    static const uint8_t data[1000] = {7};
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data, sizeof data);
}

int tern_test_server_send_large_ticket(tern_test_server *server) {
    SSL_CTX_set_session_ticket_cb(SSL_get_SSL_CTX(server->ssl), enlarge_ticket, NULL, NULL);
    SSL_set_max_send_fragment(server->ssl, 512);
    return SSL_new_session_ticket(server->ssl) == 1 && SSL_do_handshake(server->ssl) == 1;
}

int tern_test_server_update_keys(tern_test_server *server) {
    return SSL_key_update(server->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(server->ssl) == 1;
}

int tern_test_server_request_keys(tern_test_server *server) {
    return SSL_key_update(server->ssl, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(server->ssl) == 1;
}

const char *tern_test_server_name(const tern_test_server *server) {
    return SSL_get_servername(server->ssl, TLSEXT_NAMETYPE_host_name);
}

int tern_test_server_is_resumed(const tern_test_server *server) { return SSL_session_reused(server->ssl); }

int tern_test_server_has_client(const tern_test_server *server) { return SSL_get0_peer_certificate(server->ssl) != NULL; }
#else
typedef int tern_test_server_is_for_linux;
#endif
