#ifndef CTERNZ_H
#define CTERNZ_H

#include <stddef.h>
#include <stdint.h>

#if __has_include(<zlib.h>)
#include <zlib.h>
#else
#error "zlib.h is missing: install zlib1g-dev (Debian, Ubuntu) or zlib-devel (Fedora)"
#endif

/// Calls deflateInit2, a macro that measures its caller's z_stream. A value of 15 for windowBits selects the zlib
/// format (RFC 1950), and 31 selects gzip (RFC 1952).
int tern_deflate_begin(z_stream *stream, int level, int windowBits);

/// Calls inflateInit2, a macro like deflateInit2. A value from -15 to -8 for windowBits selects raw DEFLATE (RFC 1951).
int tern_inflate_begin(z_stream *stream, int windowBits);

/// The codings of a response's body.
enum tern_coding { tern_coding_gzip, tern_coding_deflate, tern_coding_brotli, tern_coding_zstd };

/// A decoder of one body, piece by piece. Only one thread at a time uses it.
typedef struct tern_decoder tern_decoder;

/// Returns whether the coding can be decoded here. Brotli and zstd need their libraries, which are found at run time.
int tern_decoder_knows(enum tern_coding coding);
/// Creates a decoder. Returns null if memory is short or the coding is unknown.
tern_decoder *tern_decoder_make(enum tern_coding coding);
void tern_decoder_free(tern_decoder *decoder);
/// Decodes as much as fits. Before the call, the counts are the available bytes of input and output. After it, they are
/// the bytes that were consumed and produced. Both are 0 at the body's end, and when more input is needed. Returns 0 if
/// the bytes are not in the coding.
int tern_decoder_step(tern_decoder *decoder, const void *in, size_t *in_count, void *out, size_t *out_count);
/// Returns whether the bytes decoded so far are a whole body.
int tern_decoder_has_ended(const tern_decoder *decoder);

#endif
