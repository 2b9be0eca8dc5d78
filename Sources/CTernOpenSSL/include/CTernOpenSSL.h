// Thin functions over OpenSSL 3 for TernEngine.
#ifndef CTERNOPENSSL_H
#define CTERNOPENSSL_H
#endif
