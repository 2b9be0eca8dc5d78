// Loads ngtcp2, nghttp3 and GnuTLS, once in the life of the process.
#include "abi.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/CTernHTTP3.h"

typedef struct {
    const char *name;
    /// The address of the pointer to the function.
    void *place;
} symbol;

static quic_functions functions;
static char obstacle[256];
static bool isLoaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/// Loads a library and finds its functions. Writes the obstacle if it is missing, or lacks one of them.
static bool load(const char *name, const char *package, const symbol *symbols, size_t count) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(obstacle, sizeof obstacle, "HTTP/3 needs %s, in the package %s", name, package);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found) {
            snprintf(obstacle, sizeof obstacle, "HTTP/3 needs a newer %s: it has no %s", name, symbols[i].name);
            return false;
        }
        memcpy(symbols[i].place, &found, sizeof found);
    }
    return true;
}

static void load_all(void) {
    quic_functions *f = &functions;
    void **free_place = NULL;
    const symbol quic[] = {
        {"ngtcp2_conn_client_new_versioned", &f->client_new},
        {"ngtcp2_conn_del", &f->conn_del},
        {"ngtcp2_conn_read_pkt_versioned", &f->read_pkt},
        {"ngtcp2_conn_writev_stream_versioned", &f->writev_stream},
        {"ngtcp2_conn_write_connection_close_versioned", &f->write_close},
        {"ngtcp2_settings_default_versioned", &f->settings_default},
        {"ngtcp2_transport_params_default_versioned", &f->params_default},
        {"ngtcp2_conn_get_conn_info_versioned", &f->conn_info},
        {"ngtcp2_conn_get_pto", &f->get_pto},
        {"ngtcp2_conn_get_expiry", &f->get_expiry},
        {"ngtcp2_conn_handle_expiry", &f->handle_expiry},
        {"ngtcp2_conn_open_bidi_stream", &f->open_bidi},
        {"ngtcp2_conn_open_uni_stream", &f->open_uni},
        {"ngtcp2_conn_shutdown_stream_read", &f->shutdown_read},
        {"ngtcp2_conn_shutdown_stream_write", &f->shutdown_write},
        {"ngtcp2_conn_extend_max_stream_offset", &f->extend_stream},
        {"ngtcp2_conn_extend_max_offset", &f->extend_conn},
        {"ngtcp2_conn_extend_max_streams_uni", &f->extend_uni},
        {"ngtcp2_conn_get_streams_bidi_left", &f->streams_left},
        {"ngtcp2_conn_get_max_tx_udp_payload_size", &f->max_payload},
        {"ngtcp2_conn_get_path_max_tx_udp_payload_size", &f->path_payload},
        {"ngtcp2_conn_get_send_quantum", &f->send_quantum},
        {"ngtcp2_conn_update_pkt_tx_time", &f->update_tx_time},
        {"ngtcp2_conn_initiate_immediate_migration", &f->migrate},
        {"ngtcp2_conn_in_draining_period", &f->in_draining},
        {"ngtcp2_conn_in_closing_period", &f->in_closing},
        {"ngtcp2_conn_set_tls_native_handle", &f->set_tls},
        {"ngtcp2_conn_set_keep_alive_timeout", &f->set_keep_alive},
        {"ngtcp2_conn_get_tls_alert", &f->tls_alert},
        {"ngtcp2_conn_get_ccerr", &f->peer_error},
        {"ngtcp2_ccerr_set_liberr", &f->error_of_library},
        {"ngtcp2_ccerr_set_tls_alert", &f->error_of_alert},
        {"ngtcp2_ccerr_set_application_error", &f->error_of_application},
        {"ngtcp2_strerror", &f->error_text},
        {"ngtcp2_conn_initiate_key_update", &f->update_key},
    };
    const symbol crypto[] = {
        {"ngtcp2_crypto_gnutls_configure_client_session", &f->configure},
        {"ngtcp2_crypto_client_initial_cb", &f->client_initial},
        {"ngtcp2_crypto_recv_crypto_data_cb", &f->recv_crypto_data},
        {"ngtcp2_crypto_encrypt_cb", &f->encrypt},
        {"ngtcp2_crypto_decrypt_cb", &f->decrypt},
        {"ngtcp2_crypto_hp_mask_cb", &f->hp_mask},
        {"ngtcp2_crypto_recv_retry_cb", &f->recv_retry},
        {"ngtcp2_crypto_update_key_cb", &f->update_key_cb},
        {"ngtcp2_crypto_delete_crypto_aead_ctx_cb", &f->delete_aead},
        {"ngtcp2_crypto_delete_crypto_cipher_ctx_cb", &f->delete_cipher},
        {"ngtcp2_crypto_get_path_challenge_data_cb", &f->path_challenge},
        {"ngtcp2_crypto_version_negotiation_cb", &f->version_negotiation},
    };
    const symbol http[] = {
        {"nghttp3_conn_client_new_versioned", &f->h3_new},
        {"nghttp3_conn_del", &f->h3_del},
        {"nghttp3_settings_default_versioned", &f->h3_settings_default},
        {"nghttp3_mem_default", &f->h3_memory},
        {"nghttp3_rcbuf_get_buf", &f->h3_bytes},
        {"nghttp3_conn_bind_control_stream", &f->h3_bind_control},
        {"nghttp3_conn_bind_qpack_streams", &f->h3_bind_qpack},
        {"nghttp3_conn_read_stream", &f->h3_read},
        {"nghttp3_conn_writev_stream", &f->h3_write},
        {"nghttp3_conn_add_write_offset", &f->h3_written},
        {"nghttp3_conn_add_ack_offset", &f->h3_acked},
        {"nghttp3_conn_block_stream", &f->h3_block},
        {"nghttp3_conn_unblock_stream", &f->h3_unblock},
        {"nghttp3_conn_shutdown_stream_write", &f->h3_shutdown_write},
        {"nghttp3_conn_shutdown_stream_read", &f->h3_shutdown_read},
        {"nghttp3_conn_resume_stream", &f->h3_resume},
        {"nghttp3_conn_close_stream", &f->h3_close_stream},
        {"nghttp3_conn_submit_request", &f->h3_submit},
        {"nghttp3_conn_submit_trailers", &f->h3_trailers},
        {"nghttp3_conn_set_client_stream_priority", &f->h3_priority},
        {"nghttp3_err_infer_quic_app_error_code", &f->h3_error_code},
        {"nghttp3_strerror", &f->h3_error_text},
    };
    const symbol tls[] = {
        {"gnutls_init", &f->tls_init},
        {"gnutls_deinit", &f->tls_deinit},
        {"gnutls_priority_set_direct", &f->tls_priority},
        {"gnutls_alpn_set_protocols", &f->tls_alpn},
        {"gnutls_server_name_set", &f->tls_server_name},
        {"gnutls_ocsp_status_request_enable_client", &f->tls_ask_staple},
        {"gnutls_ocsp_status_request_get2", &f->tls_staple},
        {"gnutls_certificate_allocate_credentials", &f->tls_new_credentials},
        {"gnutls_certificate_free_credentials", &f->tls_free_credentials},
        {"gnutls_certificate_set_x509_key_mem", &f->tls_set_identity},
        {"gnutls_credentials_set", &f->tls_set_credentials},
        {"gnutls_session_set_verify_function", &f->tls_set_verify},
        {"gnutls_certificate_get_peers", &f->tls_peers},
        {"gnutls_session_set_ptr", &f->tls_set_pointer},
        {"gnutls_session_get_ptr", &f->tls_pointer},
        {"gnutls_session_set_keylog_function", &f->tls_set_key_log},
        {"gnutls_session_get_random", &f->tls_random},
        {"gnutls_handshake_set_hook_function", &f->tls_set_hook},
        {"gnutls_session_get_data2", &f->tls_ticket},
        {"gnutls_session_set_data", &f->tls_set_ticket},
        {"gnutls_session_is_resumed", &f->tls_is_resumed},
        {"gnutls_strerror", &f->tls_error_text},
        // A variable that holds the function.
        {"gnutls_free", &free_place},
    };
    // The packages are those of Debian 13 and of bookworm-backports.
    if (!load("libngtcp2.so.16", "libngtcp2-16", quic, LENGTH(quic))) return;
    if (!load("libngtcp2_crypto_gnutls.so.8", "libngtcp2-crypto-gnutls8", crypto, LENGTH(crypto))) return;
    if (!load("libnghttp3.so.9", "libnghttp3-9", http, LENGTH(http))) return;
    if (!load("libgnutls.so.30", "libgnutls30", tls, LENGTH(tls))) return;
    memcpy(&f->tls_free, free_place, sizeof *free_place);
    isLoaded = true;
}

const quic_functions *tern_h3_functions(void) {
    pthread_once(&once, load_all);
    return isLoaded ? &functions : NULL;
}

const char *tern_h3_obstacle(void) { return tern_h3_functions() ? NULL : obstacle; }
#endif
