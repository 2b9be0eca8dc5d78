// A decoder of HPACK for the tests that answer a client frame by frame, and a server of nghttp2.
#ifndef CTERNTESTHTTP2_H
#define CTERNTESTHTTP2_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Returns a decoder, or NULL without memory. It lives as long as its connection.
void *tern_test_inflater_new(void);
void tern_test_inflater_free(void *inflater);
/// Writes the fields of a block as lines "name: value\n" to `text`. A line begins with "!" if no table may keep the
/// field. Returns the length of the text, or -1 for a block that is not valid or too long.
ptrdiff_t tern_test_inflate(void *inflater, const uint8_t *block, size_t length, uint8_t *text, size_t capacity);

/// The server's side of a connection over HTTP/2, without its socket.
typedef struct tern_test_http2 tern_test_http2;

/// Returns a server, or NULL without memory. It answers each request at its end: with RST_STREAM if `error` is not 0, and
/// otherwise with `status`, three digits, and no body.
tern_test_http2 *tern_test_http2_new(uint32_t error, const char *status);
void tern_test_http2_free(tern_test_http2 *server);
/// Takes bytes of the client. Returns -1 if they violate the protocol.
int tern_test_http2_receive(tern_test_http2 *server, const uint8_t *bytes, size_t length);
/// Writes the next bytes for the client. Returns their number, 0 for none, or -1.
ptrdiff_t tern_test_http2_output(tern_test_http2 *server, uint8_t *bytes, size_t capacity);
/// Returns the number of requests that were answered.
int tern_test_http2_requests(const tern_test_http2 *server);
#endif

#endif
