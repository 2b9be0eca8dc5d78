// Sessions: the handshake with the judgement of the certificates, and the records.
#if defined(__linux__)
#define _GNU_SOURCE
#include "OpenSSLTypes.h"
#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The number of reads in a row within a handshake that bring records but no end of it.
#define MOST_READS_OF_HANDSHAKE 8
// The number of bytes received in a row that bring records but no data, such as tickets. Not a number of reads: before
// OpenSSL 3.2 one read takes all records that have arrived, and since then each takes one.
#define MOST_BYTES_WITHOUT_DATA (128 << 10)
// The number of seconds for which a ticket may be used at most (RFC 8446 §4.6.1).
#define LONGEST_LIFE 604800
// A server's own certificate must name the host in full, in its alternative names (RFC 9110 §4.3.4, RFC 9525 §6.3).
#define NAME_RULES (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

static int is_address(const char *host) {
    unsigned char address[16];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

tern_ssl_session *tern_ssl_session_create(
    tern_ssl_context *context, int descriptor, tern_ssl_session *outer, const char *host, int checks_host,
    tern_ssl_callbacks callbacks) {
    ERR_clear_error();
    tern_ssl_session *session = calloc(1, sizeof *session);
    if (!session) return NULL;
    session->descriptor = descriptor;
    session->outer = outer;
    session->callbacks = callbacks;
    session->checks_host = checks_host;
    session->verifies_chain = context->verifies_chain;
    session->requires_staple = context->requires_staple;
    session->chain_expiry = INT64_MAX;
    session->is_address = is_address(host);
    session->host = strdup(host);
    session->ssl = session->host ? SSL_new(context->ssl) : NULL;
    BIO *transport = session->ssl ? tern_ssl_transport(session) : NULL;
    if (!transport) {
        tern_ssl_session_free(session);
        return NULL;
    }
    SSL *ssl = session->ssl;
    SSL_set_bio(ssl, transport, transport);
    SSL_set_connect_state(ssl);
    int is_ready = SSL_set_app_data(ssl, session) == 1;
    // Names only (RFC 6066 §3).
    if (!session->is_address) is_ready = is_ready && SSL_set_tlsext_host_name(ssl, host) == 1;
    if (checks_host && session->verifies_chain) {
        X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
        X509_VERIFY_PARAM_set_hostflags(rules, NAME_RULES);
        is_ready = is_ready
            && (session->is_address ? X509_VERIFY_PARAM_set1_ip_asc(rules, host)
                                    : X509_VERIFY_PARAM_set1_host(rules, host, 0)) == 1;
    }
    if (context->requires_staple) is_ready = is_ready && SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp) == 1;
    if (is_ready) return session;
    tern_ssl_session_free(session);
    return NULL;
}

void tern_ssl_session_free(tern_ssl_session *session) {
    if (!session) return;
    SSL_free(session->ssl);
    free(session->host);
    free(session);
}

int tern_ssl_session_set_protocols(tern_ssl_session *session, const uint8_t *bytes, size_t count) {
    // This function of OpenSSL returns 0 on success.
    return count <= UINT_MAX && SSL_set_alpn_protos(session->ssl, bytes, (unsigned)count) == 0;
}

int tern_ssl_session_set_ticket(tern_ssl_session *session, tern_ssl_ticket *ticket) {
    return SSL_set_session(session->ssl, (SSL_SESSION *)ticket);
}

// --- Judgement ----------------------------------------------------------------------------------------------------

static int is_for_host(const tern_ssl_session *session, X509 *certificate) {
    if (session->is_address) return X509_check_ip_asc(certificate, session->host, 0) == 1;
    return X509_check_host(certificate, session->host, strlen(session->host), NAME_RULES, NULL) == 1;
}

static int64_t earliest_expiry(STACK_OF(X509) *chain) {
    int64_t earliest = INT64_MAX;
    for (int index = 0; chain && index < sk_X509_num(chain); index++) {
        struct tm parts;
        if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, index)), &parts) != 1) return 0;
        int64_t expiry = (int64_t)timegm(&parts);
        if (expiry < earliest) earliest = expiry;
    }
    return earliest;
}

static int verify(tern_ssl_session *session, X509_STORE_CTX *store) {
    if (session->verifies_chain) {
        int result = X509_verify_cert(store);
        if (result != 1 && X509_STORE_CTX_get_error(store) == X509_V_OK) {
            X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED);
        }
        session->chain_expiry = earliest_expiry(X509_STORE_CTX_get0_chain(store));
    } else {
        X509 *certificate = X509_STORE_CTX_get0_cert(store);
        int is_accepted = certificate && (!session->checks_host || is_for_host(session, certificate));
        X509_STORE_CTX_set_error(store, is_accepted ? X509_V_OK : X509_V_ERR_HOSTNAME_MISMATCH);
    }
    int error = X509_STORE_CTX_get_error(store);
    session->failure.verify_error = error;
    session->failure.is_other_host =
        error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return error == X509_V_OK;
}

int tern_ssl_verify_callback(X509_STORE_CTX *store, void *argument) {
    (void)argument;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    tern_ssl_session *session = ssl ? SSL_get_app_data(ssl) : NULL;
    if (!session) return 0;
    if (!verify(session, store)) {
        if (!session->callbacks.continues_unverified) return 0;
        // Nothing is verified: the server has proved possession of the key of its own certificate only.
        session->unverified_error = session->failure.verify_error;
        session->failure.verify_error = X509_V_OK;
        session->failure.is_other_host = 0;
        session->verifies_chain = 0;
        X509_STORE_CTX_set_error(store, X509_V_OK);
    }
    if (!session->callbacks.judge) return 1;
    if (session->callbacks.judge(session->callbacks.owner, (tern_ssl_chain *)store) == 1) return 1;
    session->failure.is_refused = 1;
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

int tern_ssl_staple_callback(SSL *ssl, void *argument) {
    (void)argument;
    tern_ssl_session *session = SSL_get_app_data(ssl);
    if (!session) return 0;
    session->failure.staple = tern_ssl_check_staple(ssl);
    return session->failure.staple == TERN_SSL_STAPLE_GOOD;
}

// Returns the certificates; NULL if one cannot be read.
static STACK_OF(X509) *read_certificates(const tern_ssl_bytes *certificates, size_t count) {
    STACK_OF(X509) *chain = sk_X509_new_null();
    for (size_t index = 0; chain && index < count; index++) {
        const unsigned char *place = certificates[index].bytes;
        X509 *certificate =
            certificates[index].length <= LONG_MAX ? d2i_X509(NULL, &place, (long)certificates[index].length) : NULL;
        if (certificate && sk_X509_push(chain, certificate) > 0) continue;
        X509_free(certificate);
        sk_X509_pop_free(chain, X509_free);
        chain = NULL;
    }
    return chain;
}

int tern_ssl_judge_certificates(
    tern_ssl_session *session, const tern_ssl_bytes *certificates, size_t count, tern_ssl_bytes staple) {
    ERR_clear_error();
    SSL *ssl = session->ssl;
    X509_STORE *anchors = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
    STACK_OF(X509) *chain = count > 0 ? read_certificates(certificates, count) : NULL;
    X509_STORE_CTX *store = chain ? X509_STORE_CTX_new() : NULL;
    // As OpenSSL sets it up within its own handshake.
    int is_ready = store && X509_STORE_CTX_init(store, anchors, sk_X509_value(chain, 0), chain) == 1
        && X509_STORE_CTX_set_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx(), ssl) == 1
        && X509_STORE_CTX_set_default(store, "ssl_server") == 1;
    int is_accepted = 0;
    if (is_ready) {
        X509_VERIFY_PARAM *rules = X509_STORE_CTX_get0_param(store);
        X509_VERIFY_PARAM_set_auth_level(rules, SSL_get_security_level(ssl));
        is_ready = X509_VERIFY_PARAM_set1(rules, SSL_get0_param(ssl)) == 1;
    }
    if (!is_ready) {
        session->failure.verify_error = X509_V_ERR_UNSPECIFIED;
    } else {
        is_accepted = tern_ssl_verify_callback(store, NULL) == 1;
    }
    if (is_accepted && session->requires_staple) {
        STACK_OF(X509) *verified = X509_STORE_CTX_get0_chain(store);
        session->failure.staple = tern_ssl_judge_staple(
            staple.bytes, staple.length <= LONG_MAX ? (long)staple.length : 0, sk_X509_value(chain, 0),
            verified ? verified : chain, anchors);
        is_accepted = session->failure.staple == TERN_SSL_STAPLE_GOOD;
    }
    if (session->failure.verify_error != X509_V_OK) {
        session->failure.text = X509_verify_cert_error_string(session->failure.verify_error);
    }
    X509_STORE_CTX_free(store);
    sk_X509_pop_free(chain, X509_free);
    return is_accepted;
}

static tern_ssl_session *session_of(tern_ssl_chain *chain) {
    SSL *ssl = X509_STORE_CTX_get_ex_data((X509_STORE_CTX *)chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    return ssl ? SSL_get_app_data(ssl) : NULL;
}

static STACK_OF(X509) *verified_chain(tern_ssl_chain *chain) {
    tern_ssl_session *session = session_of(chain);
    return session && session->verifies_chain ? X509_STORE_CTX_get0_chain((X509_STORE_CTX *)chain) : NULL;
}

const char *tern_ssl_chain_failure(tern_ssl_chain *chain) {
    tern_ssl_session *session = session_of(chain);
    if (!session || session->unverified_error == X509_V_OK) return NULL;
    return X509_verify_cert_error_string(session->unverified_error);
}

int tern_ssl_chain_length(tern_ssl_chain *chain) {
    STACK_OF(X509) *verified = verified_chain(chain);
    if (verified) return sk_X509_num(verified);
    return X509_STORE_CTX_get0_cert((X509_STORE_CTX *)chain) ? 1 : 0;
}

int tern_ssl_chain_certificate(tern_ssl_chain *chain, int index, uint8_t **bytes) {
    STACK_OF(X509) *verified = verified_chain(chain);
    X509 *certificate =
        verified ? sk_X509_value(verified, index) : X509_STORE_CTX_get0_cert((X509_STORE_CTX *)chain);
    *bytes = NULL;
    int count = certificate ? i2d_X509(certificate, bytes) : 0;
    return count > 0 ? count : 0;
}

void tern_ssl_free_bytes(uint8_t *bytes) { OPENSSL_free(bytes); }

// --- Tickets ------------------------------------------------------------------------------------------------------

int tern_ssl_ticket_callback(SSL *ssl, SSL_SESSION *ticket) {
    tern_ssl_session *session = SSL_get_app_data(ssl);
    if (!session || !session->callbacks.take_ticket || !SSL_SESSION_is_resumable(ticket)) return 0;
    // A copy, because OpenSSL marks the ticket of a connection without a mutual end as not resumable, and because
    // another thread can use it.
    SSL_SESSION *copy = SSL_SESSION_dup(ticket);
    if (copy) session->callbacks.take_ticket(session->callbacks.owner, (tern_ssl_ticket *)copy);
    return 0;
}

void tern_ssl_key_callback(const SSL *ssl, const char *line) {
    tern_ssl_session *session = SSL_get_app_data(ssl);
    if (session && session->callbacks.log_key) session->callbacks.log_key(session->callbacks.owner, line);
}

int64_t tern_ssl_ticket_expiry(const tern_ssl_ticket *ticket) {
    const SSL_SESSION *session = (const SSL_SESSION *)ticket;
    int64_t start = (int64_t)SSL_SESSION_get_time(session), length = (int64_t)SSL_SESSION_get_timeout(session);
    unsigned long hint = SSL_SESSION_get_ticket_lifetime_hint(session);
    // A server's hint of 0 leaves the time to the client in TLS 1.2 (RFC 5077 §3.3).
    if (hint > 0 && hint < (unsigned long)INT32_MAX && (int64_t)hint < length) length = (int64_t)hint;
    if (length > LONGEST_LIFE) length = LONGEST_LIFE;
    return length > 0 && start < INT64_MAX - length ? start + length : start;
}

void tern_ssl_ticket_free(tern_ssl_ticket *ticket) { SSL_SESSION_free((SSL_SESSION *)ticket); }

// --- Records ------------------------------------------------------------------------------------------------------

static tern_ssl_result fail(tern_ssl_session *session, unsigned long error) {
    session->final = TERN_SSL_FAILED;
    if (!session->failure.is_refused && session->failure.verify_error != X509_V_OK) {
        session->failure.text = X509_verify_cert_error_string(session->failure.verify_error);
    } else {
        session->failure.text = ERR_reason_error_string(error);
        session->failure.is_not_tls =
            ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER && ERR_GET_LIB(error) == ERR_LIB_SSL;
    }
    return TERN_SSL_FAILED;
}

static void prepare(tern_ssl_session *session) {
    session->has_blocked = 0;
    session->hidden_error = 0;
    ERR_clear_error();
}

// Returns the meaning of a result of OpenSSL that is no success.
static tern_ssl_result meaning(tern_ssl_session *session, int result, int is_handshake) {
    unsigned long error = ERR_peek_error();
    int kind = SSL_get_error(session->ssl, result);
    if (error == 0 && session->hidden_error != 0) {
        error = session->hidden_error;
        kind = SSL_ERROR_SSL;
    }
    switch (kind) {
    case SSL_ERROR_WANT_READ: return TERN_SSL_WANTS_READ;
    case SSL_ERROR_WANT_WRITE: return TERN_SSL_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        session->final = TERN_SSL_CLEAN_END;
        if (!is_handshake) return TERN_SSL_CLEAN_END;
        session->failure.is_ended = 1;
        return fail(session, error);
    case SSL_ERROR_SSL:
        if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            if (is_handshake) {
                session->failure.is_ended = 1;
                return fail(session, error);
            }
            return session->final = TERN_SSL_UNCLEAN_END;
        }
        // OpenSSL has the reason, such as an alert that was read after a write had failed.
        session->failure.system_error = 0;
        return fail(session, error);
    default:
        return fail(session, error);
    }
}

tern_ssl_result tern_ssl_handshake(tern_ssl_session *session) {
    if (session->final != TERN_SSL_DONE) return session->final;
    for (int reads = 0; reads < MOST_READS_OF_HANDSHAKE; reads++) {
        prepare(session);
        int result = SSL_do_handshake(session->ssl);
        if (result == 1) return TERN_SSL_DONE;
        tern_ssl_result state = meaning(session, result, 1);
        if (state != TERN_SSL_WANTS_READ || session->has_blocked) return state;
    }
    session->failure.is_flood = 1;
    return fail(session, 0);
}

// Returns whether OpenSSL has read a part of a message of the handshake, and can read on.
static int must_go_on(const tern_ssl_session *session, tern_ssl_result state) {
    return state == TERN_SSL_WANTS_READ && !session->has_blocked
        && session->count_without_data < MOST_BYTES_WITHOUT_DATA;
}

tern_ssl_result tern_ssl_read(tern_ssl_session *session, uint8_t *bytes, size_t length, size_t *count) {
    *count = 0;
    if (session->final != TERN_SSL_DONE) return session->final;
    session->count_without_data = 0;
    while (*count < length) {
        size_t more = 0;
        prepare(session);
        int result = SSL_read_ex(session->ssl, bytes + *count, length - *count, &more);
        if (result == 1) {
            *count += more;
            session->count_without_data = 0;
            // Saves the system call that finds no input.
            if (session->is_drained && !SSL_has_pending(session->ssl)) break;
            continue;
        }
        tern_ssl_result state = meaning(session, result, 0);
        if (must_go_on(session, state)) continue;
        if (state == TERN_SSL_WANTS_READ && !session->has_blocked) {
            session->failure.is_flood = 1;
            state = fail(session, 0);
        }
        // After bytes, the next call returns an end or a failure.
        if (*count > 0) break;
        return state;
    }
    return TERN_SSL_DONE;
}

tern_ssl_result tern_ssl_write(tern_ssl_session *session, const uint8_t *bytes, size_t length, size_t *count) {
    *count = 0;
    // After the server's end, bytes can still be sent.
    if (session->final == TERN_SSL_FAILED || session->is_write_broken) return TERN_SSL_FAILED;
    session->count_without_data = 0;
    while (*count < length) {
        size_t more = 0;
        prepare(session);
        int result = SSL_write_ex(session->ssl, bytes + *count, length - *count, &more);
        if (result == 1) {
            *count += more;
            continue;
        }
        tern_ssl_result state = meaning(session, result, 0);
        if (must_go_on(session, state)) continue;
        if (state == TERN_SSL_FAILED && session->failure.system_error != 0) {
            // The response to a part of the request can still be read.
            session->final = TERN_SSL_DONE;
            session->is_write_broken = 1;
        }
        if (*count > 0) break;
        return state;
    }
    return TERN_SSL_DONE;
}

tern_ssl_result tern_ssl_end_writing(tern_ssl_session *session) {
    if (session->final == TERN_SSL_FAILED || session->is_write_broken) return TERN_SSL_FAILED;
    if (SSL_get_shutdown(session->ssl) & SSL_SENT_SHUTDOWN && !session->has_unsent_end) return TERN_SSL_DONE;
    session->count_without_data = 0;
    // OpenSSL sends no close_notify within a message of the server.
    while (!SSL_is_init_finished(session->ssl)) {
        prepare(session);
        int result = SSL_do_handshake(session->ssl);
        if (result == 1) break;
        tern_ssl_result state = meaning(session, result, 0);
        if (!must_go_on(session, state)) return state;
    }
    prepare(session);
    int result = SSL_shutdown(session->ssl);
    // 0: sent, and the peer has not ended its direction; 1: both have.
    session->has_unsent_end = result < 0 && SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_WRITE;
    if (session->has_unsent_end) return TERN_SSL_WANTS_WRITE;
    if (result >= 0) return TERN_SSL_DONE;
    session->is_write_broken = 1;
    ERR_clear_error();
    return TERN_SSL_FAILED;
}

void tern_ssl_close(tern_ssl_session *session) {
    ERR_clear_error();
    // OpenSSL forbids the call after a failure, and before the end of the handshake.
    int is_usable = session->final != TERN_SSL_FAILED && !session->is_write_broken;
    if (is_usable && SSL_is_init_finished(session->ssl)) SSL_shutdown(session->ssl);
    if (session->outer) tern_ssl_close(session->outer);
}

// --- Facts --------------------------------------------------------------------------------------------------------

int tern_ssl_has_pending(const tern_ssl_session *session) {
    return SSL_has_pending(session->ssl) || (session->outer && tern_ssl_has_pending(session->outer));
}

int tern_ssl_has_incomplete_message(const tern_ssl_session *session) {
    return !SSL_is_init_finished(session->ssl) || (session->outer && tern_ssl_has_incomplete_message(session->outer));
}

int tern_ssl_is_drained(const tern_ssl_session *session) {
    // The next read returns an end or a failure at once.
    if (session->final != TERN_SSL_DONE || session->is_at_end) return 0;
    return session->is_drained && !tern_ssl_has_pending(session)
        && (!session->outer || tern_ssl_is_drained(session->outer));
}

int tern_ssl_is_resumed(const tern_ssl_session *session) { return SSL_session_reused(session->ssl); }

int tern_ssl_is_tls13(const tern_ssl_session *session) { return SSL_version(session->ssl) == TLS1_3_VERSION; }

const char *tern_ssl_cipher_name(const tern_ssl_session *session) { return SSL_get_cipher_name(session->ssl); }

const uint8_t *tern_ssl_protocol(const tern_ssl_session *session, size_t *count) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &length);
    *count = length;
    return name;
}

int64_t tern_ssl_chain_expiry(const tern_ssl_session *session) { return session->chain_expiry; }

tern_ssl_failure tern_ssl_session_failure(const tern_ssl_session *session) { return session->failure; }
#else
typedef int tern_openssl_session_is_for_linux;
#endif
