// Hash functions for files.
#if defined(__linux__)
#include "OpenSSLTypes.h"
#include <openssl/evp.h>

tern_hash *tern_hash_create(tern_hash_function function) {
    const EVP_MD *digest = NULL;
    switch (function) {
    case TERN_HASH_MD5: digest = EVP_md5(); break;
    case TERN_HASH_SHA1: digest = EVP_sha1(); break;
    case TERN_HASH_SHA256: digest = EVP_sha256(); break;
    case TERN_HASH_SHA512: digest = EVP_sha512(); break;
    }
    EVP_MD_CTX *context = digest ? EVP_MD_CTX_new() : NULL;
    if (!context) return NULL;
    if (EVP_DigestInit_ex(context, digest, NULL) == 1) return (tern_hash *)context;
    EVP_MD_CTX_free(context);
    return NULL;
}

int tern_hash_update(tern_hash *hash, const void *bytes, size_t count) {
    return EVP_DigestUpdate((EVP_MD_CTX *)hash, bytes, count) == 1;
}

size_t tern_hash_finish(tern_hash *hash, uint8_t *digest) {
    unsigned int count = 0;
    return EVP_DigestFinal_ex((EVP_MD_CTX *)hash, digest, &count) == 1 ? count : 0;
}

void tern_hash_free(tern_hash *hash) { EVP_MD_CTX_free((EVP_MD_CTX *)hash); }
#endif
