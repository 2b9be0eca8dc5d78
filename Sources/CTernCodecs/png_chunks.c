#include "png_chunks.h"

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

bool tern_png_has_end(const uint8_t *bytes, size_t count) {
    return count >= 20 && tern_png_number(bytes + count - 12) == 0
        && tern_png_number(bytes + count - 8) == TERN_PNG_IEND && tern_png_number(bytes + count - 4) == 0xAE426082;
}
