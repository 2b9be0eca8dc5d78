// Thin functions over OpenSSL 3 for TernEngine: contexts that hold a trust policy, and sessions over non-blocking
// sockets. OpenSSL's own headers are not visible to Swift.
#ifndef CTERNOPENSSL_H
#define CTERNOPENSSL_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

/// A trust policy and an identity in OpenSSL's form (SSL_CTX). After its creation, any thread may use it.
typedef struct tern_ssl_context tern_ssl_context;
/// Certificates at which a chain can end (X509_STORE). Any thread may use them, and many contexts share them.
typedef struct tern_ssl_authorities tern_ssl_authorities;
/// One TLS connection (SSL). Only one thread at a time may use it.
typedef struct tern_ssl_session tern_ssl_session;
/// The state that allows a later connection to resume a session (SSL_SESSION). It is used by one connection.
typedef struct tern_ssl_ticket tern_ssl_ticket;
/// The certificates of the server that is being judged. Valid only during the call of a judge.
typedef struct tern_ssl_chain tern_ssl_chain;

// --- Authorities --------------------------------------------------------------------------------------------------

/// Creates authorities without a certificate, any of which can end a chain. Returns null on failure.
tern_ssl_authorities *tern_ssl_authorities_create(void);
void tern_ssl_authorities_free(tern_ssl_authorities *authorities);

// These functions return 1, or 0 on failure, when `tern_ssl_error_text` returns the reason.

/// Adds the certificates of a file in PEM form. A file without a certificate is a failure.
int tern_ssl_authorities_add_file(tern_ssl_authorities *authorities, const char *path);
/// Adds a folder in which each certificate has a file that is named by a hash (`openssl rehash`).
int tern_ssl_authorities_add_folder(tern_ssl_authorities *authorities, const char *path);
/// Adds the locations that OpenSSL was built with.
int tern_ssl_authorities_add_default_locations(tern_ssl_authorities *authorities);
/// Adds the certificates of a text in PEM form. A text without a certificate is a failure.
int tern_ssl_authorities_add_pem(tern_ssl_authorities *authorities, const uint8_t *bytes, size_t count);

// --- Contexts -----------------------------------------------------------------------------------------------------

/// Creates a context without anchors. Returns null on failure.
tern_ssl_context *tern_ssl_context_create(int minimum_is_tls13, int verifies_chain, int requires_staple);
void tern_ssl_context_free(tern_ssl_context *context);

// These functions return 1, or 0 on failure, when `tern_ssl_error_text` returns the reason.

/// Lets chains end at shared authorities. The context can get no other anchors.
int tern_ssl_context_share_authorities(tern_ssl_context *context, tern_ssl_authorities *authorities);
/// Adds the certificates that authorities hold now. They are shared, and not parsed again.
int tern_ssl_context_copy_authorities(tern_ssl_context *context, tern_ssl_authorities *authorities);
/// Returns the anchors of a context, which it owns.
tern_ssl_authorities *tern_ssl_context_authorities(tern_ssl_context *context);
/// Adds one certificate in DER form.
int tern_ssl_context_add_der(tern_ssl_context *context, const uint8_t *bytes, size_t count);
/// Accepts any added certificate as the end of a chain, including the server's own certificate.
int tern_ssl_context_allow_partial_chains(tern_ssl_context *context);
/// Adds lists of revoked certificates from a file in PEM form, and requires one for each authority of a chain.
int tern_ssl_context_add_revoked(tern_ssl_context *context, const char *path);
/// Sets the certificates and the key to present to the server. The password ends with a zero byte.
int tern_ssl_context_set_pem_identity(
    tern_ssl_context *context, const uint8_t *certificates, size_t certificates_count, const uint8_t *key,
    size_t key_count, const char *password);
int tern_ssl_context_set_pkcs12_identity(
    tern_ssl_context *context, const uint8_t *bytes, size_t count, const char *password);
/// Calls `tern_ssl_callbacks.log_key` of each session of the context.
void tern_ssl_context_log_keys(tern_ssl_context *context);
/// Bytes that `tern_ssl_secret_free` clears and releases.
typedef struct {
    uint8_t *bytes;
    size_t length;
} tern_ssl_secret;
/// Writes the certificates and the key that the context presents in PEM form, for another library. Returns 0 if there
/// are none.
int tern_ssl_context_get_identity(tern_ssl_context *context, tern_ssl_secret *chain, tern_ssl_secret *key);
void tern_ssl_secret_free(tern_ssl_secret secret);
/// Returns the reason of the last failure on this thread. The text is constant.
const char *tern_ssl_error_text(void);

// --- Sessions -----------------------------------------------------------------------------------------------------

/// The functions that a session calls, each with the owner as its first argument.
typedef struct {
    void *owner;
    /// Judges the chain of the server after its verification. Returns 1 to continue the handshake and 0 to end it. Null
    /// to accept every verified chain.
    int (*judge)(void *owner, tern_ssl_chain *chain);
    /// Takes a ticket over. Null to use no tickets.
    void (*take_ticket)(void *owner, tern_ssl_ticket *ticket);
    /// 1 to continue the handshake with a certificate that is not verified: the judge asks `tern_ssl_chain_failure`.
    int continues_unverified;
    /// Takes a line of a key log, which ends with a zero byte and has no line break. Null to take none.
    void (*log_key)(void *owner, const char *line);
} tern_ssl_callbacks;

/// Creates a session over a non-blocking socket, or over another session if `outer` is not null. `host` is a name or an
/// IP address. Returns null on failure.
tern_ssl_session *tern_ssl_session_create(
    tern_ssl_context *context, int descriptor, tern_ssl_session *outer, const char *host, int checks_host,
    tern_ssl_callbacks callbacks);
void tern_ssl_session_free(tern_ssl_session *session);
/// Sets the names of the protocols to offer (RFC 7301), each after a byte with its length. Returns 1 on success.
int tern_ssl_session_set_protocols(tern_ssl_session *session, const uint8_t *bytes, size_t count);
/// Sets the ticket to resume. The caller still owns it. Returns 1 on success.
int tern_ssl_session_set_ticket(tern_ssl_session *session, tern_ssl_ticket *ticket);

typedef enum {
    TERN_SSL_DONE,
    TERN_SSL_WANTS_READ,
    TERN_SSL_WANTS_WRITE,
    TERN_SSL_CLEAN_END,
    TERN_SSL_UNCLEAN_END,
    TERN_SSL_FAILED,
} tern_ssl_result;

tern_ssl_result tern_ssl_handshake(tern_ssl_session *session);
/// Reads until `bytes` is full or no input is left. Returns TERN_SSL_DONE with a count above zero, or another result.
tern_ssl_result tern_ssl_read(tern_ssl_session *session, uint8_t *bytes, size_t length, size_t *count);
/// Writes until all bytes are written or the socket takes no more. Returns TERN_SSL_DONE with a count above zero, or
/// another result: TERN_SSL_WANTS_READ while a message of the handshake has arrived in part.
tern_ssl_result tern_ssl_write(tern_ssl_session *session, const uint8_t *bytes, size_t length, size_t *count);
/// Sends close_notify, after which bytes can still be read. Returns TERN_SSL_DONE, TERN_SSL_WANTS_WRITE, TERN_SSL_WANTS_READ
/// while a message of the handshake has arrived in part, or TERN_SSL_FAILED.
tern_ssl_result tern_ssl_end_writing(tern_ssl_session *session);
/// Sends close_notify if the socket takes it at once.
void tern_ssl_close(tern_ssl_session *session);
/// Returns 1 if the session holds bytes that were read from the socket but not delivered.
int tern_ssl_has_pending(const tern_ssl_session *session);
/// Returns 1 if a handshake message, such as a session ticket, has arrived in part. Until the rest arrives, it cannot send.
int tern_ssl_has_incomplete_message(const tern_ssl_session *session);
/// Returns 1 if the last read emptied the buffer of the socket.
int tern_ssl_is_drained(const tern_ssl_session *session);
int tern_ssl_is_resumed(const tern_ssl_session *session);
int tern_ssl_is_tls13(const tern_ssl_session *session);
const char *tern_ssl_cipher_name(const tern_ssl_session *session);
/// Returns the name of the negotiated protocol, which does not end with a zero byte. The count is 0 if there is none.
const uint8_t *tern_ssl_protocol(const tern_ssl_session *session, size_t *count);
/// Bytes that belong to the caller.
typedef struct {
    const uint8_t *bytes;
    size_t length;
} tern_ssl_bytes;

/// Judges certificates that another implementation of TLS has received, in DER form, the server's own first, and the
/// stapled response, which may be empty: by the rules of this session, which then makes no handshake. The server has
/// proved to hold the key of the first one. Returns 1 if they are accepted; `tern_ssl_session_failure` tells why not.
int tern_ssl_judge_certificates(
    tern_ssl_session *session, const tern_ssl_bytes *certificates, size_t count, tern_ssl_bytes staple);
/// Returns the time, in seconds since 1970, at which the first certificate of the verified chain expires. INT64_MAX if
/// nothing was verified.
int64_t tern_ssl_chain_expiry(const tern_ssl_session *session);

/// The state of a stapled response (RFC 6960) that is required.
typedef enum {
    TERN_SSL_STAPLE_GOOD,
    TERN_SSL_STAPLE_MISSING,
    TERN_SSL_STAPLE_MALFORMED,
    TERN_SSL_STAPLE_UNTRUSTED,
    TERN_SSL_STAPLE_FOREIGN,
    TERN_SSL_STAPLE_REVOKED,
    TERN_SSL_STAPLE_UNKNOWN,
    TERN_SSL_STAPLE_OUTDATED,
} tern_ssl_staple;

/// The cause of a failed session.
typedef struct {
    /// The error number of the system call that failed; 0 for none.
    int system_error;
    /// OpenSSL's number of the rule that the chain violates (X509_V_ERR_…); 0 for none.
    int verify_error;
    tern_ssl_staple staple;
    /// 1 if the certificate is for another name or address.
    int is_other_host;
    /// 1 if the judge refused the chain.
    int is_refused;
    /// 1 if the connection ended within the handshake.
    int is_ended;
    /// 1 if the server sent many records without data.
    int is_flood;
    /// 1 if the first bytes of the server are not TLS.
    int is_not_tls;
    /// OpenSSL's constant text for `verify_error`, or for the failure; null if there is none.
    const char *text;
} tern_ssl_failure;

tern_ssl_failure tern_ssl_session_failure(const tern_ssl_session *session);
/// Writes the text for an error number of the system.
void tern_ssl_system_text(int number, char *text, size_t length);

// --- Chains and tickets -------------------------------------------------------------------------------------------

/// Returns the number of certificates of the verified chain, the server's own first; 1 if nothing was verified.
int tern_ssl_chain_length(tern_ssl_chain *chain);
/// Returns OpenSSL's constant text for the rule that the certificates violate; null if they are verified, or if nothing
/// was to be verified.
const char *tern_ssl_chain_failure(tern_ssl_chain *chain);
/// Writes a certificate in DER form to memory that `tern_ssl_free_bytes` frees. Returns the number of bytes, or 0.
int tern_ssl_chain_certificate(tern_ssl_chain *chain, int index, uint8_t **bytes);
void tern_ssl_free_bytes(uint8_t *bytes);
/// Returns the time, in seconds since 1970, from which a ticket is not valid.
int64_t tern_ssl_ticket_expiry(const tern_ssl_ticket *ticket);
void tern_ssl_ticket_free(tern_ssl_ticket *ticket);

// --- Hash functions -----------------------------------------------------------------------------------------------

/// A hash of bytes that arrive in pieces (EVP_MD_CTX). Only one thread at a time may use it.
typedef struct tern_hash tern_hash;
typedef enum { TERN_HASH_MD5, TERN_HASH_SHA1, TERN_HASH_SHA256, TERN_HASH_SHA512 } tern_hash_function;

/// Creates a hash of no bytes. Returns null without memory, and for a function that OpenSSL's configuration forbids.
tern_hash *tern_hash_create(tern_hash_function function);
/// Adds bytes. Returns 1, or 0 on failure.
int tern_hash_update(tern_hash *hash, const void *bytes, size_t count);
/// Writes the digest, at most 64 bytes, and returns its length; 0 on failure. Only `tern_hash_free` may follow.
size_t tern_hash_finish(tern_hash *hash, uint8_t *digest);
void tern_hash_free(tern_hash *hash);

#endif
#endif
