// Gain maps of JPEG files: a second picture that states how much brighter a display with light above white shows each
// place of the first. The second picture is found by the index of the Multi-Picture Format (CIPA DC-007), and
// described by its XMP, as Ultra HDR does it (Adobe Gain Map 1.0, Android Ultra HDR 1.1).
#include "CTernCodecs.h"

#if defined(__linux__)
#include "deep.h"
#include "srgb.h"

/// A part of the file's bytes.
typedef struct {
    const uint8_t *bytes;
    size_t count;
} part;

static uint32_t number(const uint8_t *at, int size, bool isBig) {
    uint32_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint32_t)at[i] << 8 * (isBig ? size - 1 - i : i);
    return value;
}

/// Finds the next segment with a marker whose data begin with a name, and moves `at` behind it. Returns false at the
/// entropy-coded data and at the end.
static bool findSegment(part file, size_t *at, uint8_t marker, const char *name, size_t nameSize, part *found) {
    while (*at < file.count && file.count - *at >= 4) {
        const uint8_t *head = file.bytes + *at;
        if (head[0] != 0xFF) return false;
        if (head[1] == 0xFF) { *at += 1; continue; }
        // The start of the data, the end, and markers without data.
        if (head[1] == 0xDA || head[1] == 0xD9 || (head[1] >= 0xD0 && head[1] <= 0xD8) || head[1] <= 1) return false;
        const size_t length = number(head + 2, 2, true);
        if (length < 2 || length > file.count - *at - 2) return false;
        *at += 2 + length;
        if (head[1] != marker || length - 2 < nameSize || memcmp(head + 4, name, nameSize)) continue;
        *found = (part){head + 4 + nameSize, length - 2 - nameSize};
        return true;
    }
    return false;
}

static bool isJPEG(part file) { return file.count > 4 && file.bytes[0] == 0xFF && file.bytes[1] == 0xD8; }

/// Returns the place behind the first occurrence of a text, or NULL.
static const uint8_t *behind(part text, const char *wanted) {
    const size_t count = strlen(wanted);
    for (size_t i = 0; count <= text.count && i <= text.count - count; i++)
        if (!memcmp(text.bytes + i, wanted, count)) return text.bytes + i + count;
    return NULL;
}

/// Reads a decimal number, which can have an exponent, up to a quote or a tag. Returns false if it is none.
static bool readNumber(const uint8_t *at, const uint8_t *end, double *value) {
    double sum = 0, unit = 0;
    bool isNegative = false, hasDigit = false;
    if (at < end && (*at == '-' || *at == '+')) isNegative = *at++ == '-';
    for (int count = 0; at < end && count < 40; at++, count++) {
        if (*at == '.' && unit == 0) {
            unit = 1;
        } else if (*at >= '0' && *at <= '9') {
            hasDigit = true;
            unit /= 10;
            sum = unit > 0 ? sum + (*at - '0') * unit : sum * 10 + (*at - '0');
        } else {
            break;
        }
    }
    if (hasDigit && at < end && (*at == 'e' || *at == 'E')) {
        bool isSmall = false;
        int power = 0;
        hasDigit = false;
        if (++at < end && (*at == '-' || *at == '+')) isSmall = *at++ == '-';
        for (; at < end && *at >= '0' && *at <= '9' && power < 1000; at++, hasDigit = true) power = power * 10 + *at - '0';
        sum *= pow(10, isSmall ? -power : power);
    }
    *value = isNegative ? -sum : sum;
    return hasDigit && at < end && (*at == '"' || *at == '\'' || *at == '<');
}

/// Reads a property of XMP, one or three numbers in an attribute or an element. A missing one leaves the values. Returns
/// false if it is damaged.
static bool readProperty(part xmp, const char *name, double values[3]) {
    char wanted[48] = "hdrgm:";
    strcat(wanted, name);
    const uint8_t *at = behind(xmp, wanted), *end = xmp.bytes + xmp.count;
    if (!at || at >= end) return true;
    if (*at == '=') {
        if (end - at < 3 || !readNumber(at + 2, end, values)) return false;
        values[1] = values[2] = values[0];
        return true;
    }
    if (*at != '>') return true;
    // The next closing tag of the namespace ends the element.
    const uint8_t *stop = behind((part){at, (size_t)(end - at)}, "</hdrgm:");
    if (!stop) return false;
    const part element = {at, (size_t)(stop - at)};
    size_t from = 0;
    int found = 0;
    for (; found < 3; found++) {
        const uint8_t *item = behind((part){element.bytes + from, element.count - from}, "<rdf:li>");
        if (!item || !readNumber(item, stop, &values[found])) break;
        from = (size_t)(item - element.bytes);
    }
    if (found == 0) {
        if (!readNumber(at + 1, stop, values)) return false;
        found = 1;
    }
    if (found == 1) values[1] = values[2] = values[0];
    return found != 2;
}

/// Reads the description of a gain map. Returns false if there is none, or it is damaged.
static bool readDescription(part xmp, tern_gain_map *map) {
    if (!behind(xmp, "hdrgm:Version")) return false;
    // Only files whose base picture is for displays without light above white are supported. The property is an
    // attribute in either quotes, or an element.
    const uint8_t *base = behind(xmp, "hdrgm:BaseRenditionIsHDR"), *end = xmp.bytes + xmp.count;
    if (base && base < end) base += *base == '=' ? 2 : 1;
    if (base && base < end && end - base >= 4 && !memcmp(base, "True", 4)) return false;
    double capacity[2][3] = {{0, 0, 0}, {NAN, NAN, NAN}};
    for (int c = 0; c < 3; c++) {
        map->least[c] = 0;
        map->most[c] = NAN;
        map->gamma[c] = 1;
        map->baseOffset[c] = map->offset[c] = 1.0 / 64;
    }
    const bool isRead = readProperty(xmp, "GainMapMin", map->least) && readProperty(xmp, "GainMapMax", map->most)
        && readProperty(xmp, "Gamma", map->gamma) && readProperty(xmp, "OffsetSDR", map->baseOffset)
        && readProperty(xmp, "OffsetHDR", map->offset) && readProperty(xmp, "HDRCapacityMin", capacity[0])
        && readProperty(xmp, "HDRCapacityMax", capacity[1]);
    map->leastCapacity = capacity[0][0];
    map->mostCapacity = capacity[1][0];
    if (!isRead || !(map->mostCapacity > map->leastCapacity) || !(map->leastCapacity >= 0)) return false;
    for (int c = 0; c < 3; c++) {
        // Beyond these, a place would be brighter than 65,536 times white.
        if (!(map->least[c] >= -16 && map->most[c] >= map->least[c] && map->most[c] <= 16)) return false;
        if (!(map->gamma[c] > 0.01 && map->gamma[c] < 100)) return false;
        if (!(fabs(map->baseOffset[c]) <= 1 && fabs(map->offset[c]) <= 1)) return false;
    }
    return true;
}

bool tern_gain_map_find(const uint8_t *bytes, size_t count, tern_gain_map *map) {
    static const char xap[] = "http://ns.adobe.com/xap/1.0/";
    const part file = {bytes, count};
    part index;
    size_t at = 2;
    if (!isJPEG(file) || !findSegment(file, &at, 0xE2, "MPF", 4, &index) || index.count < 8) return false;
    const bool isBig = index.bytes[0] == 'M';
    const size_t directory = number(index.bytes + 4, 4, isBig);
    if (directory > index.count || index.count - directory < 2) return false;
    const size_t tags = number(index.bytes + directory, 2, isBig);
    if (tags > (index.count - directory - 2) / 12) return false;
    part entries = {NULL, 0};
    for (size_t i = 0; i < tags; i++) {
        const uint8_t *tag = index.bytes + directory + 2 + i * 12;
        if (number(tag, 2, isBig) != 0xB002) continue;
        const size_t size = number(tag + 4, 4, isBig), place = number(tag + 8, 4, isBig);
        if (place > index.count || size > index.count - place) return false;
        entries = (part){index.bytes + place, size};
    }
    // Offsets count from the head of the index. The first picture is the file's own.
    const size_t start = (size_t)(index.bytes - bytes);
    for (size_t i = 1; i < entries.count / 16; i++) {
        const uint8_t *entry = entries.bytes + i * 16;
        const size_t size = number(entry + 4, 4, isBig), offset = number(entry + 8, 4, isBig);
        if (offset > count - start || size > count - start - offset) continue;
        const part other = {bytes + start + offset, size};
        part xmp;
        size_t place = 2;
        if (!isJPEG(other) || !findSegment(other, &place, 0xE1, xap, sizeof xap, &xmp)) continue;
        if (!readDescription(xmp, map)) continue;
        map->at = start + offset;
        map->count = size;
        return true;
    }
    return false;
}

void tern_gain_map_apply(
    const tern_gain_map *map, tern_picture base, tern_picture gains, tern_gain_place place, double headroom,
    uint8_t *target, uint32_t firstRow, uint32_t rows) {
    const double stops = log2(headroom > 1 ? headroom : 1);
    const double share = (stops - map->leastCapacity) / (map->mostCapacity - map->leastCapacity);
    const double weight = share > 0 ? share < 1 ? share : 1 : 0;
    // The gain of each level, and the light of each level of sRGB's curve.
    float factors[3][256], lights[256];
    for (int i = 0; i < 256; i++) {
        const double value = i / 255.0;
        lights[i] = (float)tern_srgb_light(value);
        for (int c = 0; c < 3; c++) {
            const double part = pow(value, 1 / map->gamma[c]);
            factors[c][i] = (float)((map->least[c] * (1 - part) + map->most[c] * part) * weight);
        }
    }
    for (uint32_t y = firstRow; y < firstRow + rows && y < base.height; y++) {
        const double down = (y + 0.5 + place.top) / place.height * gains.height - 0.5;
        const double top = down > 0 ? down < gains.height - 1 ? floor(down) : gains.height - 1 : 0;
        const uint8_t *upper = gains.pixels + gains.stride * (size_t)top;
        const uint8_t *lower = (uint32_t)top + 1 < gains.height ? upper + gains.stride : upper;
        const float v = (float)(down > top ? fmin(down - top, 1) : 0);
        for (uint32_t x = 0; x < base.width; x++) {
            const double across = (x + 0.5 + place.left) / place.width * gains.width - 0.5;
            const double left = across > 0 ? across < gains.width - 1 ? floor(across) : gains.width - 1 : 0;
            const size_t one = (size_t)left * 4, two = (uint32_t)left + 1 < gains.width ? one + 4 : one;
            const float u = (float)(across > left ? fmin(across - left, 1) : 0);
            const uint8_t *pixel = base.pixels + base.stride * y + (size_t)x * 4;
            uint8_t *to = target + ((size_t)base.width * y + x) * 8;
            for (size_t c = 0; c < 3; c++) {
                const float *table = factors[c];
                const float above = table[upper[one + c]] * (1 - u) + table[upper[two + c]] * u;
                const float below = table[lower[one + c]] * (1 - u) + table[lower[two + c]] * u;
                const float light = (lights[pixel[c]] + (float)map->baseOffset[c])
                    * exp2f(above * (1 - v) + below * v) - (float)map->offset[c];
                const uint16_t half = tern_to_half(light > 0 ? light : 0);
                memcpy(to + c * 2, &half, sizeof half);
            }
            const uint16_t one16 = 0x3C00;
            memcpy(to + 6, &one16, sizeof one16);
        }
    }
}
#endif
