// Certificates and servers for the tests of TernEngine's TLS, in the process of the tests.
#ifndef CTERNTESTTLS_H
#define CTERNTESTTLS_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

/// A certificate with its key.
typedef struct tern_test_identity tern_test_identity;

/// Creates an identity. `names` is the value of subjectAltName, or empty. Without an issuer it signs itself. The times are
/// seconds from now.
tern_test_identity *tern_test_identity_create(
    tern_test_identity *issuer, const char *common_name, const char *names, int is_authority, long start, long end);
void tern_test_identity_free(tern_test_identity *identity);

// These functions return memory that `free` releases, or null.

uint8_t *tern_test_certificate_der(tern_test_identity *identity, size_t *count);
uint8_t *tern_test_certificate_pem(tern_test_identity *identity, size_t *count);
/// The key in PEM form, encrypted if `password` is not null.
uint8_t *tern_test_key_pem(tern_test_identity *identity, const char *password, size_t *count);
uint8_t *tern_test_pkcs12(tern_test_identity *identity, const char *password, size_t *count);
/// A list of revoked certificates in PEM form; empty if `revoked` is null.
uint8_t *tern_test_crl_pem(tern_test_identity *issuer, tern_test_identity *revoked, size_t *count);
/// An OCSP response in DER form. `status` is 0 for good, 1 for revoked and 2 for unknown.
uint8_t *tern_test_staple(
    tern_test_identity *signer, tern_test_identity *issuer, tern_test_identity *subject, int status, long start,
    long end, size_t *count);

/// The server's side of a connection over a non-blocking socket.
typedef struct tern_test_server tern_test_server;
/// The settings that the connections of a server share, such as the keys of tickets.
typedef struct tern_test_settings tern_test_settings;

typedef struct {
    tern_test_identity *identity;
    /// An intermediate authority to send; null for none.
    tern_test_identity *intermediate;
    /// The authority of the clients' certificates; null to request none.
    tern_test_identity *client_authority;
    /// 12 or 13: the only version; 0 for both.
    int version;
    /// The protocol to choose if the client offers it; null for none.
    const char *protocol;
    /// Choose `protocol` even if the client does not offer it.
    int forces_protocol;
    const uint8_t *staple;
    size_t staple_count;
} tern_test_options;

tern_test_settings *tern_test_settings_create(tern_test_options options);
void tern_test_settings_free(tern_test_settings *settings);

tern_test_server *tern_test_server_create(tern_test_settings *settings, int descriptor);
void tern_test_server_free(tern_test_server *server);
/// Return 1 when done, 0 to wait, and -1 for a failure.
int tern_test_server_handshake(tern_test_server *server);
/// Return the number of bytes, 0 to wait, -1 for a failure, and -2 for the end.
long tern_test_server_read(tern_test_server *server, uint8_t *bytes, size_t length);
long tern_test_server_write(tern_test_server *server, const uint8_t *bytes, size_t length);
void tern_test_server_close(tern_test_server *server);
/// Lets this number of further bytes reach the socket, records and all. Later ones are dropped.
void tern_test_server_limit_output(tern_test_server *server, size_t limit);
/// Lets this number of further bytes reach the socket, and keeps later ones until `release`.
void tern_test_server_hold_output(tern_test_server *server, size_t limit);
/// Sends the bytes that were kept. Returns 1 if the socket took all of them.
int tern_test_server_release_output(tern_test_server *server);
/// Sends a session ticket (TLS 1.3) in several records, of which the first is as large as TERN_TEST_RECORD_SIZE.
int tern_test_server_send_large_ticket(tern_test_server *server);
/// The size of a record with a fragment of 512 bytes.
#define TERN_TEST_RECORD_SIZE 534
/// Changes the server's keys (TLS 1.3), with a record without data.
int tern_test_server_update_keys(tern_test_server *server);
/// Changes the server's keys, and requests that the client changes its keys, too.
int tern_test_server_request_keys(tern_test_server *server);
/// Returns the name that the client asked for; null for none.
const char *tern_test_server_name(const tern_test_server *server);
int tern_test_server_is_resumed(const tern_test_server *server);
/// Returns 1 if the client has shown a certificate.
int tern_test_server_has_client(const tern_test_server *server);


#endif
#endif
