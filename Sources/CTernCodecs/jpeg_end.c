#include "jpeg_end.h"
#include <string.h>

static void skip(tern_jpeg_end *end, size_t count) {
    end->left = count;
    end->place = count > 0 ? TERN_JPEG_SKIP : TERN_JPEG_DATA;
}

/// Reads the byte behind FF. In a scan's data, neither 00 nor a restart is a marker, and FF may be repeated.
static void readMarker(tern_jpeg_end *end, uint8_t marker) {
    if (marker == 0xFF) return;
    end->isSeen = marker == 0xD9;
    bool isAlone = marker <= 1 || (marker >= 0xD0 && marker <= 0xD9);
    end->place = isAlone ? TERN_JPEG_DATA : TERN_JPEG_LENGTH;
}

void tern_jpeg_end_read(tern_jpeg_end *end, const uint8_t *bytes, size_t count) {
    for (size_t at = 0; at < count && !end->isSeen;) {
        switch (end->place) {
        case TERN_JPEG_START:
            skip(end, 2);
            break;
        case TERN_JPEG_SKIP: {
            // A thumbnail in a segment can have an end marker of its own.
            size_t skipped = end->left < count - at ? end->left : count - at;
            at += skipped;
            skip(end, end->left - skipped);
            break;
        }
        case TERN_JPEG_DATA: {
            const uint8_t *next = memchr(bytes + at, 0xFF, count - at);
            if (!next) return;
            at = (size_t)(next - bytes) + 1;
            end->place = TERN_JPEG_CODE;
            break;
        }
        case TERN_JPEG_CODE:
            readMarker(end, bytes[at++]);
            break;
        case TERN_JPEG_LENGTH:
            end->left = (size_t)bytes[at++] << 8;
            end->place = TERN_JPEG_LENGTH_LOW;
            break;
        case TERN_JPEG_LENGTH_LOW: {
            // A length below 2 is wrong, and libjpeg goes on behind it.
            size_t length = end->left | bytes[at++];
            skip(end, length < 2 ? 0 : length - 2);
            break;
        }
        }
    }
}

bool tern_jpeg_ends(const uint8_t *bytes, size_t count) {
    tern_jpeg_end end = {TERN_JPEG_START, 0, false};
    tern_jpeg_end_read(&end, bytes, count);
    return end.isSeen;
}
