// Authorities: certificates at which a chain can end, which many contexts share.
#if defined(__linux__)
#include "OpenSSLTypes.h"
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>

static X509_STORE *store_of(tern_ssl_authorities *authorities) {
    ERR_clear_error();
    return (X509_STORE *)authorities;
}

tern_ssl_authorities *tern_ssl_authorities_create(void) {
    tern_ssl_initialize();
    X509_STORE *store = X509_STORE_new();
    if (store && X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1) return (tern_ssl_authorities *)store;
    X509_STORE_free(store);
    return NULL;
}

void tern_ssl_authorities_free(tern_ssl_authorities *authorities) { X509_STORE_free((X509_STORE *)authorities); }

int tern_ssl_authorities_add_file(tern_ssl_authorities *authorities, const char *path) {
    return X509_STORE_load_file(store_of(authorities), path) == 1;
}

int tern_ssl_authorities_add_folder(tern_ssl_authorities *authorities, const char *path) {
    return X509_STORE_load_path(store_of(authorities), path) == 1;
}

int tern_ssl_authorities_add_default_locations(tern_ssl_authorities *authorities) {
    return X509_STORE_set_default_paths(store_of(authorities)) == 1;
}

int tern_ssl_authorities_add_pem(tern_ssl_authorities *authorities, const uint8_t *bytes, size_t count) {
    X509_STORE *store = store_of(authorities);
    BIO *text = count <= INT_MAX ? BIO_new_mem_buf(bytes, (int)count) : NULL;
    STACK_OF(X509_INFO) *found = text ? PEM_X509_INFO_read_bio(text, NULL, NULL, NULL) : NULL;
    int added = 0, is_readable = found != NULL;
    for (int index = 0; is_readable && index < sk_X509_INFO_num(found); index++) {
        X509_INFO *item = sk_X509_INFO_value(found, index);
        if (item->x509) is_readable = X509_STORE_add_cert(store, item->x509) == 1 && ++added > 0;
        if (is_readable && item->crl) is_readable = X509_STORE_add_crl(store, item->crl) == 1;
    }
    sk_X509_INFO_pop_free(found, X509_INFO_free);
    BIO_free(text);
    return is_readable && added > 0;
}
#else
typedef int tern_openssl_authorities_is_for_linux;
#endif
