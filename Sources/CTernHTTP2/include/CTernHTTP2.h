// Thin functions over nghttp2 for TernEngine.
#ifndef CTERNHTTP2_H
#define CTERNHTTP2_H
#endif
