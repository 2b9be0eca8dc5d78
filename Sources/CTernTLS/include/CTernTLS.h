// OpenSSL, as far as the check of a server's certificates needs it. Nothing is linked: the functions are those of the very
// library that libcurl has loaded, found at run time, so that a libcurl with another TLS library runs as well.
#ifndef CTERNTLS_H
#define CTERNTLS_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

/// Finds OpenSSL of this major version (1 or 3), already loaded in this process. 0 when all of it is there.
int tern_tls_load(int major);

/// Judges the chain of one handshake: 1 to go on, 0 to end it. `store` is good for the calls below while it runs.
typedef int (*tern_tls_judge)(void *context, void *store);
typedef void (*tern_tls_release)(void *context);

/// Has the certificates of each handshake of this SSL_CTX judged. The context is released with the SSL_CTX. 1, or 0 on
/// failure, when the context was released already.
int tern_tls_attach(void *ssl_context, void *context, tern_tls_judge judge, tern_tls_release release);

/// What OpenSSL itself says of the chain: 1 when it leads to one of libcurl's anchors and is in date.
int tern_tls_verify(void *store);
/// The same by these anchors, which stay the caller's, and no others.
int tern_tls_verify_with(void *store, void *anchors);
/// Takes the chain as it is, whatever OpenSSL would say.
void tern_tls_accept(void *store);
/// The chain from the leaf on: the verified one, or as the server sent it. Its length, and each certificate in DER form;
/// `tern_tls_free` frees one. 0 for none.
int tern_tls_chain_length(void *store, int verified);
int tern_tls_chain_certificate(void *store, int verified, int index, uint8_t **bytes);
void tern_tls_free(uint8_t *bytes);

/// A set of anchors; `with_system`: those of the system, or of the file that libcurl names, too. Null on failure.
void *tern_tls_anchors_create(int with_system, const char *file);
/// Adds a certificate in DER form; 0 when it is none.
int tern_tls_anchors_add(void *anchors, const uint8_t *bytes, size_t count);
/// Adds lists of revoked certificates from a file in PEM form, and asks for one of each authority; 0 on failure.
int tern_tls_anchors_add_revoked(void *anchors, const char *file);
void tern_tls_anchors_free(void *anchors);
/// Judges what is stapled by these anchors, which stay the caller's. libcurl may add to them: they must serve for nothing else.
void tern_tls_use_anchors(void *ssl_context, void *anchors);

/// Returns whether the TLS object of a connection holds bytes that were read from the socket but not delivered.
int tern_tls_has_input(void *ssl);
/// Returns whether the connection negotiated HTTP/2.
int tern_tls_is_http2(void *ssl);

#endif
#endif
