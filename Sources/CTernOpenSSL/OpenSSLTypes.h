// The types that the C files share.
#ifndef TERN_OPENSSL_TYPES_H
#define TERN_OPENSSL_TYPES_H

#include "CTernOpenSSL.h"
#include <openssl/ssl.h>

struct tern_ssl_context {
    SSL_CTX *ssl;
    int verifies_chain;
    int requires_staple;
};

struct tern_ssl_session {
    SSL *ssl;
    int descriptor;
    tern_ssl_session *outer;
    tern_ssl_callbacks callbacks;
    char *host;
    int is_address;
    int checks_host;
    int verifies_chain;
    int requires_staple;
    // The number of the rule that the certificates violate, if the handshake continues in spite of it, or X509_V_OK.
    int unverified_error;
    // State of the transport below.
    int is_at_end;
    int is_drained;
    int has_blocked;
    // The number of bytes received in this call of tern_ssl_read since the last data.
    size_t count_without_data;
    int is_write_broken;
    int has_unsent_end;
    // An error of OpenSSL that a call of the outer session removed from the thread's queue of errors.
    unsigned long hidden_error;
    // A result that comes after bytes that were already delivered.
    tern_ssl_result final;
    int64_t chain_expiry;
    tern_ssl_failure failure;
};

/// Initializes OpenSSL once.
void tern_ssl_initialize(void);
/// Judges the stapled response of a session in which the certificates are already verified.
tern_ssl_staple tern_ssl_check_staple(SSL *ssl);
/// Judges a response of OCSP for the certificate of a chain.
tern_ssl_staple tern_ssl_judge_staple(
    const unsigned char *bytes, long count, X509 *certificate, STACK_OF(X509) *chain, X509_STORE *anchors);
/// The callbacks of every context.
int tern_ssl_verify_callback(X509_STORE_CTX *store, void *argument);
int tern_ssl_staple_callback(SSL *ssl, void *argument);
int tern_ssl_ticket_callback(SSL *ssl, SSL_SESSION *ticket);
/// The callback of contexts that log keys.
void tern_ssl_key_callback(const SSL *ssl, const char *line);
/// Creates the transport of a session. Returns null on failure.
BIO *tern_ssl_transport(tern_ssl_session *session);

#endif
