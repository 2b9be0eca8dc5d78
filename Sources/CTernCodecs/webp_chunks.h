// The chunks of a WebP file (RFC 9649), read by the decoder of whole files and by that of coming bytes alike.
#ifndef TERN_WEBP_CHUNKS_H
#define TERN_WEBP_CHUNKS_H

#include "CTernCodecs.h"

typedef struct {
    /// The bytes that the file says it has, and those of them that are there.
    uint64_t stated;
    size_t count;
    bool hasProfile, hasExif, isAnimation;
    /// Where the data of the profile and of EXIF lie; a count of 0 if they are not there, or not whole.
    size_t profile, profileCount, exif, exifCount;
    /// Whether the chunks before the picture are all there.
    bool reachesPicture;
    /// Frames that are whole, where the last of them ends, and how often they play.
    uint32_t frames, loops;
    size_t framesEnd;
} tern_webp_chunks;

/// Reads the chunks of 12 bytes or more.
tern_webp_chunks tern_webp_walk(const uint8_t *bytes, size_t count);
/// Whether the bytes end before what the picture is made of: a frame, or the orientation.
bool tern_webp_is_cut(const tern_webp_chunks *chunks);

#if defined(__linux__)
#include <webp/decode.h>
/// What a status of libwebp comes to, and its words.
tern_codec_result tern_webp_told(VP8StatusCode status, char *error);
#endif

#endif
