// Detects JPEG bombs. A bomb of a few hundred KB repeats the same scan, or refines one coefficient at a time, and keeps
// libjpeg busy for seconds. The markers alone show this (ITU-T T.81, B.2).
#include "scans.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    int count;
    uint8_t ids[10];
    bool progressive, seen[10];
    // The lowest bit of each coefficient that a scan has contained; -1 for none.
    int8_t bits[10][64];
} components;

static void readFrame(components *all, const uint8_t *data, size_t length, bool progressive) {
    if (length < 6 || data[5] > 10 || length < 6 + (size_t)data[5] * 3) return;
    memset(all, 0, sizeof *all);
    memset(all->bits, -1, sizeof all->bits);
    all->progressive = progressive;
    all->count = data[5];
    for (int i = 0; i < all->count; i++) all->ids[i] = data[6 + i * 3];
}

/// Returns whether a scan adds a component, a coefficient or a bit that no earlier scan contained.
static bool isNews(components *all, const uint8_t *data, size_t length) {
    if (length < 1 || length < 4 + (size_t)data[0] * 2) return true;
    const uint8_t *last = data + 1 + data[0] * 2;
    int from = last[0], to = last[1] < 63 ? last[1] : 63, bit = last[2] & 15;
    bool news = false;
    for (int i = 0; i < data[0]; i++) {
        int component = 0;
        while (component < all->count && all->ids[component] != data[1 + i * 2]) component++;
        if (component == all->count) continue;
        news |= !all->seen[component];
        all->seen[component] = true;
        for (int k = from; all->progressive && k <= to; k++) {
            int8_t *known = &all->bits[component][k];
            news |= *known < 0 || bit < *known;
            if (*known < 0 || bit < *known) *known = (int8_t)bit;
        }
    }
    return news;
}

/// Returns the length of a segment whose bytes begin here. A length below 2 is wrong, and libjpeg goes on behind a segment
/// of this length that it skips: if the survey ended there, it would not see the scans that are decoded.
static size_t segmentLength(const uint8_t *at) {
    size_t length = (size_t)at[0] << 8 | at[1];
    return length < 2 ? 2 : length;
}

tern_codec_result tern_scan_survey(const uint8_t *bytes, size_t count, int limit, char *error) {
    components all = {0};
    int scans = 0, idle = 0;
    for (size_t at = 2; at + 4 <= count;) {
        // In a scan's data, a marker is FF followed by a byte that is neither 00 nor a restart. FF may be repeated
        // before it.
        const uint8_t *next = memchr(bytes + at, 0xFF, count - at);
        if (!next) break;
        at = (size_t)(next - bytes) + 1;
        if (at >= count) break;
        uint8_t marker = bytes[at];
        if (marker == 0xFF) continue;
        at++;
        if (marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) continue;
        if (marker == 0xD9 || count - at < 2) break;
        size_t length = segmentLength(bytes + at);
        if (length > count - at) break;
        const uint8_t *data = bytes + at + 2;
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
            readFrame(&all, data, length - 2, marker == 0xC2 || marker == 0xC6 || marker == 0xCA || marker == 0xCE);
        if (marker == 0xDA) {
            if (++scans > limit) {
                snprintf(error, 160, "more than %d scans", limit);
                return TERN_CODEC_SCANS;
            }
            if (!isNews(&all, data, length - 2) && ++idle > TERN_IDLE_SCANS) {
                snprintf(error, 160, "%d scans of what is known already", idle);
                return TERN_CODEC_SCANS;
            }
        }
        at += length;
    }
    return TERN_CODEC_OK;
}

tern_codec_result tern_jpeg_survey(
    const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, int scanLimit, char *error) {
    return tern_scan_survey(bytes, count, tern_scan_limit(width, height, scanLimit), error);
}
