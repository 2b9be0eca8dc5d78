// The parts of ngtcp2's, nghttp3's and GnuTLS's interfaces that this module uses. The libraries are loaded when the
// first connection needs them, so that a program without HTTP/3 builds and runs where they are missing. The layouts are
// those of version 1 of each structure, which the libraries take from callers in all later releases
// (NGTCP2_SETTINGS_V1, NGTCP2_TRANSPORT_PARAMS_V1, NGTCP2_CALLBACKS_V1, NGHTTP3_SETTINGS_V1, NGHTTP3_CALLBACKS_V1).
#ifndef TERN_H3_ABI_H
#define TERN_H3_ABI_H

#if defined(__linux__)
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

typedef void (*tern_any)(void);

// MARK: ngtcp2

enum {
    QUIC_MAX_CID = 20,
    QUIC_TOKEN = 16,
    QUIC_VERSION_1 = 1,
    QUIC_STREAM_FIN = 1,
    QUIC_CLOSE_HAS_CODE = 1,
    QUIC_WRITE_MORE = 1,
    QUIC_WRITE_FIN = 2,
    QUIC_LEVEL_1RTT = 2,
    QUIC_CUBIC = 1,
    QUIC_BBR = 2,
    QUIC_TOKEN_OF_SERVER = 2,
};

enum {
    QUIC_ERR_STREAM_ID_BLOCKED = -206,
    QUIC_ERR_STREAM_DATA_BLOCKED = -208,
    QUIC_ERR_CRYPTO = -213,
    QUIC_ERR_STREAM_SHUT_WR = -219,
    QUIC_ERR_STREAM_NOT_FOUND = -220,
    QUIC_ERR_VERSION = -222,
    QUIC_ERR_CLOSING = -223,
    QUIC_ERR_DRAINING = -224,
    QUIC_ERR_WRITE_MORE = -230,
    QUIC_ERR_DROP_CONN = -232,
    QUIC_ERR_HANDSHAKE_TIMEOUT = -236,
    QUIC_ERR_VERSION_FAILED = -237,
    QUIC_ERR_IDLE_CLOSE = -238,
    QUIC_ERR_CALLBACK_FAILURE = -502,
};

typedef struct {
    size_t datalen;
    uint8_t data[QUIC_MAX_CID];
} quic_cid;

typedef struct {
    struct sockaddr *addr;
    socklen_t addrlen;
} quic_addr;

typedef struct {
    quic_addr local;
    quic_addr remote;
    void *user_data;
} quic_path;

typedef struct __attribute__((aligned(8))) {
    uint8_t ecn;
} quic_pkt_info;

typedef struct {
    uint8_t *base;
    size_t len;
} quic_vec;

typedef struct {
    int type;
    uint64_t error_code;
    uint64_t frame_type;
    const uint8_t *reason;
    size_t reasonlen;
} quic_ccerr;

typedef struct {
    uint64_t latest_rtt;
    uint64_t min_rtt;
    uint64_t smoothed_rtt;
    uint64_t rttvar;
    uint64_t cwnd;
    uint64_t ssthresh;
    uint64_t bytes_in_flight;
} quic_conn_info;

typedef struct {
    void *native_handle;
} quic_rand_ctx;

typedef struct {
    tern_any qlog_write;
    int cc_algo;
    uint64_t initial_ts;
    uint64_t initial_rtt;
    tern_any log_printf;
    size_t max_tx_udp_payload_size;
    const uint8_t *token;
    size_t tokenlen;
    int token_type;
    quic_rand_ctx rand_ctx;
    uint64_t max_window;
    uint64_t max_stream_window;
    size_t ack_thresh;
    uint8_t no_tx_udp_payload_size_shaping;
    uint64_t handshake_timeout;
    const uint32_t *preferred_versions;
    size_t preferred_versionslen;
    const uint32_t *available_versions;
    size_t available_versionslen;
    uint32_t original_version;
    uint8_t no_pmtud;
    uint32_t initial_pkt_num;
} quic_settings;

typedef struct {
    quic_cid cid;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    uint8_t ipv4_present;
    uint8_t ipv6_present;
    uint8_t stateless_reset_token[QUIC_TOKEN];
} quic_preferred_addr;

typedef struct {
    uint32_t chosen_version;
    const uint8_t *available_versions;
    size_t available_versionslen;
} quic_version_info;

typedef struct {
    quic_preferred_addr preferred_addr;
    quic_cid original_dcid;
    quic_cid initial_scid;
    quic_cid retry_scid;
    uint64_t initial_max_stream_data_bidi_local;
    uint64_t initial_max_stream_data_bidi_remote;
    uint64_t initial_max_stream_data_uni;
    uint64_t initial_max_data;
    uint64_t initial_max_streams_bidi;
    uint64_t initial_max_streams_uni;
    uint64_t max_idle_timeout;
    uint64_t max_udp_payload_size;
    uint64_t active_connection_id_limit;
    uint64_t ack_delay_exponent;
    uint64_t max_ack_delay;
    uint64_t max_datagram_frame_size;
    uint8_t stateless_reset_token_present;
    uint8_t disable_active_migration;
    uint8_t original_dcid_present;
    uint8_t initial_scid_present;
    uint8_t retry_scid_present;
    uint8_t preferred_addr_present;
    uint8_t stateless_reset_token[QUIC_TOKEN];
    uint8_t grease_quic_bit;
    quic_version_info version_info;
    uint8_t version_info_present;
} quic_transport_params;

typedef struct quic_conn quic_conn;

typedef struct {
    tern_any client_initial;
    tern_any recv_client_initial;
    tern_any recv_crypto_data;
    int (*handshake_completed)(quic_conn *, void *);
    tern_any recv_version_negotiation;
    tern_any encrypt;
    tern_any decrypt;
    tern_any hp_mask;
    int (*recv_stream_data)(
        quic_conn *, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *, size_t, void *, void *);
    int (*acked_stream_data_offset)(
        quic_conn *, int64_t stream, uint64_t offset, uint64_t count, void *, void *);
    tern_any stream_open;
    int (*stream_close)(quic_conn *, uint32_t flags, int64_t stream, uint64_t code, void *, void *);
    int (*recv_stateless_reset)(quic_conn *, const void *, void *);
    tern_any recv_retry;
    int (*extend_max_local_streams_bidi)(quic_conn *, uint64_t, void *);
    tern_any extend_max_local_streams_uni;
    void (*rand)(uint8_t *, size_t, const quic_rand_ctx *);
    int (*get_new_connection_id)(quic_conn *, quic_cid *, uint8_t *token, size_t, void *);
    tern_any remove_connection_id;
    tern_any update_key;
    int (*path_validation)(
        quic_conn *, uint32_t flags, const quic_path *, const quic_path *old, int result, void *);
    tern_any select_preferred_addr;
    int (*stream_reset)(quic_conn *, int64_t stream, uint64_t size, uint64_t code, void *, void *);
    tern_any extend_max_remote_streams_bidi;
    tern_any extend_max_remote_streams_uni;
    int (*extend_max_stream_data)(quic_conn *, int64_t stream, uint64_t, void *, void *);
    tern_any dcid_status;
    tern_any handshake_confirmed;
    int (*recv_new_token)(quic_conn *, const uint8_t *, size_t, void *);
    tern_any delete_crypto_aead_ctx;
    tern_any delete_crypto_cipher_ctx;
    tern_any recv_datagram;
    tern_any ack_datagram;
    tern_any lost_datagram;
    tern_any get_path_challenge_data;
    int (*stream_stop_sending)(quic_conn *, int64_t stream, uint64_t code, void *, void *);
    tern_any version_negotiation;
    int (*recv_rx_key)(quic_conn *, int level, void *);
    int (*recv_tx_key)(quic_conn *, int level, void *);
    tern_any tls_early_data_rejected;
} quic_callbacks;

/// The pointer of GnuTLS's session, for ngtcp2's functions that call back from it.
typedef struct quic_conn_ref {
    quic_conn *(*get_conn)(struct quic_conn_ref *);
    void *user_data;
} quic_conn_ref;

// MARK: nghttp3

enum {
    H3_ERR_WOULDBLOCK = -103,
    H3_ERR_MALFORMED_HEADER = -105,
    H3_ERR_MALFORMED_MESSAGE = -107,
    H3_ERR_STREAM_NOT_FOUND = -110,
    H3_ERR_CALLBACK_FAILURE = -902,
    H3_NV_NEVER_INDEX = 1,
    H3_DATA_EOF = 1,
    H3_DATA_NO_END_STREAM = 2,
};

typedef struct h3_conn h3_conn;
typedef struct h3_rcbuf h3_rcbuf;

typedef struct {
    uint64_t max_field_section_size;
    size_t qpack_max_dtable_capacity;
    size_t qpack_encoder_max_dtable_capacity;
    size_t qpack_blocked_streams;
    uint8_t enable_connect_protocol;
    uint8_t h3_datagram;
} h3_settings;

typedef struct {
    int (*acked_stream_data)(h3_conn *, int64_t stream, uint64_t count, void *, void *);
    int (*stream_close)(h3_conn *, int64_t stream, uint64_t code, void *, void *);
    int (*recv_data)(h3_conn *, int64_t stream, const uint8_t *, size_t, void *, void *);
    int (*deferred_consume)(h3_conn *, int64_t stream, size_t, void *, void *);
    int (*begin_headers)(h3_conn *, int64_t stream, void *, void *);
    int (*recv_header)(
        h3_conn *, int64_t stream, int32_t token, h3_rcbuf *name, h3_rcbuf *value, uint8_t flags, void *, void *);
    int (*end_headers)(h3_conn *, int64_t stream, int fin, void *, void *);
    int (*begin_trailers)(h3_conn *, int64_t stream, void *, void *);
    int (*recv_trailer)(
        h3_conn *, int64_t stream, int32_t token, h3_rcbuf *name, h3_rcbuf *value, uint8_t flags, void *, void *);
    int (*end_trailers)(h3_conn *, int64_t stream, int fin, void *, void *);
    int (*stop_sending)(h3_conn *, int64_t stream, uint64_t code, void *, void *);
    int (*end_stream)(h3_conn *, int64_t stream, void *, void *);
    int (*reset_stream)(h3_conn *, int64_t stream, uint64_t code, void *, void *);
    int (*shutdown)(h3_conn *, int64_t id, void *);
    int (*recv_settings)(h3_conn *, const h3_settings *, void *);
} h3_callbacks;

typedef struct {
    const uint8_t *name;
    const uint8_t *value;
    size_t namelen;
    size_t valuelen;
    uint8_t flags;
} h3_nv;

typedef struct {
    ssize_t (*read_data)(
        h3_conn *, int64_t stream, quic_vec *, size_t count, uint32_t *flags, void *, void *);
} h3_data_reader;

// MARK: GnuTLS

enum {
    TLS_CLIENT = 1 << 1,
    TLS_FORCE_CLIENT_CERTIFICATE = 1 << 9,
    TLS_PEM = 1,
    TLS_CRD_CERTIFICATE = 1,
    TLS_NAME_DNS = 1,
    TLS_ALPN_MANDATORY = 1,
    TLS_NEW_SESSION_TICKET = 4,
    TLS_HOOK_POST = 1,
    TLS_E_CERTIFICATE_ERROR = -43,
};

typedef struct tls_session *tls_session;
typedef struct tls_credentials *tls_credentials;

typedef struct {
    unsigned char *data;
    unsigned int size;
} tls_datum;

// MARK: The functions

typedef struct {
    // ngtcp2
    int (*client_new)(
        quic_conn **, const quic_cid *dcid, const quic_cid *scid, const quic_path *, uint32_t version,
        int callbacks_version, const quic_callbacks *, int settings_version, const quic_settings *, int params_version,
        const quic_transport_params *, const void *memory, void *user_data);
    void (*conn_del)(quic_conn *);
    int (*read_pkt)(
        quic_conn *, const quic_path *, int info_version, const quic_pkt_info *, const uint8_t *, size_t, uint64_t);
    ssize_t (*writev_stream)(
        quic_conn *, quic_path *, int info_version, quic_pkt_info *, uint8_t *, size_t, ssize_t *count, uint32_t flags,
        int64_t stream, const quic_vec *, size_t, uint64_t);
    ssize_t (*write_close)(
        quic_conn *, quic_path *, int info_version, quic_pkt_info *, uint8_t *, size_t, const quic_ccerr *, uint64_t);
    void (*settings_default)(int version, quic_settings *);
    void (*params_default)(int version, quic_transport_params *);
    void (*conn_info)(quic_conn *, int version, quic_conn_info *);
    uint64_t (*get_pto)(quic_conn *);
    uint64_t (*get_expiry)(quic_conn *);
    int (*handle_expiry)(quic_conn *, uint64_t);
    int (*open_bidi)(quic_conn *, int64_t *, void *);
    int (*open_uni)(quic_conn *, int64_t *, void *);
    int (*shutdown_read)(quic_conn *, uint32_t flags, int64_t stream, uint64_t code);
    int (*shutdown_write)(quic_conn *, uint32_t flags, int64_t stream, uint64_t code);
    int (*extend_stream)(quic_conn *, int64_t stream, uint64_t);
    void (*extend_conn)(quic_conn *, uint64_t);
    void (*extend_uni)(quic_conn *, size_t);
    uint64_t (*streams_left)(quic_conn *);
    size_t (*max_payload)(quic_conn *);
    size_t (*path_payload)(quic_conn *);
    size_t (*send_quantum)(quic_conn *);
    void (*update_tx_time)(quic_conn *, uint64_t);
    int (*migrate)(quic_conn *, const quic_path *, uint64_t);
    int (*in_draining)(quic_conn *);
    int (*in_closing)(quic_conn *);
    void (*set_tls)(quic_conn *, void *);
    void (*set_keep_alive)(quic_conn *, uint64_t);
    uint8_t (*tls_alert)(quic_conn *);
    const quic_ccerr *(*peer_error)(quic_conn *);
    void (*error_of_library)(quic_ccerr *, int, const uint8_t *, size_t);
    void (*error_of_alert)(quic_ccerr *, uint8_t, const uint8_t *, size_t);
    void (*error_of_application)(quic_ccerr *, uint64_t, const uint8_t *, size_t);
    const char *(*error_text)(int);
    int (*update_key)(quic_conn *, uint64_t);
    // ngtcp2's functions for GnuTLS
    int (*configure)(tls_session);
    tern_any client_initial, recv_crypto_data, encrypt, decrypt, hp_mask, recv_retry, update_key_cb, delete_aead,
        delete_cipher, path_challenge, version_negotiation;
    // nghttp3
    int (*h3_new)(
        h3_conn **, int callbacks_version, const h3_callbacks *, int settings_version, const h3_settings *,
        const void *memory, void *user_data);
    void (*h3_del)(h3_conn *);
    void (*h3_settings_default)(int version, h3_settings *);
    const void *(*h3_memory)(void);
    quic_vec (*h3_bytes)(const h3_rcbuf *);
    int (*h3_bind_control)(h3_conn *, int64_t);
    int (*h3_bind_qpack)(h3_conn *, int64_t encoder, int64_t decoder);
    ssize_t (*h3_read)(h3_conn *, int64_t stream, const uint8_t *, size_t, int fin);
    ssize_t (*h3_write)(h3_conn *, int64_t *stream, int *fin, quic_vec *, size_t);
    int (*h3_written)(h3_conn *, int64_t stream, size_t);
    int (*h3_acked)(h3_conn *, int64_t stream, uint64_t);
    void (*h3_block)(h3_conn *, int64_t stream);
    int (*h3_unblock)(h3_conn *, int64_t stream);
    void (*h3_shutdown_write)(h3_conn *, int64_t stream);
    int (*h3_shutdown_read)(h3_conn *, int64_t stream);
    int (*h3_resume)(h3_conn *, int64_t stream);
    int (*h3_close_stream)(h3_conn *, int64_t stream, uint64_t code);
    int (*h3_submit)(h3_conn *, int64_t stream, const h3_nv *, size_t, const h3_data_reader *, void *);
    int (*h3_trailers)(h3_conn *, int64_t stream, const h3_nv *, size_t);
    int (*h3_priority)(h3_conn *, int64_t stream, const uint8_t *, size_t);
    uint64_t (*h3_error_code)(int);
    const char *(*h3_error_text)(int);
    // GnuTLS
    int (*tls_init)(tls_session *, unsigned flags);
    void (*tls_deinit)(tls_session);
    int (*tls_priority)(tls_session, const char *, const char **);
    int (*tls_alpn)(tls_session, const tls_datum *, unsigned, unsigned flags);
    int (*tls_server_name)(tls_session, int, const void *, size_t);
    int (*tls_ask_staple)(tls_session, void *, size_t, void *);
    int (*tls_staple)(tls_session, unsigned, tls_datum *);
    int (*tls_new_credentials)(tls_credentials *);
    void (*tls_free_credentials)(tls_credentials);
    int (*tls_set_identity)(tls_credentials, const tls_datum *chain, const tls_datum *key, int format);
    int (*tls_set_credentials)(tls_session, int, void *);
    void (*tls_set_verify)(tls_session, int (*)(tls_session));
    const tls_datum *(*tls_peers)(tls_session, unsigned *);
    void (*tls_set_pointer)(tls_session, void *);
    void *(*tls_pointer)(tls_session);
    void (*tls_set_key_log)(tls_session, int (*)(tls_session, const char *, const tls_datum *));
    void (*tls_random)(tls_session, tls_datum *client, tls_datum *server);
    void (*tls_set_hook)(
        tls_session, unsigned type, int when,
        int (*)(tls_session, unsigned type, unsigned when, unsigned incoming, const tls_datum *));
    int (*tls_ticket)(tls_session, tls_datum *);
    int (*tls_set_ticket)(tls_session, const void *, size_t);
    int (*tls_is_resumed)(tls_session);
    void (*tls_free)(void *);
    const char *(*tls_error_text)(int);
} quic_functions;

/// The loaded functions; NULL if a library is missing or too old, which `tern_h3_obstacle` then names.
const quic_functions *tern_h3_functions(void);

#endif
#endif
