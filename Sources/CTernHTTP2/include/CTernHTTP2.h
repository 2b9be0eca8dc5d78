// Thin functions over a client session of nghttp2, for TernEngine. They flatten nghttp2's structures into numbers and
// pointers, and drop the events that the engine does not need. On other systems than Linux this header is empty.
#ifndef CTERNHTTP2_H
#define CTERNHTTP2_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>

/// A client session. Not safe for use by two threads at once.
typedef struct tern_h2 tern_h2;

/// A frame that was received or sent. The pointers are valid within the call.
typedef struct {
    uint8_t type;
    uint8_t flags;
    int32_t stream;
    /// The error code of RST_STREAM and GOAWAY.
    uint32_t code;
    /// The last stream of GOAWAY.
    int32_t last_stream;
    /// The opaque data of PING (8 bytes) and GOAWAY.
    const uint8_t *data;
    size_t length;
} tern_h2_frame;

/// A field of a request, as two ranges of one buffer.
typedef struct {
    uint32_t name;
    uint32_t name_length;
    uint32_t value;
    uint32_t value_length;
    /// 1 for a value that no table of HPACK may keep (RFC 7541 §7.1.3).
    uint32_t is_secret;
} tern_h2_field;

/// The results of a callback.
enum {
    TERN_H2_OK = 0,
    /// The rest of the header block is decoded and dropped.
    TERN_H2_DROP = -521,
    /// The body of the request has no bytes yet.
    TERN_H2_WAIT = -508,
    /// The session accepts no further input.
    TERN_H2_FATAL = -902
};

/// The flags of the body's last bytes.
enum { TERN_H2_BODY_ENDS = 1, TERN_H2_TRAILERS_FOLLOW = 2 };

typedef struct {
    int (*begin_headers)(void *context, int32_t stream, uint8_t flags);
    /// `length` includes the padding.
    int (*begin_data)(void *context, int32_t stream, uint8_t flags, size_t length);
    int (*header)(
        void *context, int32_t stream, const uint8_t *name, size_t name_length, const uint8_t *value,
        size_t value_length);
    int (*invalid_header)(void *context, int32_t stream);
    int (*data)(void *context, int32_t stream, const uint8_t *bytes, size_t length);
    /// HEADERS, DATA with END_STREAM, RST_STREAM, SETTINGS without ACK, PING with ACK, and GOAWAY.
    int (*received)(void *context, const tern_h2_frame *frame);
    /// HEADERS, DATA and GOAWAY.
    int (*sent)(void *context, const tern_h2_frame *frame);
    int (*not_sent)(void *context, uint8_t type, int32_t stream);
    int (*invalid_frame)(void *context, uint8_t type, int32_t stream, int error);
    int (*closed)(void *context, int32_t stream, uint32_t code);
    ptrdiff_t (*read)(void *context, int32_t stream, uint8_t *bytes, size_t length, uint32_t *flags);
} tern_h2_callbacks;

typedef struct {
    uint32_t stream_window;
    int32_t connection_window;
    uint32_t head_limit;
    /// The number of CONTINUATION frames of one header block, where the library has a limit for it.
    size_t continuations;
} tern_h2_settings;

/// Creates a session and queues its preface. Returns NULL without memory.
tern_h2 *tern_h2_new(const tern_h2_callbacks *callbacks, const tern_h2_settings *settings);
/// Sets the first argument of the callbacks, before the first call of the functions below.
void tern_h2_set_context(tern_h2 *session, void *context);
void tern_h2_free(tern_h2 *session);

ptrdiff_t tern_h2_receive(tern_h2 *session, const uint8_t *bytes, size_t length);
/// Returns the number of bytes of the next frame, valid until the next call; 0 if there is none.
ptrdiff_t tern_h2_send(tern_h2 *session, const uint8_t **bytes);
int tern_h2_wants_read(const tern_h2 *session);
int tern_h2_wants_write(const tern_h2 *session);
/// Returns 1 if the session can start a stream: it has a free identifier, and no GOAWAY was queued or received.
int tern_h2_can_request(const tern_h2 *session);

/// Returns the identifier of the new stream, or a negative error code.
int32_t tern_h2_submit(
    tern_h2 *session, const uint8_t *base, const tern_h2_field *fields, size_t count, int has_body);
int tern_h2_submit_trailers(
    tern_h2 *session, int32_t stream, const uint8_t *base, const tern_h2_field *fields, size_t count);
int tern_h2_reset(tern_h2 *session, int32_t stream, uint32_t code);
int tern_h2_resume(tern_h2 *session, int32_t stream);
int tern_h2_consume_stream(tern_h2 *session, int32_t stream, size_t length);
int tern_h2_consume_connection(tern_h2 *session, size_t length);
int tern_h2_ping(tern_h2 *session, const uint8_t *data);
int tern_h2_go_away(tern_h2 *session);
/// Queues GOAWAY with an error code, after which the session ignores its input.
int tern_h2_terminate(tern_h2 *session, uint32_t code);
int tern_h2_update_priority(tern_h2 *session, int32_t stream, const uint8_t *value, size_t length);
/// The peer's SETTINGS_MAX_CONCURRENT_STREAMS.
uint32_t tern_h2_maximum_streams(tern_h2 *session);
/// Returns 1 if the peer's SETTINGS allow extended CONNECT (RFC 8441 §3).
int tern_h2_allows_connect_protocol(tern_h2 *session);
/// The text of an error code of the library, which lives forever.
const char *tern_h2_error_text(int error);
#endif

#endif
