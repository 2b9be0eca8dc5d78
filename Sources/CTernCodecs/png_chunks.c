#include "png_chunks.h"
#include "memory.h"

#if defined(__linux__)
#include <stdio.h>
#include <zlib.h>

bool tern_png_is_decoded(uint32_t type) {
    static const uint32_t types[] = {
        0x74524E53 /* tRNS */, 0x69434350 /* iCCP */, 0x73524742 /* sRGB */, 0x67414D41 /* gAMA */,
        0x6348524D /* cHRM */,
    };
    if (tern_png_is_critical(type)) return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == type) return true;
    return false;
}

bool tern_png_fits(const uint8_t *header, const tern_feed_limits *limits, char *error) {
    uint32_t width = tern_png_number(header), height = tern_png_number(header + 4);
    if ((uint64_t)width * height > limits->pixels) {
        snprintf(error, 160, "%u by %u pixels, limits.pixels is %llu", width, height,
                 (unsigned long long)limits->pixels);
        return false;
    }
    unsigned color = header[9], channels = ((color & 3) == 2 ? 3 : 1) + (color & 4 ? 1 : 0);
    uint64_t memory = tern_png_memory(width, header[8], channels);
    if (memory <= limits->memory) return true;
    snprintf(error, 160, "a row of %u pixels takes %llu bytes, the limit is %llu", width, (unsigned long long)memory,
             (unsigned long long)limits->memory);
    return false;
}

bool tern_png_has_stream(const uint8_t *bytes, size_t count, tern_png_data data) {
    z_stream stream = {0};
    if (inflateInit(&stream) != Z_OK) return false;
    // No picture has more bytes than this, plus a small tolerance, so a decompression bomb is not unpacked.
    uint64_t left = ((uint64_t)data.width * 8 + 8) * data.height * 2 + 65536;
    uint8_t scratch[16384];
    int result = Z_OK;
    // The chunks of a frame begin with a number.
    const size_t prefix = data.type == TERN_PNG_fdAT ? 4 : 0;
    for (size_t at = data.from; result == Z_OK && at < count && count - at >= 8;) {
        const uint8_t *head = bytes + at;
        const size_t there = count - at - 8;
        // The last chunk can end early in a file whose end is missing.
        const size_t length = tern_png_number(head) < there ? tern_png_number(head) : there;
        at += 12 + length;
        if (tern_png_number(head + 4) != data.type || length < prefix) continue;
        stream.next_in = (Bytef *)head + 8 + prefix;
        stream.avail_in = (uInt)(length - prefix);
        while (result == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0)) {
            stream.next_out = scratch;
            stream.avail_out = sizeof scratch;
            result = inflate(&stream, Z_NO_FLUSH);
            // Without progress there is no error: the stream continues in the next chunk.
            if (result == Z_BUF_ERROR && stream.avail_in == 0) { result = Z_OK; break; }
            uint64_t given = sizeof scratch - stream.avail_out;
            if (given > left) result = Z_DATA_ERROR;
            left -= given > left ? left : given;
        }
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END;
}

void tern_png_read_exif(tern_png_exif *exif, const uint8_t *chunk) {
    const uint32_t length = tern_png_number(chunk);
    if (exif->isKnown || crc32_z(0, chunk + 4, (size_t)length + 4) != tern_png_number(chunk + 8 + length)) return;
    exif->isKnown = true;
    exif->orientation = tern_exif_orientation(chunk + 8, length);
}

bool tern_png_read_cicp(tern_color_numbers *color, const uint8_t *chunk) {
    if (tern_png_number(chunk) != 4 || crc32_z(0, chunk + 4, 8) != tern_png_number(chunk + 12)) return false;
    if (chunk[10] != 0 || chunk[11] != 1) return false;
    *color = (tern_color_numbers){.primaries = chunk[8], .transfer = chunk[9]};
    return true;
}

tern_png_exif tern_png_find_exif(const uint8_t *bytes, size_t count) {
    tern_png_exif exif = {.orientation = 1};
    for (size_t at = 8; !exif.isKnown && at < count && count - at >= 12;) {
        const uint64_t length = tern_png_number(bytes + at), type = tern_png_number(bytes + at + 4);
        if (type == TERN_PNG_IEND || length > count - at - 12) break;
        if (type == TERN_PNG_eXIf && length <= TERN_PNG_CHUNK_LIMIT) tern_png_read_exif(&exif, bytes + at);
        at += 12 + (size_t)length;
    }
    return exif;
}

bool tern_png_has_end(const uint8_t *bytes, size_t count) {
    return count >= 20 && tern_png_number(bytes + count - 12) == 0
        && tern_png_number(bytes + count - 8) == TERN_PNG_IEND && tern_png_number(bytes + count - 4) == 0xAE426082;
}
#endif
