// Contexts: anchors, lists of revoked certificates, and identities.
#if defined(__linux__)
#include "OpenSSLTypes.h"
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

// Without OPENSSL_INIT_NO_ATEXIT, OpenSSL would free its tables at the end of the process, while a loop can still use
// them.
static void initialize(void) { OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL); }

void tern_ssl_initialize(void) { pthread_once(&once, initialize); }

tern_ssl_context *tern_ssl_context_create(int minimum_is_tls13, int verifies_chain, int requires_staple) {
    tern_ssl_initialize();
    ERR_clear_error();
    tern_ssl_context *context = calloc(1, sizeof *context);
    SSL_CTX *ssl = context ? SSL_CTX_new(TLS_client_method()) : NULL;
    if (!ssl || SSL_CTX_set_min_proto_version(ssl, minimum_is_tls13 ? TLS1_3_VERSION : TLS1_2_VERSION) != 1) {
        SSL_CTX_free(ssl);
        free(context);
        return NULL;
    }
    context->ssl = ssl;
    context->verifies_chain = verifies_chain;
    context->requires_staple = requires_staple;
    // The certificates of a connection are judged once, and cannot change later.
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT);
    SSL_CTX_set_mode(
        ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    // A read ends after each buffer of records without data, so a flood of them cannot hold the loop.
    SSL_CTX_clear_mode(ssl, SSL_MODE_AUTO_RETRY);
    // One system call reads many small records, or a large one. Otherwise each record takes two calls. A buffer for
    // several large records showed no gain.
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, tern_ssl_verify_callback, NULL);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ssl, tern_ssl_ticket_callback);
    if (requires_staple) SSL_CTX_set_tlsext_status_cb(ssl, tern_ssl_staple_callback);
    return context;
}

void tern_ssl_context_free(tern_ssl_context *context) {
    if (!context) return;
    SSL_CTX_free(context->ssl);
    free(context);
}

void tern_ssl_context_log_keys(tern_ssl_context *context) {
    SSL_CTX_set_keylog_callback(context->ssl, tern_ssl_key_callback);
}

const char *tern_ssl_error_text(void) {
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "OpenSSL gives no reason";
}

static X509_STORE *anchors_of(tern_ssl_context *context) {
    ERR_clear_error();
    return SSL_CTX_get_cert_store(context->ssl);
}

int tern_ssl_context_share_authorities(tern_ssl_context *context, tern_ssl_authorities *authorities) {
    SSL_CTX_set1_cert_store(context->ssl, (X509_STORE *)authorities);
    return 1;
}

int tern_ssl_context_copy_authorities(tern_ssl_context *context, tern_ssl_authorities *authorities) {
    X509_STORE *source = (X509_STORE *)authorities, *anchors = anchors_of(context);
    // Another thread can be adding a certificate that it found in a folder.
    if (X509_STORE_lock(source) != 1) return 0;
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(source);
    int is_copied = 1;
    for (int index = 0; is_copied && index < sk_X509_OBJECT_num(objects); index++) {
        X509_OBJECT *object = sk_X509_OBJECT_value(objects, index);
        X509 *certificate = X509_OBJECT_get0_X509(object);
        X509_CRL *list = X509_OBJECT_get0_X509_CRL(object);
        if (certificate) is_copied = X509_STORE_add_cert(anchors, certificate) == 1;
        if (list) is_copied = X509_STORE_add_crl(anchors, list) == 1;
    }
    X509_STORE_unlock(source);
    return is_copied;
}

tern_ssl_authorities *tern_ssl_context_authorities(tern_ssl_context *context) {
    return (tern_ssl_authorities *)SSL_CTX_get_cert_store(context->ssl);
}

int tern_ssl_context_add_der(tern_ssl_context *context, const uint8_t *bytes, size_t count) {
    X509_STORE *anchors = anchors_of(context);
    const unsigned char *place = bytes;
    X509 *certificate = count <= LONG_MAX ? d2i_X509(NULL, &place, (long)count) : NULL;
    int added = certificate && place == bytes + count && X509_STORE_add_cert(anchors, certificate) == 1;
    X509_free(certificate);
    return added;
}

int tern_ssl_context_allow_partial_chains(tern_ssl_context *context) {
    return X509_STORE_set_flags(anchors_of(context), X509_V_FLAG_PARTIAL_CHAIN);
}

int tern_ssl_context_add_revoked(tern_ssl_context *context, const char *path) {
    X509_STORE *anchors = anchors_of(context);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(anchors, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) < 1) return 0;
    return X509_STORE_set_flags(anchors, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

// Answers with the given password. OpenSSL's own function would ask at the terminal.
static int give_password(char *buffer, int length, int is_for_writing, void *password) {
    (void)is_for_writing;
    size_t count = password ? strlen(password) : 0;
    if (length < 0 || count > (size_t)length) return -1;
    memcpy(buffer, password ? password : "", count);
    return (int)count;
}

static int use_identity(tern_ssl_context *context, X509 *certificate, EVP_PKEY *key, STACK_OF(X509) *others) {
    return certificate && key && SSL_CTX_use_cert_and_key(context->ssl, certificate, key, others, 1) == 1;
}

int tern_ssl_context_set_pem_identity(
    tern_ssl_context *context, const uint8_t *certificates, size_t certificates_count, const uint8_t *key,
    size_t key_count, const char *password) {
    ERR_clear_error();
    if (certificates_count > INT_MAX || key_count > INT_MAX) return 0;
    BIO *text = BIO_new_mem_buf(certificates, (int)certificates_count);
    BIO *key_text = BIO_new_mem_buf(key, (int)key_count);
    STACK_OF(X509) *others = sk_X509_new_null();
    X509 *own = text ? PEM_read_bio_X509_AUX(text, NULL, give_password, "") : NULL;
    int is_readable = own && others && key_text;
    while (is_readable) {
        X509 *other = PEM_read_bio_X509(text, NULL, give_password, "");
        if (!other) {
            // The end of the text is no failure.
            is_readable = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
            if (is_readable) ERR_clear_error();
            break;
        }
        if (sk_X509_push(others, other) <= 0) {
            X509_free(other);
            is_readable = 0;
        }
    }
    EVP_PKEY *own_key =
        is_readable ? PEM_read_bio_PrivateKey(key_text, NULL, give_password, (void *)password) : NULL;
    int is_used = is_readable && use_identity(context, own, own_key, others);
    EVP_PKEY_free(own_key);
    X509_free(own);
    sk_X509_pop_free(others, X509_free);
    BIO_free(key_text);
    BIO_free(text);
    return is_used;
}

int tern_ssl_context_set_pkcs12_identity(
    tern_ssl_context *context, const uint8_t *bytes, size_t count, const char *password) {
    ERR_clear_error();
    const unsigned char *place = bytes;
    PKCS12 *file = count <= LONG_MAX ? d2i_PKCS12(NULL, &place, (long)count) : NULL;
    EVP_PKEY *key = NULL;
    X509 *certificate = NULL;
    STACK_OF(X509) *others = NULL;
    int is_used = file && PKCS12_parse(file, password, &key, &certificate, &others) == 1
        && use_identity(context, certificate, key, others);
    EVP_PKEY_free(key);
    X509_free(certificate);
    sk_X509_pop_free(others, X509_free);
    PKCS12_free(file);
    return is_used;
}
// Moves the bytes of a text out of memory that OpenSSL clears.
static int take_text(BIO *text, tern_ssl_secret *secret) {
    char *bytes = NULL;
    long length = BIO_get_mem_data(text, &bytes);
    if (length <= 0) return 0;
    secret->bytes = OPENSSL_memdup(bytes, (size_t)length);
    secret->length = secret->bytes ? (size_t)length : 0;
    return secret->bytes != NULL;
}

int tern_ssl_context_get_identity(tern_ssl_context *context, tern_ssl_secret *chain, tern_ssl_secret *key) {
    ERR_clear_error();
    *chain = *key = (tern_ssl_secret){NULL, 0};
    X509 *own = SSL_CTX_get0_certificate(context->ssl);
    EVP_PKEY *own_key = SSL_CTX_get0_privatekey(context->ssl);
    STACK_OF(X509) *others = NULL;
    SSL_CTX_get0_chain_certs(context->ssl, &others);
    BIO *text = BIO_new(BIO_s_mem());
    BIO *key_text = BIO_new(BIO_s_secmem());
    int is_written = own && own_key && text && key_text && PEM_write_bio_X509(text, own) == 1
        && PEM_write_bio_PrivateKey(key_text, own_key, NULL, NULL, 0, NULL, NULL) == 1;
    for (int index = 0; is_written && index < sk_X509_num(others); index++) {
        is_written = PEM_write_bio_X509(text, sk_X509_value(others, index)) == 1;
    }
    is_written = is_written && take_text(text, chain) && take_text(key_text, key);
    BIO_free(key_text);
    BIO_free(text);
    return is_written;
}

void tern_ssl_secret_free(tern_ssl_secret secret) { OPENSSL_clear_free(secret.bytes, secret.length); }
#else
typedef int tern_openssl_context_is_for_linux;
#endif
