#ifndef CTERNZ_H
#define CTERNZ_H

#include <stddef.h>
#include <stdint.h>

#if __has_include(<zlib.h>)
#include <zlib.h>
#else
#error "zlib.h is missing: install zlib1g-dev (Debian, Ubuntu) or zlib-devel (Fedora)"
#endif

/// deflateInit2 is a macro that measures its caller's z_stream; windowBits 15 gives the zlib format (RFC 1950), 31 gzip
/// (RFC 1952).
int tern_deflate_begin(z_stream *stream, int level, int windowBits);

/// The codings of a response's body.
enum tern_coding { tern_coding_gzip, tern_coding_deflate, tern_coding_brotli, tern_coding_zstd };

/// Decodes one body, piece by piece. Used by one thread at a time.
typedef struct tern_decoder tern_decoder;

/// Whether the coding can be decoded here: brotli and zstd where their libraries are found.
int tern_decoder_knows(enum tern_coding coding);
/// Null without memory, and for a coding that is not known.
tern_decoder *tern_decoder_make(enum tern_coding coding);
void tern_decoder_free(tern_decoder *decoder);
/// Decodes what fits. The counts say what is there, and after the call what was taken and made; both 0 at the body's end,
/// and when more input is needed. Returns 0 for bytes that are not in the coding.
int tern_decoder_step(tern_decoder *decoder, const void *in, size_t *in_count, void *out, size_t *out_count);
/// Whether what was decoded so far is whole.
int tern_decoder_has_ended(const tern_decoder *decoder);

#endif
