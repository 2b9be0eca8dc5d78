#include "webp_chunks.h"

#if defined(__linux__)
#include <stdio.h>
#include <string.h>

enum { ICC = 0x20, EXIF = 0x08, ANIMATION = 0x02 };

static uint32_t number(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool named(const uint8_t *chunk, const char *name) { return !memcmp(chunk, name, 4); }

tern_webp_chunks tern_webp_walk(const uint8_t *bytes, size_t count) {
    tern_webp_chunks found = {.stated = (uint64_t)number(bytes + 4) + 8, .count = count, .loops = 1};
    if (found.stated < count) found.count = (size_t)found.stated;
    for (size_t at = 12; at + 8 <= found.count;) {
        const uint8_t *chunk = bytes + at;
        uint64_t size = number(chunk + 4), next = at + 8 + size + (size & 1);
        // The padding of the last chunk is not required.
        bool isWhole = at + 8 + size <= found.count;
        if (!found.lossy && named(chunk, "VP8 ")) found.lossy = at + 8;
        bool isPicture = named(chunk, "VP8 ") || named(chunk, "VP8L") || named(chunk, "ALPH") || named(chunk, "ANMF");
        if (at == 12 && named(chunk, "VP8X")) {
            if (found.count < 30) break;
            found.hasProfile = chunk[8] & ICC;
            found.hasExif = chunk[8] & EXIF;
            found.isAnimation = chunk[8] & ANIMATION;
        } else if (at == 12) {
            // The simple format: one picture chunk and no further information.
            found.reachesPicture = true;
            break;
        }
        if (!isWhole) {
            found.reachesPicture = found.reachesPicture || isPicture;
            break;
        }
        // The profile must stand before the picture (section 2.7) and is ignored after it.
        if (named(chunk, "ICCP") && !found.reachesPicture && !found.profileCount && found.hasProfile) {
            found.profile = at + 8;
            found.profileCount = (size_t)size;
        }
        if (named(chunk, "EXIF") && !found.exifCount && found.hasExif) {
            found.exif = at + 8;
            found.exifCount = (size_t)size;
        }
        if (named(chunk, "ANIM") && size >= 6) found.loops = chunk[12] | (uint32_t)chunk[13] << 8;
        if (named(chunk, "ANMF") && found.isAnimation) {
            found.frames++;
            found.framesEnd = next < found.count ? (size_t)next : found.count;
        }
        found.reachesPicture = found.reachesPicture || isPicture;
        if (next > found.count) break;
        at = (size_t)next;
    }
    return found;
}

// A decoder of arithmetic codes expects a value below its range, which is 255 (RFC 6386, section 7.3). The pixels that
// libwebp makes of a first byte of 255 depend on how many of the bytes after it are present. Only the last part can be
// incomplete when libwebp begins to read it.
bool tern_webp_depends_on_pieces(const uint8_t *bytes, size_t count) {
    const size_t frame = tern_webp_walk(bytes, count).lossy;
    if (frame == 0 || count - frame < 10) return true;
    const uint64_t first = (bytes[frame] | (uint64_t)bytes[frame + 1] << 8 | (uint64_t)bytes[frame + 2] << 16) >> 5;
    const uint64_t sizes = frame + 10 + first;
    // The first part holds the number of the others, 1, 2, 4 or 8, as a code. The sizes of all but the last come next.
    for (uint64_t others = 0; others < 8; others = others * 2 + 1) {
        uint64_t last = sizes + others * 3;
        if (last >= count) break;
        for (uint64_t at = sizes; at < sizes + others * 3; at += 3)
            last += bytes[at] | (uint64_t)bytes[at + 1] << 8 | (uint64_t)bytes[at + 2] << 16;
        if (last < count && bytes[last] == 255) return true;
    }
    return false;
}

bool tern_webp_is_cut(const tern_webp_chunks *chunks) {
    if (chunks->stated <= chunks->count) return false;
    return chunks->isAnimation || (chunks->hasExif && chunks->exifCount == 0);
}

bool tern_webp_hide_alpha(const WebPDecoderConfig *config, uint32_t firstRow, uint32_t endRow) {
    // A value of 2 stands for a lossless picture.
    if (config->input.has_alpha || config->input.format != 2 || firstRow >= endRow) return false;
    const WebPRGBABuffer *buffer = &config->output.u.RGBA;
    const uint32_t width = (uint32_t)(config->options.use_scaling ? config->options.scaled_width : config->input.width);
    const size_t stride = (size_t)buffer->stride;
    bool hasChanged = tern_make_opaque(buffer->rgba + stride * firstRow, stride, width, endRow - firstRow);
    return hasChanged && config->options.use_scaling;
}

tern_codec_result tern_webp_result(VP8StatusCode status, char *error) {
    const char *text = "the picture's data are damaged";
    tern_codec_result result = TERN_CODEC_CORRUPT;
    switch (status) {
    case VP8_STATUS_OK: return TERN_CODEC_OK;
    case VP8_STATUS_SUSPENDED: case VP8_STATUS_NOT_ENOUGH_DATA:
        text = "the bytes end too early";
        result = TERN_CODEC_TRUNCATED;
        break;
    case VP8_STATUS_OUT_OF_MEMORY:
        text = "out of memory";
        result = TERN_CODEC_MEMORY;
        break;
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        text = "a feature that libwebp does not know";
        result = TERN_CODEC_UNSUPPORTED;
        break;
    case VP8_STATUS_INVALID_PARAM: text = "sizes that contradict each other"; break;
    default: break;
    }
    snprintf(error, 160, "%s", text);
    return result;
}
#endif
