#if defined(__linux__)
#define _GNU_SOURCE
#include "CTernTLS.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// The prototypes of OpenSSL 1.1 and 3, with its types as plain pointers.
typedef int (*verify_callback)(void *store, void *argument);
typedef void (*free_callback)(void *parent, void *pointer, void *data, int index, long number, void *argument);

static struct {
    void (*SSL_CTX_set_cert_verify_callback)(void *, verify_callback, void *);
    int (*SSL_CTX_set_ex_data)(void *, int, void *);
    uint64_t (*SSL_CTX_set_options)(void *, uint64_t);
    void (*SSL_CTX_set_cert_store)(void *, void *);
    int (*SSL_has_pending)(const void *);
    void (*SSL_get0_alpn_selected)(const void *, const unsigned char **, unsigned *);
    int (*CRYPTO_get_ex_new_index)(int, long, void *, void *, void *, free_callback);
    int (*X509_verify_cert)(void *);
    int (*X509_STORE_CTX_get_error)(const void *);
    void (*X509_STORE_CTX_set_error)(void *, int);
    void *(*X509_STORE_CTX_get0_chain)(const void *);
    void *(*X509_STORE_CTX_get0_untrusted)(const void *);
    void *(*X509_STORE_CTX_get0_cert)(const void *);
    void *(*X509_STORE_CTX_new)(void);
    void (*X509_STORE_CTX_free)(void *);
    int (*X509_STORE_CTX_init)(void *, void *, void *, void *);
    void *(*X509_STORE_CTX_get0_param)(const void *);
    int (*X509_VERIFY_PARAM_set1)(void *, const void *);
    void *(*X509_STORE_CTX_get1_chain)(const void *);
    void (*X509_STORE_CTX_set0_verified_chain)(void *, void *);
    int (*OPENSSL_sk_num)(const void *);
    void *(*OPENSSL_sk_value)(const void *, int);
    int (*i2d_X509)(const void *, unsigned char **);
    void *(*d2i_X509)(void **, const unsigned char **, long);
    void (*X509_free)(void *);
    void *(*X509_STORE_new)(void);
    void (*X509_STORE_free)(void *);
    int (*X509_STORE_up_ref)(void *);
    int (*X509_STORE_add_cert)(void *, void *);
    int (*X509_STORE_set_flags)(void *, unsigned long);
    int (*X509_STORE_set_default_paths)(void *);
    int (*X509_STORE_load_locations)(void *, const char *, const char *);
    void *(*X509_STORE_add_lookup)(void *, void *);
    void *(*X509_LOOKUP_file)(void);
    int (*X509_load_crl_file)(void *, const char *, int);
    void (*CRYPTO_free)(void *, const char *, int);
} tls;

typedef struct {
    void *context;
    tern_tls_judge judge;
    tern_tls_release release;
} attachment;

static int attachment_index = -1;

static void detach(void *parent, void *pointer, void *data, int index, long number, void *argument) {
    (void)parent, (void)data, (void)index, (void)number, (void)argument;
    attachment *attached = pointer;
    if (!attached) return;
    attached->release(attached->context);
    free(attached);
}

int tern_tls_load(int major) {
    const char *ssl_name = major == 3 ? "libssl.so.3" : "libssl.so.1.1";
    const char *crypto_name = major == 3 ? "libcrypto.so.3" : "libcrypto.so.1.1";
    // Accepts only a library that is already loaded. A second OpenSSL besides libcurl's cannot use its objects.
    void *ssl = dlopen(ssl_name, RTLD_NOW | RTLD_NOLOAD);
    void *crypto = dlopen(crypto_name, RTLD_NOW | RTLD_NOLOAD);
    if (!ssl || !crypto) return 1;
#define FIND(library, name) \
    if (!(*(void **)&tls.name = dlsym(library, #name))) return 2
    FIND(ssl, SSL_CTX_set_cert_verify_callback);
    FIND(ssl, SSL_CTX_set_ex_data);
    FIND(ssl, SSL_CTX_set_options);
    FIND(ssl, SSL_CTX_set_cert_store);
    FIND(ssl, SSL_has_pending);
    FIND(ssl, SSL_get0_alpn_selected);
    FIND(crypto, CRYPTO_get_ex_new_index);
    FIND(crypto, X509_verify_cert);
    FIND(crypto, X509_STORE_CTX_get_error);
    FIND(crypto, X509_STORE_CTX_set_error);
    FIND(crypto, X509_STORE_CTX_get0_chain);
    FIND(crypto, X509_STORE_CTX_get0_untrusted);
    FIND(crypto, X509_STORE_CTX_get0_cert);
    FIND(crypto, X509_STORE_CTX_new);
    FIND(crypto, X509_STORE_CTX_free);
    FIND(crypto, X509_STORE_CTX_init);
    FIND(crypto, X509_STORE_CTX_get0_param);
    FIND(crypto, X509_VERIFY_PARAM_set1);
    FIND(crypto, X509_STORE_CTX_get1_chain);
    FIND(crypto, X509_STORE_CTX_set0_verified_chain);
    FIND(crypto, OPENSSL_sk_num);
    FIND(crypto, OPENSSL_sk_value);
    FIND(crypto, i2d_X509);
    FIND(crypto, d2i_X509);
    FIND(crypto, X509_free);
    FIND(crypto, X509_STORE_new);
    FIND(crypto, X509_STORE_free);
    FIND(crypto, X509_STORE_up_ref);
    FIND(crypto, X509_STORE_add_cert);
    FIND(crypto, X509_STORE_set_flags);
    FIND(crypto, X509_STORE_set_default_paths);
    FIND(crypto, X509_STORE_load_locations);
    FIND(crypto, X509_STORE_add_lookup);
    FIND(crypto, X509_LOOKUP_file);
    FIND(crypto, X509_load_crl_file);
    FIND(crypto, CRYPTO_free);
#undef FIND
    // CRYPTO_EX_INDEX_SSL_CTX is 1 in both versions.
    attachment_index = tls.CRYPTO_get_ex_new_index(1, 0, NULL, NULL, NULL, detach);
    return attachment_index >= 0 ? 0 : 3;
}

static int verify(void *store, void *argument) {
    attachment *attached = argument;
    return attached->judge(attached->context, store);
}

int tern_tls_attach(void *ssl_context, void *context, tern_tls_judge judge, tern_tls_release release) {
    attachment *attached = malloc(sizeof *attached);
    if (attached) {
        *attached = (attachment){context, judge, release};
        if (tls.SSL_CTX_set_ex_data(ssl_context, attachment_index, attached) == 1) {
            tls.SSL_CTX_set_cert_verify_callback(ssl_context, verify, attached);
            // SSL_OP_NO_RENEGOTIATION: the certificates of a connection are judged once, and cannot change later.
            tls.SSL_CTX_set_options(ssl_context, (uint64_t)1 << 30);
            return 1;
        }
        free(attached);
    }
    release(context);
    return 0;
}

int tern_tls_verify(void *store) {
    return tls.X509_verify_cert(store) == 1 && tls.X509_STORE_CTX_get_error(store) == 0;
}

// The set of the handshake itself belongs to libcurl. Up to 8.2, libcurl fills or replaces the set after the SSL_CTX
// callback, so anchors added there would be used together with the system's.
int tern_tls_verify_with(void *store, void *anchors) {
    int error = 1;  // X509_V_ERR_UNSPECIFIED
    void *own = tls.X509_STORE_CTX_new();
    void *leaf = tls.X509_STORE_CTX_get0_cert(store);
    // The purpose, the depth and the security level are those of the handshake.
    if (own && leaf
        && tls.X509_STORE_CTX_init(own, anchors, leaf, tls.X509_STORE_CTX_get0_untrusted(store)) == 1
        && tls.X509_VERIFY_PARAM_set1(
               tls.X509_STORE_CTX_get0_param(own), tls.X509_STORE_CTX_get0_param(store)) == 1) {
        int result = tls.X509_verify_cert(own);
        error = tls.X509_STORE_CTX_get_error(own);
        if (result != 1 && error == 0) error = 1;
        void *chain = error == 0 ? tls.X509_STORE_CTX_get1_chain(own) : NULL;
        if (chain) tls.X509_STORE_CTX_set0_verified_chain(store, chain);
        else if (error == 0) error = 1;
    }
    if (own) tls.X509_STORE_CTX_free(own);
    tls.X509_STORE_CTX_set_error(store, error);
    return error == 0;
}

void tern_tls_accept(void *store) { tls.X509_STORE_CTX_set_error(store, 0); }

int tern_tls_chain_length(void *store, int verified) {
    void *chain = verified ? tls.X509_STORE_CTX_get0_chain(store) : tls.X509_STORE_CTX_get0_untrusted(store);
    if (chain) {
        int count = tls.OPENSSL_sk_num(chain);
        if (count > 0) return count;
    }
    return tls.X509_STORE_CTX_get0_cert(store) ? 1 : 0;
}

int tern_tls_chain_certificate(void *store, int verified, int index, uint8_t **bytes) {
    void *chain = verified ? tls.X509_STORE_CTX_get0_chain(store) : tls.X509_STORE_CTX_get0_untrusted(store);
    void *certificate = chain && tls.OPENSSL_sk_num(chain) > index ? tls.OPENSSL_sk_value(chain, index) : NULL;
    if (!certificate && index == 0) certificate = tls.X509_STORE_CTX_get0_cert(store);
    *bytes = NULL;
    return certificate ? tls.i2d_X509(certificate, bytes) : 0;
}

void tern_tls_free(uint8_t *bytes) { tls.CRYPTO_free(bytes, "CTernTLS", 0); }

void *tern_tls_anchors_create(int with_system, const char *file) {
    void *anchors = tls.X509_STORE_new();
    if (!anchors) return NULL;
    if (with_system) {
        int loaded = file && tls.X509_STORE_load_locations(anchors, file, NULL) == 1;
        if (!loaded && tls.X509_STORE_set_default_paths(anchors) != 1) {
            tls.X509_STORE_free(anchors);
            return NULL;
        }
    }
    // X509_V_FLAG_PARTIAL_CHAIN: a pinned leaf or intermediate certificate is accepted as an anchor.
    tls.X509_STORE_set_flags(anchors, 0x80000);
    return anchors;
}

int tern_tls_anchors_add(void *anchors, const uint8_t *bytes, size_t count) {
    const unsigned char *place = bytes;
    void *certificate = tls.d2i_X509(NULL, &place, (long)count);
    if (!certificate) return 0;
    int added = place == bytes + count && tls.X509_STORE_add_cert(anchors, certificate) == 1;
    tls.X509_free(certificate);
    return added;
}

int tern_tls_anchors_add_revoked(void *anchors, const char *file) {
    void *lookup = tls.X509_STORE_add_lookup(anchors, tls.X509_LOOKUP_file());
    // X509_FILETYPE_PEM; X509_V_FLAG_CRL_CHECK and _ALL.
    if (!lookup || tls.X509_load_crl_file(lookup, file, 1) < 1) return 0;
    return tls.X509_STORE_set_flags(anchors, 0x4 | 0x8);
}

void tern_tls_anchors_free(void *anchors) { tls.X509_STORE_free(anchors); }

int tern_tls_has_input(void *ssl) { return tls.SSL_has_pending(ssl); }

int tern_tls_is_http2(void *ssl) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    tls.SSL_get0_alpn_selected(ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

void tern_tls_use_anchors(void *ssl_context, void *anchors) {
    // The SSL_CTX takes a reference over.
    tls.X509_STORE_up_ref(anchors);
    tls.SSL_CTX_set_cert_store(ssl_context, anchors);
}
#else
typedef int tern_tls_is_for_linux;
#endif
