// The functions of OpenSSL that check a server's certificates. Tern does not link OpenSSL. At run time it finds the
// functions of the library that libcurl has loaded, so a libcurl with another TLS library works, too.
#ifndef CTERNTLS_H
#define CTERNTLS_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

/// Finds OpenSSL of this major version (1 or 3) if it is already loaded in this process. Returns 0 when all functions
/// are found.
int tern_tls_load(int major);

/// Judges the chain of one handshake. Returns 1 to continue the handshake and 0 to end it. While the function runs,
/// `store` is valid for the calls below.
typedef int (*tern_tls_judge)(void *context, void *store);
typedef void (*tern_tls_release)(void *context);

/// Sets the function that judges the certificates of each handshake of this SSL_CTX. The context is released with the
/// SSL_CTX. Returns 1, or 0 on failure, when the context is already released.
int tern_tls_attach(void *ssl_context, void *context, tern_tls_judge judge, tern_tls_release release);

/// Verifies the chain with OpenSSL. Returns 1 if the chain leads to one of libcurl's anchors and is in date.
int tern_tls_verify(void *store);
/// Verifies the chain with these anchors, which the caller still owns, and with no others.
int tern_tls_verify_with(void *store, void *anchors);
/// Accepts the chain without verification by OpenSSL.
void tern_tls_accept(void *store);
/// The chain from the leaf on: the verified chain, or the chain as the server sent it. The functions return its length,
/// and each certificate in DER form, which `tern_tls_free` frees. They return 0 if there is none.
int tern_tls_chain_length(void *store, int verified);
int tern_tls_chain_certificate(void *store, int verified, int index, uint8_t **bytes);
void tern_tls_free(uint8_t *bytes);

/// Creates a set of anchors. With `with_system`, the set includes those of the system, or of the file that libcurl
/// names. Returns null on failure.
void *tern_tls_anchors_create(int with_system, const char *file);
/// Adds a certificate in DER form. Returns 0 if the bytes are not a certificate.
int tern_tls_anchors_add(void *anchors, const uint8_t *bytes, size_t count);
/// Adds lists of revoked certificates from a file in PEM form, and requires one for each authority. Returns 0 on
/// failure.
int tern_tls_anchors_add_revoked(void *anchors, const char *file);
void tern_tls_anchors_free(void *anchors);
/// Judges stapled responses with these anchors, which the caller still owns. libcurl may add anchors to the set, so do
/// not use it for anything else.
void tern_tls_use_anchors(void *ssl_context, void *anchors);

/// Returns whether the TLS object of a connection holds bytes that were read from the socket but not delivered.
int tern_tls_has_input(void *ssl);
/// Returns whether the connection negotiated HTTP/2.
int tern_tls_is_http2(void *ssl);

#endif
#endif
