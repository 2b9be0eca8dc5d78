// The type that the C files share.
#ifndef TERN_TEST_IDENTITIES_H
#define TERN_TEST_IDENTITIES_H

#include "CTernTestTLS.h"
#include <openssl/evp.h>
#include <openssl/x509.h>

struct tern_test_identity {
    X509 *certificate;
    EVP_PKEY *key;
};

#endif
