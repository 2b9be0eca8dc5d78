// Certificates, keys, lists of revoked certificates, and OCSP responses.
#if defined(__linux__)
#include "Identities.h"
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

static int add_extension(X509 *certificate, X509 *issuer, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    int added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

tern_test_identity *tern_test_identity_create(
    tern_test_identity *issuer, const char *common_name, const char *names, int is_authority, long start, long end) {
    tern_test_identity *identity = calloc(1, sizeof *identity);
    X509 *certificate = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!identity || !certificate || !key) return NULL;
    identity->certificate = certificate;
    identity->key = key;
    X509_set_version(certificate, X509_VERSION_3);
    uint32_t serial = 0;
    RAND_bytes((unsigned char *)&serial, sizeof serial);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), (long)(serial >> 1) + 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), start);
    X509_gmtime_adj(X509_getm_notAfter(certificate), end);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(
        X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0);
    X509 *parent = issuer ? issuer->certificate : certificate;
    X509_set_issuer_name(certificate, X509_get_subject_name(parent));
    int is_made = add_extension(certificate, parent, NID_subject_key_identifier, "hash");
    if (is_authority) {
        is_made = is_made && add_extension(certificate, parent, NID_basic_constraints, "critical,CA:TRUE")
            && add_extension(certificate, parent, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature");
    }
    if (names[0]) is_made = is_made && add_extension(certificate, parent, NID_subject_alt_name, names);
    if (is_made && X509_sign(certificate, issuer ? issuer->key : key, EVP_sha256()) > 0) return identity;
    tern_test_identity_free(identity);
    return NULL;
}

void tern_test_identity_free(tern_test_identity *identity) {
    if (!identity) return;
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    free(identity);
}

// Copies the contents of a memory BIO, and releases it.
static uint8_t *take(BIO *bio, int is_written, size_t *count) {
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    uint8_t *copy = is_written && length > 0 ? malloc((size_t)length) : NULL;
    if (copy) memcpy(copy, bytes, (size_t)length);
    *count = copy ? (size_t)length : 0;
    BIO_free(bio);
    return copy;
}

uint8_t *tern_test_certificate_der(tern_test_identity *identity, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    return take(bio, i2d_X509_bio(bio, identity->certificate), count);
}

uint8_t *tern_test_certificate_pem(tern_test_identity *identity, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    return take(bio, PEM_write_bio_X509(bio, identity->certificate), count);
}

uint8_t *tern_test_key_pem(tern_test_identity *identity, const char *password, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    const EVP_CIPHER *cipher = password ? EVP_aes_256_cbc() : NULL;
    int length = password ? (int)strlen(password) : 0;
    return take(bio, PEM_write_bio_PKCS8PrivateKey(bio, identity->key, cipher, password, length, NULL, NULL), count);
}

uint8_t *tern_test_pkcs12(tern_test_identity *identity, const char *password, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    PKCS12 *file = PKCS12_create(password, "test", identity->key, identity->certificate, NULL, 0, 0, 0, 0, 0);
    int is_written = file && i2d_PKCS12_bio(bio, file);
    PKCS12_free(file);
    return take(bio, is_written, count);
}

uint8_t *tern_test_crl_pem(tern_test_identity *issuer, tern_test_identity *revoked, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    X509_CRL *list = X509_CRL_new();
    X509_CRL_set_version(list, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->certificate));
    ASN1_TIME *now = X509_gmtime_adj(NULL, -3600), *next = X509_gmtime_adj(NULL, 86400);
    X509_CRL_set1_lastUpdate(list, now);
    X509_CRL_set1_nextUpdate(list, next);
    if (revoked) {
        X509_REVOKED *entry = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->certificate));
        X509_REVOKED_set_revocationDate(entry, now);
        X509_CRL_add0_revoked(list, entry);
    }
    int is_written = X509_CRL_sign(list, issuer->key, EVP_sha256()) > 0 && PEM_write_bio_X509_CRL(bio, list);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    X509_CRL_free(list);
    return take(bio, is_written, count);
}

uint8_t *tern_test_staple(
    tern_test_identity *signer, tern_test_identity *issuer, tern_test_identity *subject, int status, long start,
    long end, size_t *count) {
    BIO *bio = BIO_new(BIO_s_mem());
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *identity = OCSP_cert_to_id(EVP_sha256(), subject->certificate, issuer->certificate);
    ASN1_TIME *from = X509_gmtime_adj(NULL, start), *until = end ? X509_gmtime_adj(NULL, end) : NULL;
    int is_written =
        OCSP_basic_add1_status(
            basic, identity, status, status == 1 ? OCSP_REVOKED_STATUS_KEYCOMPROMISE : 0, status == 1 ? from : NULL,
            from, until)
        && OCSP_basic_sign(basic, signer->certificate, signer->key, EVP_sha256(), NULL, 0);
    OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    is_written = is_written && response && i2d_OCSP_RESPONSE_bio(bio, response);
    OCSP_RESPONSE_free(response);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    OCSP_CERTID_free(identity);
    OCSP_BASICRESP_free(basic);
    return take(bio, is_written, count);
}
#else
typedef int tern_test_identities_are_for_linux;
#endif
