// A client's end of one HTTP/3 connection, for TernHTTP3: QUIC by ngtcp2, HTTP/3 and QPACK by nghttp3, and the
// handshake by GnuTLS, all loaded at run time. It has no socket and no clock: datagrams and times go in, datagrams,
// deadlines and events come out. On other systems than Linux this header is empty.
#ifndef CTERNHTTP3_H
#define CTERNHTTP3_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>

/// A connection. Not safe for use by two threads at once, and its callbacks must not free it.
typedef struct tern_h3 tern_h3;

/// The reason why HTTP/3 cannot be used: a library that is missing or too old, and its package; NULL if it can. The
/// first call loads the libraries.
const char *tern_h3_obstacle(void);

/// A field of a request, as two ranges of one buffer.
typedef struct {
    uint32_t name;
    uint32_t name_length;
    uint32_t value;
    uint32_t value_length;
    /// 1 for a value that no table of QPACK may keep (RFC 9204 §7.1.3).
    uint32_t is_secret;
} tern_h3_field;

/// The results of a callback.
enum {
    TERN_H3_OK = 0,
    /// The request of the stream is given up: the caller has failed it, and calls `tern_h3_cancel` itself.
    TERN_H3_DROP = 1,
    /// The body of the request has no bytes yet.
    TERN_H3_WAIT = -1,
    /// The body of the request has failed. The stream is reset.
    TERN_H3_FAILED = -2,
};

/// The flags of the body's last bytes.
enum { TERN_H3_BODY_ENDS = 1, TERN_H3_TRAILERS_FOLLOW = 2 };

/// The certificates of the server, in DER form, the server's own first.
typedef struct {
    const uint8_t *bytes;
    size_t length;
} tern_h3_bytes;

typedef struct {
    /// Judges the server's certificates and the stapled response of OCSP, which may be empty. Returns 0 to accept
    /// them, or the alert of TLS that refuses them. No byte of HTTP is sent before. Called once for each connection,
    /// also for one that resumes a session.
    uint8_t (*verify)(void *context, const tern_h3_bytes *certificates, size_t count, tern_h3_bytes staple);
    /// The handshake is complete, and the certificates are accepted.
    void (*connected)(void *context, int is_resumed);
    /// Data that resumes the session later. Several can arrive.
    void (*ticket)(void *context, const uint8_t *bytes, size_t length);
    /// A token that proves the client's address to the server in a later connection (RFC 9000 §8.1.3).
    void (*token)(void *context, const uint8_t *bytes, size_t length);
    /// A line of a key log in NSS's format, without a line break. Not called unless `logs_keys` is set.
    void (*key)(void *context, const char *line);
    void (*settings)(void *context, int allows_connect_protocol, uint64_t field_section_limit);
    /// The server allows more requests.
    void (*streams)(void *context);
    void (*begin_head)(void *context, int64_t stream, int is_trailer);
    int (*field)(
        void *context, int64_t stream, const uint8_t *name, size_t name_length, const uint8_t *value,
        size_t value_length);
    void (*end_head)(void *context, int64_t stream, int is_trailer, int is_last);
    void (*data)(void *context, int64_t stream, const uint8_t *bytes, size_t length);
    /// The server has ended its side of the stream.
    void (*ended)(void *context, int64_t stream);
    /// The server has reset its side of the stream.
    void (*reset)(void *context, int64_t stream, uint64_t code);
    /// The server reads no more of the request's body (STOP_SENDING).
    void (*stopped)(void *context, int64_t stream);
    /// The message violates a rule of HTTP/3. The stream is reset by the library.
    void (*malformed)(void *context, int64_t stream, uint64_t code);
    /// Both sides of the stream have ended. `code` is H3_NO_ERROR unless the stream was reset.
    void (*closed)(void *context, int64_t stream, uint64_t code);
    /// GOAWAY: streams from `first` on were not processed.
    void (*going_away)(void *context, int64_t first);
    /// Writes the next bytes of a request's body. Returns their number, TERN_H3_WAIT or TERN_H3_FAILED.
    ptrdiff_t (*read)(void *context, int64_t stream, uint8_t *bytes, size_t length, uint32_t *flags);
} tern_h3_callbacks;

typedef struct {
    /// The name that the server is asked for by TLS; NULL for an address.
    const char *server_name;
    /// Addresses in the system's form (`struct sockaddr`), whose headers would confuse Swift's imports.
    const void *local;
    uint32_t local_length;
    const void *remote;
    uint32_t remote_length;
    /// The bytes of a ticket and of a token of an earlier connection; 0 for none.
    tern_h3_bytes ticket;
    tern_h3_bytes token;
    /// The certificates and the key that are shown to a server that asks for them, in PEM form; empty for none.
    tern_h3_bytes identity;
    tern_h3_bytes identity_key;
    uint64_t stream_window;
    uint64_t connection_window;
    uint64_t head_limit;
    /// In nanoseconds.
    uint64_t idle_timeout;
    uint64_t handshake_timeout;
    uint64_t now;
    /// 1 for BBR, 0 for CUBIC.
    int uses_bbr;
    int logs_keys;
} tern_h3_settings;

typedef enum {
    TERN_H3_ALIVE,
    /// A rule of QUIC or HTTP/3 was violated by the server, or the library failed.
    TERN_H3_LOCAL,
    /// The certificates were refused, or the handshake of TLS failed here. The code is the alert.
    TERN_H3_LOCAL_ALERT,
    /// The server closed the connection with a code of QUIC.
    TERN_H3_PEER_TRANSPORT,
    /// The server closed the connection with a code of HTTP/3.
    TERN_H3_PEER_APPLICATION,
    TERN_H3_IDLE,
    TERN_H3_HANDSHAKE_TIMEOUT,
    TERN_H3_STATELESS_RESET,
    /// The server speaks no version of QUIC that is spoken here.
    TERN_H3_VERSION,
} tern_h3_cause;

/// The reason why a connection ended.
typedef struct {
    tern_h3_cause cause;
    uint64_t code;
    /// A text of the library, or the reason that the server states; not terminated, and untrusted.
    char reason[128];
    size_t reason_length;
} tern_h3_failure;

/// Creates a connection, whose first datagram `tern_h3_send` gives. Returns NULL without memory, or for settings that
/// GnuTLS refuses.
tern_h3 *tern_h3_new(const tern_h3_callbacks *callbacks, void *context, const tern_h3_settings *settings);
void tern_h3_free(tern_h3 *session);

/// Takes a datagram. `ecn` holds the two bits of its header. Returns 0, or -1 when the connection has to end.
int tern_h3_receive(tern_h3 *session, const uint8_t *bytes, size_t length, uint8_t ecn, uint64_t now);
/// Writes datagrams of one size, the last of which may be shorter, and returns the number of their bytes; 0 if there
/// is nothing to send, and -1 when the connection has to end. `segment` becomes the size of each, and `ecn` the bits
/// for their headers. `capacity` is at least 64 KiB.
ptrdiff_t tern_h3_send(
    tern_h3 *session, uint8_t *bytes, size_t capacity, size_t *segment, uint8_t *ecn, uint64_t now);
/// The time at which `tern_h3_expire` must be called; UINT64_MAX for none.
uint64_t tern_h3_deadline(tern_h3 *session);
/// Does what is due. Returns 0, or -1 when the connection has to end.
int tern_h3_expire(tern_h3 *session, uint64_t now);
/// Writes the datagram that tells the server the end of the connection, after an error or for a code of HTTP/3.
/// Returns the number of its bytes; 0 if none is to be sent.
ptrdiff_t tern_h3_close(tern_h3 *session, uint64_t code, uint8_t *bytes, size_t capacity, uint64_t now);
/// The reason why the connection ended.
void tern_h3_get_failure(const tern_h3 *session, tern_h3_failure *failure);

/// Begins a request. Returns the identifier of its stream; -1 if the server allows no more streams now, and -2 if the
/// connection takes none.
int64_t tern_h3_submit(
    tern_h3 *session, const uint8_t *base, const tern_h3_field *fields, size_t count, int has_body);
/// Ends the body of a request with trailers, within `read`. Returns 0 or -1.
int tern_h3_submit_trailers(
    tern_h3 *session, int64_t stream, const uint8_t *base, const tern_h3_field *fields, size_t count);
/// Asks for the body of a request again after TERN_H3_WAIT.
void tern_h3_resume(tern_h3 *session, int64_t stream);
/// Gives bytes of a response's body back to the window of their stream.
void tern_h3_consume(tern_h3 *session, int64_t stream, size_t length);
/// Ends both sides of a stream with a code.
void tern_h3_cancel(tern_h3 *session, int64_t stream, uint64_t code);
/// Ends the request's side of a stream with a code.
void tern_h3_cancel_body(tern_h3 *session, int64_t stream, uint64_t code);
/// Tells the server a priority (RFC 9218). Returns 0 or -1.
int tern_h3_set_priority(tern_h3 *session, int64_t stream, const uint8_t *value, size_t length);
/// The number of requests that the server allows to begin now.
uint64_t tern_h3_streams_left(tern_h3 *session);
/// Whether a byte of the stream was written into a datagram.
int tern_h3_is_sent(tern_h3 *session, int64_t stream);
/// Continues the connection from another address of this machine (RFC 9000 §9). Returns 0 or -1.
int tern_h3_migrate(tern_h3 *session, const void *local, uint32_t length, uint64_t now);
/// Sends PING whenever the connection was silent for the time, in nanoseconds; 0 for never.
void tern_h3_keep_alive(tern_h3 *session, uint64_t interval);
/// Whether the server has not acknowledged everything that it must.
int tern_h3_awaits_acknowledgement(tern_h3 *session);
/// The time after which data without acknowledgement is sent again (RFC 9002 §6.2), in nanoseconds.
uint64_t tern_h3_probe_timeout(tern_h3 *session);
#endif

#endif
