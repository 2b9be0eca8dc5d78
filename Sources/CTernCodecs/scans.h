// Limits the cost of a JPEG with many scans before any scan is decoded.
#ifndef TERN_SCANS_H
#define TERN_SCANS_H

#include "CTernCodecs.h"

/// Returns the number of scans that a picture may have. Each scan is a pass over the whole picture, so a large picture
/// may have fewer of them, but always 12.
static inline int tern_scan_limit(uint32_t width, uint32_t height, int limit) {
    uint64_t affordable = 400000000 / ((uint64_t)width * height + 1);
    if (affordable < 12) affordable = 12;
    return affordable < (uint64_t)(limit < 0 ? 0 : limit) ? (int)affordable : limit;
}

/// The permitted number of scans that add nothing to the scans before them. An encoder has no reason for more.
enum { TERN_IDLE_SCANS = 2 };

/// Walks over the markers of a file. Returns SCANS if the file has more scans than the limit, or too many that add
/// nothing.
tern_codec_result tern_scan_survey(const uint8_t *bytes, size_t count, int limit, char *error);

#endif
