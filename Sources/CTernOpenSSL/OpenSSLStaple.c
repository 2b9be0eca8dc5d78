// Stapled responses (RFC 6066 §8, RFC 6960).
#if defined(__linux__)
#include "OpenSSLTypes.h"
#include <openssl/ocsp.h>

// The clock of a responder may differ by this many seconds.
#define CLOCK_TOLERANCE 300L
// The age in seconds at which a response without a time of its next update is out of date.
#define LONGEST_AGE (7 * 86400L)

// Looks for the status of a certificate under the digests that responders use for its identity.
static tern_ssl_staple find_status(OCSP_BASICRESP *response, X509 *certificate, X509 *issuer) {
    const EVP_MD *digests[] = {EVP_sha1(), EVP_sha256()};
    for (int index = 0; index < 2; index++) {
        OCSP_CERTID *identity = OCSP_cert_to_id(digests[index], certificate, issuer);
        if (!identity) continue;
        int status = 0, reason = 0;
        ASN1_GENERALIZEDTIME *revoked = NULL, *from = NULL, *until = NULL;
        int is_found = OCSP_resp_find_status(response, identity, &status, &reason, &revoked, &from, &until);
        OCSP_CERTID_free(identity);
        if (is_found != 1) continue;
        if (status == V_OCSP_CERTSTATUS_REVOKED) return TERN_SSL_STAPLE_REVOKED;
        if (OCSP_check_validity(from, until, CLOCK_TOLERANCE, until ? -1 : LONGEST_AGE) != 1) {
            return TERN_SSL_STAPLE_OUTDATED;
        }
        return status == V_OCSP_CERTSTATUS_GOOD ? TERN_SSL_STAPLE_GOOD : TERN_SSL_STAPLE_UNKNOWN;
    }
    return TERN_SSL_STAPLE_FOREIGN;
}

static tern_ssl_staple check_response(
    OCSP_BASICRESP *response, X509 *certificate, STACK_OF(X509) *chain, X509_STORE *anchors) {
    if (!certificate || !chain || OCSP_basic_verify(response, chain, anchors, 0) != 1) {
        return TERN_SSL_STAPLE_UNTRUSTED;
    }
    for (int index = 0; index < sk_X509_num(chain); index++) {
        X509 *issuer = sk_X509_value(chain, index);
        if (X509_check_issued(issuer, certificate) == X509_V_OK) return find_status(response, certificate, issuer);
    }
    return TERN_SSL_STAPLE_FOREIGN;
}

tern_ssl_staple tern_ssl_judge_staple(
    const unsigned char *bytes, long count, X509 *certificate, STACK_OF(X509) *chain, X509_STORE *anchors) {
    if (count <= 0 || !bytes) return TERN_SSL_STAPLE_MISSING;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &bytes, count);
    if (!response) return TERN_SSL_STAPLE_MALFORMED;
    tern_ssl_staple result = TERN_SSL_STAPLE_MALFORMED;
    if (OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        OCSP_BASICRESP *basic = OCSP_response_get1_basic(response);
        if (basic) result = check_response(basic, certificate, chain, anchors);
        OCSP_BASICRESP_free(basic);
    }
    OCSP_RESPONSE_free(response);
    return result;
}

tern_ssl_staple tern_ssl_check_staple(SSL *ssl) {
    const unsigned char *bytes = NULL;
    long count = SSL_get_tlsext_status_ocsp_resp(ssl, &bytes);
    // Without verification there are only the certificates that the server sent.
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    if (!chain) chain = SSL_get_peer_cert_chain(ssl);
    return tern_ssl_judge_staple(
        bytes, count, SSL_get0_peer_certificate(ssl), chain, SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl)));
}
#else
typedef int tern_openssl_staple_is_for_linux;
#endif
