#include "png_chunks.h"

#if defined(__linux__)
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

void tern_png_read_exif(tern_png_exif *exif, const uint8_t *chunk) {
    const uint32_t length = tern_png_number(chunk);
    if (exif->isKnown || crc32_z(0, chunk + 4, (size_t)length + 4) != tern_png_number(chunk + 8 + length)) return;
    exif->isKnown = true;
    exif->orientation = tern_exif_orientation(chunk + 8, length);
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
