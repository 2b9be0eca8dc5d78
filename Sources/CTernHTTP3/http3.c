// One connection: ngtcp2 moves the datagrams, nghttp3 reads and writes the frames, GnuTLS does the handshake.
#include "abi.h"

#if defined(__linux__)
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "include/CTernHTTP3.h"

/// The bytes of a request's body that are asked for at a time.
#define CHUNK (16 << 10)
/// The greatest size of a datagram, above that of every path that is probed.
#define DATAGRAM 2048
/// The number of lists in which streams are found by their identifiers; a power of two.
#define PLACES 256
/// The number of datagrams that one system call can send (UDP_MAX_SEGMENTS is 64 in older kernels).
#define SEGMENTS 64
/// The alerts of TLS that are used here (RFC 8446 §6).
#define ALERT_BAD_CERTIFICATE 42
#define NO_ERROR 0x100
#define INTERNAL_ERROR 0x102
#define MESSAGE_ERROR 0x10E

/// Bytes of a request's body, which nghttp3 refers to until the server has acknowledged them.
typedef struct chunk {
    struct chunk *next;
    size_t length;
    uint8_t bytes[];
} chunk;

typedef struct stream {
    int64_t id;
    struct stream *next, *previous;
    /// The next one with the same place, and the next one whose end was asked for. A link is the address of the pointer
    /// to this stream; NULL if it is in no such list.
    struct stream *next_found, *next_canceled;
    struct stream **found_link, **canceled_link;
    chunk *first, *last;
    /// The number of acknowledged bytes of the first chunk.
    uint64_t acknowledged;
    bool is_sent;
    /// Whether the fields of the response are of no use any more.
    bool is_dropped;
    bool is_canceled;
    bool is_body_canceled;
    uint64_t code;
} stream;

struct tern_h3 {
    const quic_functions *f;
    tern_h3_callbacks callbacks;
    void *context;
    quic_conn *quic;
    h3_conn *http;
    tls_session tls;
    tls_credentials credentials;
    quic_conn_ref reference;
    struct sockaddr_storage local, remote;
    socklen_t local_length, remote_length;
    stream *streams;
    stream *places[PLACES];
    /// The streams that wait for their end until the callbacks return.
    stream *canceled;
    uint64_t head_limit;
    /// The number of calls of the libraries that are under way. A stream is not ended within one.
    unsigned depth;
    bool is_verified;
    bool is_connected;
    bool was_reset;
    /// The alert that refuses the certificates; 0 for none.
    uint8_t alert;
    /// The code of HTTP/3 with which the connection ends; 0 for none.
    uint64_t code;
    /// The error of ngtcp2 with which the connection ends; 0 for none.
    int error;
    tern_h3_failure failure;
    /// A datagram that did not fit into the last batch.
    uint8_t spill[DATAGRAM];
    size_t spill_length;
    uint8_t spill_ecn;
};

static quic_path path_of(tern_h3 *session) {
    return (quic_path){
        {(struct sockaddr *)&session->local, session->local_length},
        {(struct sockaddr *)&session->remote, session->remote_length},
        NULL,
    };
}

// MARK: The end

static void set_reason(tern_h3_failure *failure, const void *bytes, size_t length) {
    if (length > sizeof failure->reason) length = sizeof failure->reason;
    if (length) memcpy(failure->reason, bytes, length);
    failure->reason_length = length;
}

/// Records the first reason for which the connection ends. Returns -1.
static int fail(tern_h3 *session, int error) {
    const quic_functions *f = session->f;
    tern_h3_failure *failure = &session->failure;
    if (failure->cause != TERN_H3_ALIVE) return -1;
    const char *text = f->error_text(error);
    session->error = error;
    failure->cause = TERN_H3_LOCAL;
    if (session->alert) {
        failure->cause = TERN_H3_LOCAL_ALERT;
        failure->code = session->alert;
        return -1;
    }
    switch (error) {
    case QUIC_ERR_DRAINING: {
        if (session->was_reset) {
            failure->cause = TERN_H3_STATELESS_RESET;
            return -1;
        }
        const quic_ccerr *peer = f->peer_error(session->quic);
        failure->cause = peer->type == 1 ? TERN_H3_PEER_APPLICATION : TERN_H3_PEER_TRANSPORT;
        failure->code = peer->error_code;
        set_reason(failure, peer->reason, peer->reasonlen);
        return -1;
    }
    case QUIC_ERR_CRYPTO:
        failure->cause = TERN_H3_LOCAL_ALERT;
        failure->code = f->tls_alert(session->quic);
        break;
    case QUIC_ERR_HANDSHAKE_TIMEOUT: failure->cause = TERN_H3_HANDSHAKE_TIMEOUT; return -1;
    case QUIC_ERR_IDLE_CLOSE: failure->cause = TERN_H3_IDLE; return -1;
    case QUIC_ERR_VERSION: case QUIC_ERR_VERSION_FAILED: failure->cause = TERN_H3_VERSION; return -1;
    case QUIC_ERR_CALLBACK_FAILURE:
        failure->code = session->code;
        // The text was recorded where the callback failed.
        if (failure->reason_length) return -1;
        break;
    default: break;
    }
    if (text) set_reason(failure, text, strlen(text));
    return -1;
}

/// Ends the connection because of a rule of HTTP/3. Returns the error for ngtcp2.
static int fail_http(tern_h3 *session, int error) {
    if (!session->code) {
        session->code = session->f->h3_error_code(error);
        const char *text = session->f->h3_error_text(error);
        if (text) set_reason(&session->failure, text, strlen(text));
    }
    return QUIC_ERR_CALLBACK_FAILURE;
}

void tern_h3_get_failure(const tern_h3 *session, tern_h3_failure *failure) { *failure = session->failure; }

// MARK: Streams

static stream *add_stream(tern_h3 *session) {
    stream *added = calloc(1, sizeof *added);
    if (!added) return NULL;
    added->id = -1;
    added->next = session->streams;
    if (added->next) added->next->previous = added;
    session->streams = added;
    return added;
}

static void free_stream(tern_h3 *session, stream *ended) {
    while (ended->first) {
        chunk *next = ended->first->next;
        free(ended->first);
        ended->first = next;
    }
    if (ended->found_link) *ended->found_link = ended->next_found;
    if (ended->next_found) ended->next_found->found_link = ended->found_link;
    if (ended->canceled_link) *ended->canceled_link = ended->next_canceled;
    if (ended->next_canceled) ended->next_canceled->canceled_link = ended->canceled_link;
    if (ended->previous) ended->previous->next = ended->next;
    else session->streams = ended->next;
    if (ended->next) ended->next->previous = ended->previous;
    free(ended);
}

/// The list of a stream. The identifiers of requests are multiples of 4.
static stream **place_of(tern_h3 *session, int64_t id) { return &session->places[(id >> 2) & (PLACES - 1)]; }

/// Gives a stream its identifier, by which it is found from now on.
static void name_stream(tern_h3 *session, stream *own, int64_t id) {
    stream **place = place_of(session, id);
    own->id = id;
    own->next_found = *place;
    own->found_link = place;
    if (*place) (*place)->found_link = &own->next_found;
    *place = own;
}

static stream *find_stream(tern_h3 *session, int64_t id) {
    stream *found = *place_of(session, id);
    while (found && found->id != id) found = found->next_found;
    return found;
}

/// Lets a stream end, or the request's side of it, when the callbacks have returned.
static void list_canceled(tern_h3 *session, stream *own) {
    if (own->canceled_link) return;
    own->next_canceled = session->canceled;
    own->canceled_link = &session->canceled;
    if (session->canceled) session->canceled->canceled_link = &own->next_canceled;
    session->canceled = own;
}

/// Ends the streams whose end was asked for within a callback.
static void end_canceled(tern_h3 *session) {
    if (session->depth) return;
    const quic_functions *f = session->f;
    while (session->canceled) {
        stream *each = session->canceled;
        session->canceled = each->next_canceled;
        if (each->next_canceled) each->next_canceled->canceled_link = &session->canceled;
        each->next_canceled = NULL;
        each->canceled_link = NULL;
        if (each->is_canceled) {
            each->is_canceled = false;
            f->shutdown_read(session->quic, 0, each->id, each->code);
            f->h3_shutdown_read(session->http, each->id);
            each->is_body_canceled = true;
        }
        if (each->is_body_canceled) {
            each->is_body_canceled = false;
            f->shutdown_write(session->quic, 0, each->id, each->code);
            f->h3_shutdown_write(session->http, each->id);
        }
    }
}

// MARK: Callbacks of nghttp3

#define SESSION ((tern_h3 *)user)
#define STREAM ((stream *)own)
/// Calls the owner. A stream that it ends is ended when all callbacks have returned.
#define CALL(name, ...) (SESSION->callbacks.name(SESSION->context, __VA_ARGS__))

static int did_acknowledge(h3_conn *conn, int64_t id, uint64_t count, void *user, void *own) {
    (void)conn, (void)id, (void)user;
    if (!own) return 0;
    STREAM->acknowledged += count;
    while (STREAM->first && STREAM->acknowledged >= STREAM->first->length) {
        chunk *done = STREAM->first;
        STREAM->acknowledged -= done->length;
        STREAM->first = done->next;
        if (!STREAM->first) STREAM->last = NULL;
        free(done);
    }
    return 0;
}

static int did_close_stream(h3_conn *conn, int64_t id, uint64_t code, void *user, void *own) {
    (void)conn;
    if (own) CALL(closed, id, code);
    return 0;
}

static int did_receive_data(h3_conn *conn, int64_t id, const uint8_t *bytes, size_t length, void *user, void *own) {
    (void)conn;
    // A stream that is not read must not hold back the others.
    SESSION->f->extend_conn(SESSION->quic, length);
    if (own && !STREAM->is_dropped) CALL(data, id, bytes, length);
    return 0;
}

static int did_consume(h3_conn *conn, int64_t id, size_t count, void *user, void *own) {
    (void)conn, (void)own;
    SESSION->f->extend_stream(SESSION->quic, id, count);
    SESSION->f->extend_conn(SESSION->quic, count);
    return 0;
}

static int begin(int64_t id, int is_trailer, void *user, void *own) {
    if (own && !STREAM->is_dropped) CALL(begin_head, id, is_trailer);
    return 0;
}

static int field(int64_t id, h3_rcbuf *name, h3_rcbuf *value, void *user, void *own) {
    if (!own || STREAM->is_dropped) return 0;
    quic_vec n = SESSION->f->h3_bytes(name), v = SESSION->f->h3_bytes(value);
    if (CALL(field, id, n.base, n.len, v.base, v.len) != TERN_H3_OK) STREAM->is_dropped = true;
    return 0;
}

static int end(int64_t id, int is_trailer, int is_last, void *user, void *own) {
    if (own && !STREAM->is_dropped) CALL(end_head, id, is_trailer, is_last);
    return 0;
}

static int did_begin_headers(h3_conn *conn, int64_t id, void *user, void *own) {
    (void)conn;
    return begin(id, 0, user, own);
}

static int did_receive_header(
    h3_conn *conn, int64_t id, int32_t token, h3_rcbuf *name, h3_rcbuf *value, uint8_t flags, void *user, void *own) {
    (void)conn, (void)token, (void)flags;
    return field(id, name, value, user, own);
}

static int did_end_headers(h3_conn *conn, int64_t id, int is_last, void *user, void *own) {
    (void)conn;
    return end(id, 0, is_last, user, own);
}

static int did_begin_trailers(h3_conn *conn, int64_t id, void *user, void *own) {
    (void)conn;
    return begin(id, 1, user, own);
}

static int did_end_trailers(h3_conn *conn, int64_t id, int is_last, void *user, void *own) {
    (void)conn;
    return end(id, 1, is_last, user, own);
}

static int should_stop_reading(h3_conn *conn, int64_t id, uint64_t code, void *user, void *own) {
    (void)conn, (void)own;
    SESSION->f->shutdown_read(SESSION->quic, 0, id, code);
    return 0;
}

static int should_reset(h3_conn *conn, int64_t id, uint64_t code, void *user, void *own) {
    (void)conn;
    SESSION->f->shutdown_write(SESSION->quic, 0, id, code);
    if (own && !STREAM->is_dropped) {
        STREAM->is_dropped = true;
        CALL(malformed, id, code);
    }
    return 0;
}

static int did_end_stream(h3_conn *conn, int64_t id, void *user, void *own) {
    (void)conn;
    if (own && !STREAM->is_dropped) CALL(ended, id);
    return 0;
}

static int will_shut_down(h3_conn *conn, int64_t id, void *user) {
    (void)conn;
    CALL(going_away, id);
    return 0;
}

static int did_receive_settings(h3_conn *conn, const h3_settings *settings, void *user) {
    (void)conn;
    CALL(settings, settings->enable_connect_protocol, settings->max_field_section_size);
    return 0;
}

static ssize_t read_body(
    h3_conn *conn, int64_t id, quic_vec *pieces, size_t count, uint32_t *flags, void *user, void *own) {
    (void)conn;
    if (!own || !count || STREAM->is_canceled || STREAM->is_body_canceled) return H3_ERR_WOULDBLOCK;
    chunk *next = malloc(sizeof *next + CHUNK);
    if (!next) return H3_ERR_CALLBACK_FAILURE;
    uint32_t end = 0;
    ssize_t length = CALL(read, id, next->bytes, CHUNK, &end);
    if (length <= 0 || length > CHUNK) free(next);
    if (length == TERN_H3_WAIT) return H3_ERR_WOULDBLOCK;
    if (length < 0 || length > CHUNK) {
        // The owner has given its own code if it ended the stream.
        if (!STREAM->is_canceled) STREAM->code = INTERNAL_ERROR;
        STREAM->is_body_canceled = true;
        list_canceled(SESSION, STREAM);
        return H3_ERR_WOULDBLOCK;
    }
    if (end & TERN_H3_BODY_ENDS) *flags |= H3_DATA_EOF;
    if (end & TERN_H3_TRAILERS_FOLLOW) *flags |= H3_DATA_EOF | H3_DATA_NO_END_STREAM;
    if (!length) return end ? 0 : H3_ERR_WOULDBLOCK;
    next->next = NULL;
    next->length = (size_t)length;
    if (STREAM->last) STREAM->last->next = next;
    else STREAM->first = next;
    STREAM->last = next;
    pieces[0] = (quic_vec){next->bytes, next->length};
    return 1;
}

static const h3_callbacks http_callbacks = {
    .acked_stream_data = did_acknowledge,
    .stream_close = did_close_stream,
    .recv_data = did_receive_data,
    .deferred_consume = did_consume,
    .begin_headers = did_begin_headers,
    .recv_header = did_receive_header,
    .end_headers = did_end_headers,
    .begin_trailers = did_begin_trailers,
    .recv_trailer = did_receive_header,
    .end_trailers = did_end_trailers,
    .stop_sending = should_stop_reading,
    .end_stream = did_end_stream,
    .reset_stream = should_reset,
    .shutdown = will_shut_down,
    .recv_settings = did_receive_settings,
};

// MARK: Callbacks of ngtcp2

static quic_conn *connection_of(quic_conn_ref *reference) { return ((tern_h3 *)reference->user_data)->quic; }

/// Judges the certificates, once. Returns whether they are accepted.
static bool verify(tern_h3 *session) {
    if (session->is_verified || session->alert) return session->is_verified;
    const quic_functions *f = session->f;
    unsigned count = 0;
    const tls_datum *list = f->tls_peers(session->tls, &count);
    if (!list || !count || count > 64) {
        session->alert = ALERT_BAD_CERTIFICATE;
        return false;
    }
    tern_h3_bytes certificates[64];
    for (unsigned i = 0; i < count; i++) certificates[i] = (tern_h3_bytes){list[i].data, list[i].size};
    tls_datum staple = {NULL, 0};
    if (f->tls_staple(session->tls, 0, &staple) < 0) staple = (tls_datum){NULL, 0};
    session->alert = session->callbacks.verify(
        session->context, certificates, count, (tern_h3_bytes){staple.data, staple.size});
    session->is_verified = !session->alert;
    return session->is_verified;
}

static int will_verify(tls_session tls) {
    const quic_functions *f = tern_h3_functions();
    quic_conn_ref *reference = f->tls_pointer(tls);
    return verify(reference->user_data) ? 0 : TLS_E_CERTIFICATE_ERROR;
}

static int did_receive_ticket(
    tls_session tls, unsigned type, unsigned when, unsigned is_incoming, const tls_datum *message) {
    (void)type, (void)when, (void)message;
    const quic_functions *f = tern_h3_functions();
    tern_h3 *session = ((quic_conn_ref *)f->tls_pointer(tls))->user_data;
    tls_datum data = {NULL, 0};
    if (!is_incoming || !session->is_verified || f->tls_ticket(tls, &data) < 0) return 0;
    session->callbacks.ticket(session->context, data.data, data.size);
    f->tls_free(data.data);
    return 0;
}

static char *write_hexadecimal(char *text, const tls_datum *bytes) {
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < bytes->size; i++) {
        *text++ = digits[bytes->data[i] >> 4];
        *text++ = digits[bytes->data[i] & 15];
    }
    return text;
}

static int will_log_key(tls_session tls, const char *label, const tls_datum *secret) {
    const quic_functions *f = tern_h3_functions();
    tern_h3 *session = ((quic_conn_ref *)f->tls_pointer(tls))->user_data;
    tls_datum client = {NULL, 0}, server = {NULL, 0};
    f->tls_random(tls, &client, &server);
    // The random bytes are 32, and a secret of TLS 1.3 is as long as a hash.
    char line[512], *end = line;
    size_t length = strlen(label);
    if (length + 2 * ((size_t)client.size + secret->size) + 3 > sizeof line) return 0;
    memcpy(end, label, length);
    end += length;
    *end++ = ' ';
    end = write_hexadecimal(end, &client);
    *end++ = ' ';
    *write_hexadecimal(end, secret) = 0;
    session->callbacks.key(session->context, line);
    return 0;
}

/// Without a function of its own, GnuTLS writes the keys to the file that SSLKEYLOGFILE names.
static int will_not_log_key(tls_session tls, const char *label, const tls_datum *secret) {
    (void)tls, (void)label, (void)secret;
    return 0;
}

static int did_complete_handshake(quic_conn *quic, void *user) {
    (void)quic;
    // A session that is resumed has its certificates from the ticket, and is not verified by GnuTLS.
    if (!verify(SESSION)) return QUIC_ERR_CALLBACK_FAILURE;
    SESSION->is_connected = true;
    CALL(connected, SESSION->f->tls_is_resumed(SESSION->tls));
    return 0;
}

/// The keys come before the end of the handshake, and the server's first streams can come with them.
static int did_receive_read_key(quic_conn *quic, int level, void *user) {
    if (level != QUIC_LEVEL_1RTT || SESSION->http) return 0;
    const quic_functions *f = SESSION->f;
    h3_settings settings;
    f->h3_settings_default(1, &settings);
    settings.max_field_section_size = SESSION->head_limit;
    settings.qpack_max_dtable_capacity = 4096;
    settings.qpack_blocked_streams = 100;
    int64_t control, encoder, decoder;
    if (f->h3_new(&SESSION->http, 1, &http_callbacks, 1, &settings, f->h3_memory(), user)) {
        SESSION->http = NULL;
        return QUIC_ERR_CALLBACK_FAILURE;
    }
    // A server must allow three streams of one direction (RFC 9114 §6.2).
    if (f->open_uni(quic, &control, NULL) || f->open_uni(quic, &encoder, NULL) || f->open_uni(quic, &decoder, NULL) ||
        f->h3_bind_control(SESSION->http, control) || f->h3_bind_qpack(SESSION->http, encoder, decoder)) {
        static const char text[] = "the server allows no control stream (RFC 9114 section 6.2)";
        SESSION->code = 0x101;
        set_reason(&SESSION->failure, text, sizeof text - 1);
        return QUIC_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

static int did_receive_stream_data(
    quic_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *bytes, size_t length, void *user,
    void *own) {
    (void)offset;
    const quic_functions *f = SESSION->f;
    if (!SESSION->http) return QUIC_ERR_CALLBACK_FAILURE;
    ssize_t count = f->h3_read(SESSION->http, id, bytes, length, flags & QUIC_STREAM_FIN ? 1 : 0);
    // A message that violates a rule ends its stream, and leaves the others alone (RFC 9114 §4.1.2).
    if (own && (count == H3_ERR_MALFORMED_HEADER || count == H3_ERR_MALFORMED_MESSAGE)) {
        if (!STREAM->is_dropped) CALL(malformed, id, MESSAGE_ERROR);
        STREAM->is_dropped = STREAM->is_canceled = true;
        STREAM->code = MESSAGE_ERROR;
        list_canceled(SESSION, STREAM);
        f->extend_conn(quic, length);
        return 0;
    }
    if (count < 0) return fail_http(SESSION, (int)count);
    f->extend_stream(quic, id, (uint64_t)count);
    f->extend_conn(quic, (uint64_t)count);
    return 0;
}

static int did_acknowledge_stream_data(
    quic_conn *quic, int64_t id, uint64_t offset, uint64_t count, void *user, void *own) {
    (void)quic, (void)offset, (void)own;
    int error = SESSION->http ? SESSION->f->h3_acked(SESSION->http, id, count) : 0;
    return error ? fail_http(SESSION, error) : 0;
}

static int did_close_quic_stream(
    quic_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user, void *own) {
    const quic_functions *f = SESSION->f;
    if (!(flags & QUIC_CLOSE_HAS_CODE)) code = NO_ERROR;
    int error = SESSION->http ? f->h3_close_stream(SESSION->http, id, code) : H3_ERR_STREAM_NOT_FOUND;
    if (own) free_stream(SESSION, STREAM);
    else if (id & 1) f->extend_uni(quic, 1);
    return error && error != H3_ERR_STREAM_NOT_FOUND ? fail_http(SESSION, error) : 0;
}

static int did_reset_stream(quic_conn *quic, int64_t id, uint64_t size, uint64_t code, void *user, void *own) {
    (void)quic, (void)size;
    int error = SESSION->http ? SESSION->f->h3_shutdown_read(SESSION->http, id) : 0;
    if (error) return fail_http(SESSION, error);
    if (own && !STREAM->is_dropped) CALL(reset, id, code);
    return 0;
}

static int did_stop_reading(quic_conn *quic, int64_t id, uint64_t code, void *user, void *own) {
    (void)quic, (void)code, (void)own;
    int error = SESSION->http ? SESSION->f->h3_shutdown_read(SESSION->http, id) : 0;
    return error ? fail_http(SESSION, error) : 0;
}

static int did_extend_streams(quic_conn *quic, uint64_t count, void *user) {
    (void)quic, (void)count;
    SESSION->callbacks.streams(SESSION->context);
    return 0;
}

static int did_extend_stream(quic_conn *quic, int64_t id, uint64_t count, void *user, void *own) {
    (void)quic, (void)count, (void)own;
    int error = SESSION->http ? SESSION->f->h3_unblock(SESSION->http, id) : 0;
    return error ? fail_http(SESSION, error) : 0;
}

static int did_receive_stateless_reset(quic_conn *quic, const void *packet, void *user) {
    (void)quic, (void)packet;
    SESSION->was_reset = true;
    return 0;
}

static int did_receive_token(quic_conn *quic, const uint8_t *bytes, size_t length, void *user) {
    (void)quic;
    CALL(token, bytes, length);
    return 0;
}

static bool fill_random(uint8_t *bytes, size_t length) {
    while (length) {
        size_t part = length < 256 ? length : 256;
        if (getrandom(bytes, part, 0) != (ssize_t)part) return false;
        bytes += part;
        length -= part;
    }
    return true;
}

/// Asked for bytes that need not be secret.
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

static quic_callbacks quic_callbacks_of(const quic_functions *f) {
    return (quic_callbacks){
        .client_initial = f->client_initial,
        .recv_crypto_data = f->recv_crypto_data,
        .handshake_completed = did_complete_handshake,
        .encrypt = f->encrypt,
        .decrypt = f->decrypt,
        .hp_mask = f->hp_mask,
        .recv_stream_data = did_receive_stream_data,
        .acked_stream_data_offset = did_acknowledge_stream_data,
        .stream_close = did_close_quic_stream,
        .recv_stateless_reset = did_receive_stateless_reset,
        .recv_retry = f->recv_retry,
        .extend_max_local_streams_bidi = did_extend_streams,
        .rand = did_ask_random,
        .get_new_connection_id = did_ask_identifier,
        .update_key = f->update_key_cb,
        .stream_reset = did_reset_stream,
        .extend_max_stream_data = did_extend_stream,
        .recv_new_token = did_receive_token,
        .delete_crypto_aead_ctx = f->delete_aead,
        .delete_crypto_cipher_ctx = f->delete_cipher,
        .get_path_challenge_data = f->path_challenge,
        .stream_stop_sending = did_stop_reading,
        .version_negotiation = f->version_negotiation,
        .recv_rx_key = did_receive_read_key,
    };
}

// MARK: Creation

static bool set_up_tls(tern_h3 *session, const tern_h3_settings *settings) {
    const quic_functions *f = session->f;
    // Not the system's configuration of GnuTLS: the rules are those of the other connections.
    static const char priority[] =
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
        "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-SECP521R1:%DISABLE_TLS13_COMPAT_MODE";
    static unsigned char h3[] = "h3";
    const tls_datum protocol = {h3, 2};
    // As OpenSSL does, whatever authorities the server names.
    if (f->tls_init(&session->tls, TLS_CLIENT | TLS_FORCE_CLIENT_CERTIFICATE)) {
        session->tls = NULL;
        return false;
    }
    if (f->tls_new_credentials(&session->credentials)) {
        session->credentials = NULL;
        return false;
    }
    session->reference = (quic_conn_ref){connection_of, session};
    f->tls_set_pointer(session->tls, &session->reference);
    if (f->configure(session->tls) || f->tls_priority(session->tls, priority, NULL) ||
        f->tls_alpn(session->tls, &protocol, 1, TLS_ALPN_MANDATORY) ||
        f->tls_set_credentials(session->tls, TLS_CRD_CERTIFICATE, session->credentials) ||
        f->tls_ask_staple(session->tls, NULL, 0, NULL)) {
        return false;
    }
    if (settings->identity.length) {
        const tls_datum chain = {(unsigned char *)settings->identity.bytes, (unsigned)settings->identity.length};
        const tls_datum key = {(unsigned char *)settings->identity_key.bytes, (unsigned)settings->identity_key.length};
        if (f->tls_set_identity(session->credentials, &chain, &key, TLS_PEM) < 0) return false;
    }
    const char *name = settings->server_name;
    if (name && f->tls_server_name(session->tls, TLS_NAME_DNS, name, strlen(name))) return false;
    f->tls_set_verify(session->tls, will_verify);
    f->tls_set_key_log(session->tls, settings->logs_keys ? will_log_key : will_not_log_key);
    f->tls_set_hook(session->tls, TLS_NEW_SESSION_TICKET, TLS_HOOK_POST, did_receive_ticket);
    // The data of a ticket are those that GnuTLS wrote itself, in the memory of this process. It must not be given others:
    // it crashes in the handshake when it has read a part of them. One that has expired leads to a whole handshake.
    if (settings->ticket.length) f->tls_set_ticket(session->tls, settings->ticket.bytes, settings->ticket.length);
    return true;
}

static bool set_up_quic(tern_h3 *session, const tern_h3_settings *settings) {
    const quic_functions *f = session->f;
    quic_settings own;
    f->settings_default(1, &own);
    own.initial_ts = settings->now;
    own.cc_algo = settings->uses_bbr ? QUIC_BBR : QUIC_CUBIC;
    own.handshake_timeout = settings->handshake_timeout;
    own.token = settings->token.bytes;
    own.tokenlen = settings->token.length;
    if (own.tokenlen) own.token_type = QUIC_TOKEN_OF_SERVER;
    quic_transport_params params;
    f->params_default(1, &params);
    params.initial_max_stream_data_bidi_local = settings->stream_window;
    params.initial_max_stream_data_uni = 256 << 10;
    params.initial_max_data = settings->connection_window;
    params.initial_max_streams_uni = 100;
    params.max_idle_timeout = settings->idle_timeout;
    params.active_connection_id_limit = 7;
    params.grease_quic_bit = 1;
    quic_cid server = {.datalen = 18}, client = {.datalen = 16};
    if (!fill_random(server.data, server.datalen) || !fill_random(client.data, client.datalen)) return false;
    const quic_callbacks callbacks = quic_callbacks_of(f);
    const quic_path path = path_of(session);
    if (f->client_new(
            &session->quic, &server, &client, &path, QUIC_VERSION_1, 1, &callbacks, 1, &own, 1, &params, NULL,
            session)) {
        session->quic = NULL;
        return false;
    }
    f->set_tls(session->quic, session->tls);
    return true;
}

tern_h3 *tern_h3_new(const tern_h3_callbacks *callbacks, void *context, const tern_h3_settings *settings) {
    const quic_functions *f = tern_h3_functions();
    if (!f || settings->local_length > sizeof(struct sockaddr_storage) ||
        settings->remote_length > sizeof(struct sockaddr_storage)) {
        return NULL;
    }
    tern_h3 *session = calloc(1, sizeof *session);
    if (!session) return NULL;
    session->f = f;
    session->callbacks = *callbacks;
    session->context = context;
    session->head_limit = settings->head_limit;
    memcpy(&session->local, settings->local, settings->local_length);
    memcpy(&session->remote, settings->remote, settings->remote_length);
    session->local_length = settings->local_length;
    session->remote_length = settings->remote_length;
    if (set_up_tls(session, settings) && set_up_quic(session, settings)) return session;
    tern_h3_free(session);
    return NULL;
}

void tern_h3_free(tern_h3 *session) {
    if (!session) return;
    const quic_functions *f = session->f;
    // Frees its streams with their callbacks, which must find no owner.
    if (session->http) f->h3_del(session->http);
    session->http = NULL;
    if (session->quic) f->conn_del(session->quic);
    if (session->tls) f->tls_deinit(session->tls);
    if (session->credentials) f->tls_free_credentials(session->credentials);
    while (session->streams) free_stream(session, session->streams);
    free(session);
}

// MARK: Datagrams

int tern_h3_receive(tern_h3 *session, const uint8_t *bytes, size_t length, uint8_t ecn, uint64_t now) {
    if (session->failure.cause != TERN_H3_ALIVE) return -1;
    const quic_path path = path_of(session);
    const quic_pkt_info info = {ecn};
    session->depth++;
    int error = session->f->read_pkt(session->quic, &path, 1, &info, bytes, length, now);
    session->depth--;
    if (error) return fail(session, error);
    end_canceled(session);
    return 0;
}

/// Writes the next datagram. Returns its size, 0 if there is none, and -1 for the end of the connection.
static ssize_t write_datagram(
    tern_h3 *session, uint8_t *bytes, size_t capacity, quic_pkt_info *info, uint64_t now) {
    const quic_functions *f = session->f;
    while (true) {
        quic_vec pieces[16];
        ssize_t count = 0;
        int64_t id = -1;
        int is_last = 0;
        // The server's certificates are accepted before a byte of a request is written.
        if (session->is_connected) {
            count = f->h3_write(session->http, &id, &is_last, pieces, 16);
            if (count < 0) {
                fail_http(session, (int)count);
                return fail(session, QUIC_ERR_CALLBACK_FAILURE);
            }
        }
        ssize_t taken = -1;
        ssize_t written = f->writev_stream(
            session->quic, NULL, 1, info, bytes, capacity, &taken, QUIC_WRITE_MORE | (is_last ? QUIC_WRITE_FIN : 0),
            id, pieces, (size_t)count, now);
        if (taken >= 0 && id >= 0) {
            stream *own = find_stream(session, id);
            if (own) own->is_sent = true;
            int error = f->h3_written(session->http, id, (size_t)taken);
            if (error) {
                fail_http(session, error);
                return fail(session, QUIC_ERR_CALLBACK_FAILURE);
            }
        }
        switch (written) {
        case QUIC_ERR_WRITE_MORE: continue;
        case QUIC_ERR_STREAM_DATA_BLOCKED: f->h3_block(session->http, id); continue;
        case QUIC_ERR_STREAM_SHUT_WR:
        case QUIC_ERR_STREAM_NOT_FOUND:
            f->h3_shutdown_write(session->http, id);
            if (find_stream(session, id)) session->callbacks.stopped(session->context, id);
            continue;
        default: break;
        }
        if (written < 0) return fail(session, (int)written);
        return written;
    }
}

ptrdiff_t tern_h3_send(
    tern_h3 *session, uint8_t *bytes, size_t capacity, size_t *segment, uint8_t *ecn, uint64_t now) {
    const quic_functions *f = session->f;
    if (session->failure.cause != TERN_H3_ALIVE) return -1;
    size_t total = 0, number = 0;
    *segment = 0;
    *ecn = 0;
    session->depth++;
    if (session->spill_length) {
        memcpy(bytes, session->spill, session->spill_length);
        *segment = total = session->spill_length;
        *ecn = session->spill_ecn;
        session->spill_length = 0;
        number = 1;
    }
    size_t largest = f->max_payload(session->quic);
    if (largest > DATAGRAM) largest = DATAGRAM;
    ssize_t last = 0;
    while (number < SEGMENTS && capacity - total >= largest) {
        quic_pkt_info info = {0};
        last = write_datagram(session, bytes + total, largest, &info, now);
        if (last <= 0) break;
        if (number && ((size_t)last > *segment || info.ecn != *ecn)) {
            memcpy(session->spill, bytes + total, (size_t)last);
            session->spill_length = (size_t)last;
            session->spill_ecn = info.ecn;
            break;
        }
        if (!number) {
            *segment = (size_t)last;
            *ecn = info.ecn;
        }
        total += (size_t)last;
        number++;
        if ((size_t)last < *segment) break;
    }
    session->depth--;
    if (last < 0) return -1;
    if (total) f->update_tx_time(session->quic, now);
    end_canceled(session);
    return (ptrdiff_t)total;
}

uint64_t tern_h3_deadline(tern_h3 *session) {
    return session->failure.cause == TERN_H3_ALIVE ? session->f->get_expiry(session->quic) : UINT64_MAX;
}

int tern_h3_expire(tern_h3 *session, uint64_t now) {
    if (session->failure.cause != TERN_H3_ALIVE) return -1;
    session->depth++;
    int error = session->f->handle_expiry(session->quic, now);
    session->depth--;
    if (error) return fail(session, error);
    end_canceled(session);
    return 0;
}

ptrdiff_t tern_h3_close(tern_h3 *session, uint64_t code, uint8_t *bytes, size_t capacity, uint64_t now) {
    const quic_functions *f = session->f;
    quic_ccerr reason = {0};
    switch (session->failure.cause) {
    case TERN_H3_ALIVE: f->error_of_application(&reason, code, NULL, 0); break;
    case TERN_H3_LOCAL_ALERT: f->error_of_alert(&reason, (uint8_t)session->failure.code, NULL, 0); break;
    case TERN_H3_LOCAL:
        if (session->code) f->error_of_application(&reason, session->code, NULL, 0);
        else f->error_of_library(&reason, session->error, NULL, 0);
        break;
    default: return 0;
    }
    if (f->in_draining(session->quic) || f->in_closing(session->quic)) return 0;
    quic_pkt_info info = {0};
    ssize_t written = f->write_close(session->quic, NULL, 1, &info, bytes, capacity, &reason, now);
    return written > 0 ? written : 0;
}

// MARK: Requests

static size_t encode(h3_nv *encoded, const uint8_t *base, const tern_h3_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        encoded[i] = (h3_nv){
            base + fields[i].name, base + fields[i].value, fields[i].name_length, fields[i].value_length,
            fields[i].is_secret ? H3_NV_NEVER_INDEX : 0};
    }
    return count;
}

int64_t tern_h3_submit(
    tern_h3 *session, const uint8_t *base, const tern_h3_field *fields, size_t count, int has_body) {
    const quic_functions *f = session->f;
    if (!session->is_connected || session->failure.cause != TERN_H3_ALIVE) return -2;
    h3_nv *encoded = calloc(count ? count : 1, sizeof *encoded);
    stream *added = encoded ? add_stream(session) : NULL;
    if (!added) {
        free(encoded);
        return -2;
    }
    int64_t id = -1;
    int error = f->open_bidi(session->quic, &id, added);
    if (error) {
        free_stream(session, added);
        free(encoded);
        return error == QUIC_ERR_STREAM_ID_BLOCKED ? -1 : -2;
    }
    name_stream(session, added, id);
    const h3_data_reader reader = {read_body};
    encode(encoded, base, fields, count);
    error = f->h3_submit(session->http, id, encoded, count, has_body ? &reader : NULL, added);
    free(encoded);
    if (!error) return id;
    // The stream exists in QUIC alone, and ends with the callback for it.
    f->shutdown_read(session->quic, 0, id, INTERNAL_ERROR);
    f->shutdown_write(session->quic, 0, id, INTERNAL_ERROR);
    return -2;
}

int tern_h3_submit_trailers(
    tern_h3 *session, int64_t id, const uint8_t *base, const tern_h3_field *fields, size_t count) {
    h3_nv *encoded = calloc(count ? count : 1, sizeof *encoded);
    if (!encoded) return -1;
    encode(encoded, base, fields, count);
    int error = session->f->h3_trailers(session->http, id, encoded, count);
    free(encoded);
    return error ? -1 : 0;
}

void tern_h3_resume(tern_h3 *session, int64_t id) {
    if (session->http) session->f->h3_resume(session->http, id);
}

void tern_h3_consume(tern_h3 *session, int64_t id, size_t length) {
    session->f->extend_stream(session->quic, id, length);
}

static void cancel(tern_h3 *session, int64_t id, uint64_t code, bool is_whole) {
    stream *own = find_stream(session, id);
    if (!own || !session->http) return;
    own->code = code;
    if (is_whole) own->is_canceled = own->is_dropped = true;
    else own->is_body_canceled = true;
    list_canceled(session, own);
    end_canceled(session);
}

void tern_h3_cancel(tern_h3 *session, int64_t id, uint64_t code) { cancel(session, id, code, true); }
void tern_h3_cancel_body(tern_h3 *session, int64_t id, uint64_t code) { cancel(session, id, code, false); }

int tern_h3_set_priority(tern_h3 *session, int64_t id, const uint8_t *value, size_t length) {
    return session->http && !session->f->h3_priority(session->http, id, value, length) ? 0 : -1;
}

uint64_t tern_h3_streams_left(tern_h3 *session) {
    return session->is_connected ? session->f->streams_left(session->quic) : 0;
}

int tern_h3_is_sent(tern_h3 *session, int64_t id) {
    const stream *own = find_stream(session, id);
    return own && own->is_sent;
}

int tern_h3_migrate(tern_h3 *session, const void *local, uint32_t length, uint64_t now) {
    if (length > sizeof session->local) return -1;
    memcpy(&session->local, local, length);
    session->local_length = length;
    const quic_path path = path_of(session);
    return session->f->migrate(session->quic, &path, now) ? -1 : 0;
}

void tern_h3_keep_alive(tern_h3 *session, uint64_t interval) {
    session->f->set_keep_alive(session->quic, interval ? interval : UINT64_MAX);
}

int tern_h3_awaits_acknowledgement(tern_h3 *session) {
    quic_conn_info info = {0};
    session->f->conn_info(session->quic, 1, &info);
    return info.bytes_in_flight > 0;
}

uint64_t tern_h3_probe_timeout(tern_h3 *session) { return session->f->get_pto(session->quic); }
#endif
