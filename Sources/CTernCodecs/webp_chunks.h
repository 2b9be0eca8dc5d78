// Reads the chunks of a WebP file (RFC 9649), for the decoder of whole files and for the incremental decoder.
#ifndef TERN_WEBP_CHUNKS_H
#define TERN_WEBP_CHUNKS_H

#include "CTernCodecs.h"

typedef struct {
    /// The number of bytes that the file declares, and the number of them that are present.
    uint64_t stated;
    size_t count;
    bool hasProfile, hasExif, isAnimation;
    /// The positions of the data of the profile and of EXIF; a count of 0 if they are missing or incomplete.
    size_t profile, profileCount, exif, exifCount;
    /// The position of the data of a lossy still picture; 0 if they are missing.
    size_t lossy;
    /// A Boolean value that indicates whether all chunks before the picture are present.
    bool reachesPicture;
    /// The number of complete frames, the end of the last one, and the number of times that they play.
    uint32_t frames, loops;
    size_t framesEnd;
} tern_webp_chunks;

/// Reads the chunks of at least 12 bytes.
tern_webp_chunks tern_webp_walk(const uint8_t *bytes, size_t count);
/// Returns whether the bytes end before a part that the picture needs: a frame or the orientation.
bool tern_webp_is_cut(const tern_webp_chunks *chunks);
/// Returns whether the pixels that libwebp makes of a lossy picture may depend on how its bytes arrive. They do if the
/// last part of its data begins with a byte that no encoder writes.
bool tern_webp_depends_on_pieces(const uint8_t *bytes, size_t count);

#if defined(__linux__)
#include <webp/decode.h>
/// Sets the alpha of rows to 255 if the header of a lossless picture states that it has none. Such a picture is opaque,
/// as in browsers, although libwebp writes the alpha that its data hold. Returns whether libwebp has lost the colours
/// of these rows: when it scales, it multiplies them by that alpha.
bool tern_webp_hide_alpha(const WebPDecoderConfig *config, uint32_t firstRow, uint32_t endRow);
/// Translates a status of libwebp into a result and an error text.
tern_codec_result tern_webp_result(VP8StatusCode status, char *error);
#endif

#endif
