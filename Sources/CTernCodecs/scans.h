// The cost of a JPEG of many scans, known before any is decoded.
#ifndef TERN_SCANS_H
#define TERN_SCANS_H

#include "CTernCodecs.h"

/// The scans that a picture may have: each is a pass over all of it, so a large one has fewer of them to spend, 12 in
/// any case.
static inline int tern_scan_limit(uint32_t width, uint32_t height, int limit) {
    uint64_t affordable = 400000000 / ((uint64_t)width * height + 1);
    if (affordable < 12) affordable = 12;
    return affordable < (uint64_t)(limit < 0 ? 0 : limit) ? (int)affordable : limit;
}

/// Scans that bring nothing that no scan before has brought: an encoder has no reason for more.
enum { TERN_IDLE_SCANS = 2 };

/// Walks over the markers of a file: SCANS if it has more scans than the limit, or too many that bring nothing.
tern_codec_result tern_scan_survey(const uint8_t *bytes, size_t count, int limit, char *error);

#endif
