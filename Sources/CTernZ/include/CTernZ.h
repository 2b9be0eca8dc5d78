#ifndef CTERNZ_H
#define CTERNZ_H

#if __has_include(<zlib.h>)
#include <zlib.h>
#else
#error "zlib.h is missing: install zlib1g-dev (Debian, Ubuntu) or zlib-devel (Fedora)"
#endif

/// deflateInit2 is a macro that measures its caller's z_stream; windowBits 15 gives the zlib format (RFC 1950), 31 gzip
/// (RFC 1952).
int tern_deflate_begin(z_stream *stream, int level, int windowBits);

#endif
