#include "include/CTernTestHTTP3.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../../Sources/CTernHTTP3/abi.h"

#define IDENTIFIER 18
#define REQUESTS 1024

typedef int (*encrypt_function)(
    uint8_t *, const void *aead, const void *context, const uint8_t *, size_t, const uint8_t *nonce, size_t,
    const uint8_t *header, size_t);
typedef int (*mask_function)(uint8_t *, const void *cipher, const void *context, const uint8_t *sample);

/// The functions of a server, which Tern does not need.
typedef struct {
    int (*server_new)(
        quic_conn **, const quic_cid *dcid, const quic_cid *scid, const quic_path *, uint32_t version,
        int callbacks_version, const quic_callbacks *, int settings_version, const quic_settings *, int params_version,
        const quic_transport_params *, const void *memory, void *user_data);
    int (*configure)(tls_session);
    tern_any client_initial;
    void (*request_identity)(tls_session, int);
    int (*enable_tickets)(tls_session, const tls_datum *key);
    size_t (*extend_requests)(quic_conn *, size_t);
} server_functions;

typedef struct chunk {
    struct chunk *next;
    int64_t stream;
    size_t length, taken;
    bool is_last, is_done, is_blocked;
    uint8_t bytes[];
} chunk;

struct tern_test_http3 {
    const quic_functions *f;
    quic_conn *quic;
    tls_session tls;
    tls_credentials credentials;
    quic_conn_ref reference;
    struct sockaddr_in local, remote;
    quic_cid client;
    uint8_t token[QUIC_TOKEN];
    /// Chunks are kept until the end: ngtcp2 refers to them.
    chunk *first, *last;
    struct {
        int64_t stream;
        uint64_t length;
    } requests[REQUESTS];
    size_t request_count;
    bool is_closed;
    // The keys of the packets to the client, as the last of them was protected.
    bool has_keys, awaits_mask;
    struct {
        void *handle;
        size_t overhead;
    } aead;
    void *aead_context, *cipher, *cipher_context;
    uint8_t vector[12];
    uint64_t number;
};

/// The server whose function runs, for callbacks that get no context.
static _Thread_local tern_test_http3 *current;

static bool find(server_functions *found) {
    static const char *const libraries[] = {"libngtcp2.so.16", "libngtcp2_crypto_gnutls.so.8", "libgnutls.so.30"};
    const struct {
        int library;
        const char *name;
        void *place;
    } symbols[] = {
        {0, "ngtcp2_conn_server_new_versioned", &found->server_new},
        {1, "ngtcp2_crypto_gnutls_configure_server_session", &found->configure},
        {1, "ngtcp2_crypto_recv_client_initial_cb", &found->client_initial},
        {2, "gnutls_certificate_server_set_request", &found->request_identity},
        {2, "gnutls_session_ticket_enable_server", &found->enable_tickets},
        {0, "ngtcp2_conn_extend_max_streams_bidi", &found->extend_requests},
    };
    if (!tern_h3_functions()) return false;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        // Loaded before, and never unloaded.
        void *library = dlopen(libraries[symbols[i].library], RTLD_NOW | RTLD_LOCAL);
        void *function = library ? dlsym(library, symbols[i].name) : NULL;
        if (library) dlclose(library);
        if (!function) return false;
        memcpy(symbols[i].place, &function, sizeof function);
    }
    return true;
}

static quic_path path_of(tern_test_http3 *server) {
    return (quic_path){
        {(struct sockaddr *)&server->local, sizeof server->local},
        {(struct sockaddr *)&server->remote, sizeof server->remote},
        NULL,
    };
}

static bool fill_random(uint8_t *bytes, size_t length) { return getrandom(bytes, length, 0) == (ssize_t)length; }

// MARK: Callbacks

static quic_conn *connection_of(quic_conn_ref *reference) {
    return ((tern_test_http3 *)reference->user_data)->quic;
}

static void did_ask_random(uint8_t *bytes, size_t length, const quic_rand_ctx *context) {
    (void)context;
    if (!fill_random(bytes, length)) memset(bytes, 0, length);
}

static int did_ask_identifier(quic_conn *quic, quic_cid *identifier, uint8_t *token, size_t length, void *user) {
    (void)quic, (void)user;
    if (length > QUIC_MAX_CID || !fill_random(identifier->data, length) || !fill_random(token, QUIC_TOKEN)) {
        return QUIC_ERR_CALLBACK_FAILURE;
    }
    identifier->datalen = length;
    return 0;
}

static int did_receive_stream_data(
    quic_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *bytes, size_t length, void *user,
    void *own) {
    (void)bytes, (void)own;
    tern_test_http3 *server = user;
    server->f->extend_stream(quic, id, length);
    server->f->extend_conn(quic, length);
    if (id & 2 || !(flags & QUIC_STREAM_FIN) || server->request_count == REQUESTS) return 0;
    server->requests[server->request_count].stream = id;
    server->requests[server->request_count++].length = offset + length;
    return 0;
}

static int did_close_stream(quic_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user, void *own) {
    (void)flags, (void)code, (void)user, (void)own;
    server_functions found;
    if (!(id & 3) && find(&found)) found.extend_requests(quic, 1);
    return 0;
}

/// Notes the keys of packets to the client. Those of the handshake have long headers.
static int encrypt(
    uint8_t *out, const void *aead, const void *context, const uint8_t *plain, size_t length, const uint8_t *nonce,
    size_t nonce_length, const uint8_t *header, size_t header_length) {
    tern_test_http3 *server = current;
    if (server && !(header[0] & 0x80) && nonce_length == sizeof server->vector) {
        size_t count = (header[0] & 3) + 1u;
        server->number = 0;
        for (size_t i = header_length - count; i < header_length; i++) {
            server->number = server->number << 8 | header[i];
        }
        memcpy(&server->aead, aead, sizeof server->aead);
        memcpy(&server->aead_context, context, sizeof server->aead_context);
        memcpy(server->vector, nonce, sizeof server->vector);
        for (int i = 0; i < 8; i++) server->vector[11 - i] ^= (uint8_t)(server->number >> (8 * i));
        server->awaits_mask = true;
    }
    return ((encrypt_function)tern_h3_functions()->encrypt)(
        out, aead, context, plain, length, nonce, nonce_length, header, header_length);
}

static int mask(uint8_t *out, const void *cipher, const void *context, const uint8_t *sample) {
    tern_test_http3 *server = current;
    if (server && server->awaits_mask) {
        memcpy(&server->cipher, cipher, sizeof server->cipher);
        memcpy(&server->cipher_context, context, sizeof server->cipher_context);
        server->awaits_mask = false;
        server->has_keys = true;
    }
    return ((mask_function)tern_h3_functions()->hp_mask)(out, cipher, context, sample);
}

// MARK: Life

static bool set_up_tls(
    tern_test_http3 *server, const server_functions *found, const tern_test_http3_options *options) {
    const quic_functions *f = server->f;
    static unsigned char h3[] = "h3";
    const tls_datum protocol = {h3, 2};
    // One key for all servers, so that a ticket of one serves for the next.
    static unsigned char key[64] = "a key of the tests for the tickets of all of their servers.....";
    const tls_datum tickets = {key, sizeof key};
    const tls_datum chain = {(unsigned char *)options->chain, (unsigned)options->chain_length};
    const tls_datum private = {(unsigned char *)options->key, (unsigned)options->key_length};
    // 1 is GNUTLS_SERVER.
    if (f->tls_init(&server->tls, 1)) {
        server->tls = NULL;
        return false;
    }
    if (f->tls_new_credentials(&server->credentials)) {
        server->credentials = NULL;
        return false;
    }
    server->reference = (quic_conn_ref){connection_of, server};
    f->tls_set_pointer(server->tls, &server->reference);
    // 1 is GNUTLS_CERT_REQUEST, without which a client shows no certificate.
    if (options->requests_identity) found->request_identity(server->tls, 1);
    return !found->configure(server->tls) &&
        !f->tls_set_identity(server->credentials, &chain, &private, TLS_PEM) &&
        !f->tls_priority(server->tls, "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE", NULL) &&
        !f->tls_alpn(server->tls, &protocol, 1, TLS_ALPN_MANDATORY) && !found->enable_tickets(server->tls, &tickets) &&
        !f->tls_set_credentials(server->tls, TLS_CRD_CERTIFICATE, server->credentials);
}

/// Reads the identifiers of an Initial packet (RFC 9000 §17.2.2).
static bool read_identifiers(const uint8_t *bytes, size_t length, quic_cid *server, quic_cid *client) {
    if (length < 7 || !(bytes[0] & 0x80) || bytes[5] > QUIC_MAX_CID) return false;
    server->datalen = bytes[5];
    size_t next = 6 + server->datalen;
    if (next >= length || bytes[next] > QUIC_MAX_CID || next + 1 + bytes[next] > length) return false;
    memcpy(server->data, bytes + 6, server->datalen);
    client->datalen = bytes[next];
    memcpy(client->data, bytes + next + 1, client->datalen);
    return true;
}

tern_test_http3 *tern_test_http3_new(
    const uint8_t *datagram, size_t length, tern_test_http3_options options, uint64_t now) {
    server_functions found;
    quic_cid original = {0}, own = {.datalen = IDENTIFIER};
    tern_test_http3 *server = find(&found) ? calloc(1, sizeof *server) : NULL;
    if (!server) return NULL;
    server->f = tern_h3_functions();
    const quic_functions *f = server->f;
    server->local = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(443)};
    server->remote = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1)};
    server->local.sin_addr.s_addr = server->remote.sin_addr.s_addr = htonl(0x7F000001);
    if (!read_identifiers(datagram, length, &original, &server->client) || !fill_random(own.data, own.datalen) ||
        !fill_random(server->token, sizeof server->token) || !set_up_tls(server, &found, &options)) {
        tern_test_http3_free(server);
        return NULL;
    }
    const quic_callbacks callbacks = {
        .recv_client_initial = found.client_initial,
        .recv_crypto_data = f->recv_crypto_data,
        .encrypt = (tern_any)encrypt,
        .decrypt = f->decrypt,
        .hp_mask = (tern_any)mask,
        .recv_stream_data = did_receive_stream_data,
        .stream_close = did_close_stream,
        .rand = did_ask_random,
        .get_new_connection_id = did_ask_identifier,
        .update_key = f->update_key_cb,
        .delete_crypto_aead_ctx = f->delete_aead,
        .delete_crypto_cipher_ctx = f->delete_cipher,
        .get_path_challenge_data = f->path_challenge,
        .version_negotiation = f->version_negotiation,
    };
    quic_settings settings;
    f->settings_default(1, &settings);
    settings.initial_ts = now;
    quic_transport_params params;
    f->params_default(1, &params);
    params.initial_max_stream_data_bidi_remote = options.stream_window;
    params.initial_max_stream_data_uni = 256 << 10;
    params.initial_max_data = options.connection_window;
    params.initial_max_streams_bidi = options.requests;
    params.initial_max_streams_uni = 10;
    params.max_idle_timeout = options.idle_timeout;
    params.original_dcid = original;
    params.original_dcid_present = 1;
    params.stateless_reset_token_present = 1;
    memcpy(params.stateless_reset_token, server->token, sizeof server->token);
    const quic_path path = path_of(server);
    if (found.server_new(
            &server->quic, &server->client, &own, &path, QUIC_VERSION_1, 1, &callbacks, 1, &settings, 1, &params, NULL,
            server)) {
        server->quic = NULL;
        tern_test_http3_free(server);
        return NULL;
    }
    f->set_tls(server->quic, server->tls);
    return server;
}

void tern_test_http3_free(tern_test_http3 *server) {
    if (!server) return;
    if (server->quic) server->f->conn_del(server->quic);
    if (server->tls) server->f->tls_deinit(server->tls);
    if (server->credentials) server->f->tls_free_credentials(server->credentials);
    while (server->first) {
        chunk *next = server->first->next;
        free(server->first);
        server->first = next;
    }
    free(server);
}

// MARK: Datagrams

int tern_test_http3_receive(
    tern_test_http3 *server, const uint8_t *datagram, size_t length, uint16_t port, uint64_t now) {
    server->remote.sin_port = htons(port);
    const quic_path path = path_of(server);
    const quic_pkt_info info = {0};
    current = server;
    int error = server->f->read_pkt(server->quic, &path, 1, &info, datagram, length, now);
    current = NULL;
    if (error == QUIC_ERR_DRAINING) server->is_closed = true;
    return error;
}

static ptrdiff_t write_chunk(
    tern_test_http3 *server, chunk *next, uint8_t *datagram, size_t capacity, uint64_t now) {
    quic_pkt_info info = {0};
    ssize_t taken = -1;
    quic_vec piece = {NULL, 0};
    if (next) piece = (quic_vec){next->bytes + next->taken, next->length - next->taken};
    ptrdiff_t written = server->f->writev_stream(
        server->quic, NULL, 1, &info, datagram, capacity, &taken, next && next->is_last ? QUIC_WRITE_FIN : 0,
        next ? next->stream : -1, next ? &piece : NULL, next ? 1 : 0, now);
    if (next && taken >= 0) {
        next->taken += (size_t)taken;
        next->is_done = next->taken == next->length;
    }
    return written;
}

/// Whether an earlier chunk of the stream is not written yet.
static bool is_behind(tern_test_http3 *server, const chunk *later) {
    for (chunk *each = server->first; each != later; each = each->next) {
        if (each->stream == later->stream && !each->is_done) return true;
    }
    return false;
}

ptrdiff_t tern_test_http3_send(tern_test_http3 *server, uint8_t *datagram, size_t capacity, uint64_t now) {
    current = server;
    ptrdiff_t written = 0;
    for (chunk *each = server->first; each; each = each->next) each->is_blocked = false;
    for (chunk *each = server->first; each && !written; each = each->next) {
        if (each->is_done || is_behind(server, each)) continue;
        written = write_chunk(server, each, datagram, capacity, now);
        if (written == QUIC_ERR_STREAM_DATA_BLOCKED) written = 0;
        if (written == QUIC_ERR_STREAM_SHUT_WR || written == QUIC_ERR_STREAM_NOT_FOUND) {
            each->is_done = true;
            written = 0;
        }
    }
    if (!written) written = write_chunk(server, NULL, datagram, capacity, now);
    if (written > 0) server->f->update_tx_time(server->quic, now);
    current = NULL;
    return written;
}

uint64_t tern_test_http3_deadline(tern_test_http3 *server) { return server->f->get_expiry(server->quic); }

int tern_test_http3_expire(tern_test_http3 *server, uint64_t now) {
    return server->f->handle_expiry(server->quic, now);
}

ptrdiff_t tern_test_http3_close(
    tern_test_http3 *server, uint64_t code, uint8_t *datagram, size_t capacity, uint64_t now) {
    quic_ccerr reason = {0};
    quic_pkt_info info = {0};
    server->f->error_of_application(&reason, code, NULL, 0);
    return server->f->write_close(server->quic, NULL, 1, &info, datagram, capacity, &reason, now);
}

// MARK: Streams

int64_t tern_test_http3_open(tern_test_http3 *server) {
    int64_t id = -1;
    int error = server->f->open_uni(server->quic, &id, NULL);
    return error ? error : id;
}

int tern_test_http3_write(
    tern_test_http3 *server, int64_t stream, const uint8_t *bytes, size_t length, int is_last) {
    chunk *added = calloc(1, sizeof *added + length);
    if (!added) return -1;
    added->stream = stream;
    added->length = length;
    added->is_last = is_last != 0;
    if (length) memcpy(added->bytes, bytes, length);
    if (server->last) server->last->next = added;
    else server->first = added;
    server->last = added;
    return 0;
}

int tern_test_http3_reset(tern_test_http3 *server, int64_t stream, uint64_t code) {
    return server->f->shutdown_write(server->quic, 0, stream, code);
}

int tern_test_http3_stop(tern_test_http3 *server, int64_t stream, uint64_t code) {
    return server->f->shutdown_read(server->quic, 0, stream, code);
}

int64_t tern_test_http3_request(tern_test_http3 *server, uint64_t *length) {
    if (!server->request_count) return -1;
    int64_t stream = server->requests[0].stream;
    if (length) *length = server->requests[0].length;
    server->request_count--;
    memmove(server->requests, server->requests + 1, server->request_count * sizeof server->requests[0]);
    return stream;
}

int tern_test_http3_update_key(tern_test_http3 *server, uint64_t now) {
    return server->f->update_key(server->quic, now);
}

int tern_test_http3_is_resumed(tern_test_http3 *server) { return server->f->tls_is_resumed(server->tls); }

size_t tern_test_http3_client_certificates(tern_test_http3 *server) {
    unsigned count = 0;
    return server->f->tls_peers(server->tls, &count) ? count : 0;
}

int tern_test_http3_is_closed(tern_test_http3 *server) { return server->is_closed; }

// MARK: Forged datagrams

ptrdiff_t tern_test_http3_seal(
    tern_test_http3 *server, const uint8_t *frames, size_t length, uint8_t *datagram, size_t capacity) {
    const size_t start = 1 + server->client.datalen, head = start + 4;
    uint8_t nonce[12], cover[16];
    if (!server->has_keys || capacity < head + length + 16) return -1;
    // Above all numbers that the server uses itself.
    uint64_t number = server->number += 1000;
    datagram[0] = 0x43;
    memcpy(datagram + 1, server->client.data, server->client.datalen);
    for (int i = 0; i < 4; i++) datagram[start + (size_t)i] = (uint8_t)(number >> (8 * (3 - i)));
    memcpy(nonce, server->vector, sizeof nonce);
    for (int i = 0; i < 8; i++) nonce[11 - i] ^= (uint8_t)(number >> (8 * i));
    if (((encrypt_function)server->f->encrypt)(
            datagram + head, &server->aead, &server->aead_context, frames, length, nonce, sizeof nonce, datagram,
            head) ||
        ((mask_function)server->f->hp_mask)(
            cover, &server->cipher, &server->cipher_context, datagram + start + 4)) {
        return -1;
    }
    datagram[0] ^= cover[0] & 0x1F;
    for (size_t i = 0; i < 4; i++) datagram[start + i] ^= cover[1 + i];
    return (ptrdiff_t)(head + length + 16);
}

ptrdiff_t tern_test_http3_stateless_reset(tern_test_http3 *server, uint8_t *datagram, size_t capacity) {
    const size_t length = 64;
    if (capacity < length || !fill_random(datagram, length)) return -1;
    datagram[0] = (datagram[0] & 0x3F) | 0x40;
    memcpy(datagram + length - QUIC_TOKEN, server->token, QUIC_TOKEN);
    return (ptrdiff_t)length;
}

ptrdiff_t tern_test_http3_forge(
    tern_test_http3 *server, const uint8_t *bytes, size_t length, uint8_t *datagram, size_t capacity) {
    const size_t total = 1 + server->client.datalen + length;
    if (capacity < total) return -1;
    datagram[0] = 0x40 | (length ? bytes[0] & 0x3F : 0);
    memcpy(datagram + 1, server->client.data, server->client.datalen);
    if (length) memcpy(datagram + 1 + server->client.datalen, bytes, length);
    return (ptrdiff_t)total;
}
#endif
