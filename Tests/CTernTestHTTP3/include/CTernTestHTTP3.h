// The server's side of a connection over HTTP/3 in memory, for the tests of `HTTP3Session`: ngtcp2 and GnuTLS, without
// nghttp3, so that a test can write any bytes into a stream, and any frames into a packet with valid protection.
#ifndef CTERNTESTHTTP3_H
#define CTERNTESTHTTP3_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>

typedef struct tern_test_http3 tern_test_http3;

typedef struct {
    /// The certificates and the key in PEM form.
    const uint8_t *chain;
    size_t chain_length;
    const uint8_t *key;
    size_t key_length;
    /// The bytes that the client may send in each stream and in all, and the number of its requests.
    uint64_t stream_window;
    uint64_t connection_window;
    uint64_t requests;
    /// The silence after which the connection ends, in nanoseconds.
    uint64_t idle_timeout;
    /// Whether the client is asked for a certificate, which is not checked.
    int requests_identity;
} tern_test_http3_options;

/// Returns the server for the first datagram of a client, which is still to be received; NULL if a library is missing, or
/// for another datagram.
tern_test_http3 *tern_test_http3_new(
    const uint8_t *datagram, size_t length, tern_test_http3_options options, uint64_t now);
void tern_test_http3_free(tern_test_http3 *server);

/// Takes a datagram of the client, which comes from a port. Returns 0, or an error of ngtcp2.
int tern_test_http3_receive(
    tern_test_http3 *server, const uint8_t *datagram, size_t length, uint16_t port, uint64_t now);
/// Writes the next datagram for the client. Returns its size, 0 for none, or an error of ngtcp2.
ptrdiff_t tern_test_http3_send(tern_test_http3 *server, uint8_t *datagram, size_t capacity, uint64_t now);
/// The time at which `tern_test_http3_expire` is to be called.
uint64_t tern_test_http3_deadline(tern_test_http3 *server);
int tern_test_http3_expire(tern_test_http3 *server, uint64_t now);

/// Opens a stream that the server alone writes. Returns its identifier, or an error of ngtcp2.
int64_t tern_test_http3_open(tern_test_http3 *server);
/// Writes bytes into a stream, once the client's window allows it. Returns 0, or -1 without memory.
int tern_test_http3_write(
    tern_test_http3 *server, int64_t stream, const uint8_t *bytes, size_t length, int is_last);
/// Ends the server's side of a stream with a code (RESET_STREAM).
int tern_test_http3_reset(tern_test_http3 *server, int64_t stream, uint64_t code);
/// Asks the client to end its side of a stream (STOP_SENDING).
int tern_test_http3_stop(tern_test_http3 *server, int64_t stream, uint64_t code);
/// Writes the datagram that ends the connection with a code of HTTP/3. Returns its size.
ptrdiff_t tern_test_http3_close(
    tern_test_http3 *server, uint64_t code, uint8_t *datagram, size_t capacity, uint64_t now);

/// Removes and returns the next stream that the client has ended; -1 for none. `length` becomes the number of its bytes.
int64_t tern_test_http3_request(tern_test_http3 *server, uint64_t *length);
/// Changes the keys of both sides (RFC 9001 §6). Returns 0, or an error of ngtcp2.
int tern_test_http3_update_key(tern_test_http3 *server, uint64_t now);
int tern_test_http3_is_resumed(tern_test_http3 *server);
/// The number of certificates that the client has shown.
size_t tern_test_http3_client_certificates(tern_test_http3 *server);
/// Whether the client's end of the connection was received.
int tern_test_http3_is_closed(tern_test_http3 *server);

/// Writes a datagram with any frames, protected by the keys of the connection. The server does not know of it, and ends
/// the connection when the client acknowledges it. Returns its size, or -1 before the server has sent such a packet.
ptrdiff_t tern_test_http3_seal(
    tern_test_http3 *server, const uint8_t *frames, size_t length, uint8_t *datagram, size_t capacity);
/// Writes the datagram of a server that has forgotten the connection (RFC 9000 §10.3). Returns its size.
ptrdiff_t tern_test_http3_stateless_reset(tern_test_http3 *server, uint8_t *datagram, size_t capacity);
/// Writes a datagram with the client's identifier of the connection and bytes without protection. Returns its size.
ptrdiff_t tern_test_http3_forge(
    tern_test_http3 *server, const uint8_t *bytes, size_t length, uint8_t *datagram, size_t capacity);
#endif

#endif
