#include "CTernSVG.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/// The first element ends within this many bytes, or the file is no SVG.
#define PROLOG_LIMIT (1 << 20)
/// The last end tag begins within this many bytes of the end.
#define END_LIMIT (1 << 16)
/// The least and the greatest length in pixels.
#define LEAST 0.001
#define MOST 1e9

/// A position in text, of which each character is one byte or two.
typedef struct {
    const uint8_t *bytes;
    size_t count, at;
    /// 1 for ASCII and its extensions, 2 for UTF-16.
    int unit;
    bool isBig;
} text;

/// A character that is not of ASCII, and the end of the text.
enum { OTHER = 0x80, END = -1 };

static int peek(const text *from) {
    if (from->count - from->at < (size_t)from->unit) return END;
    const uint8_t *at = from->bytes + from->at;
    unsigned value = at[0];
    if (from->unit == 2) value = from->isBig ? value << 8 | at[1] : value | (unsigned)at[1] << 8;
    return value < OTHER ? (int)value : OTHER;
}

static int next(text *from) {
    int value = peek(from);
    if (value != END) from->at += (size_t)from->unit;
    return value;
}

static bool isBlank(int value) { return value == ' ' || value == '\t' || value == '\n' || value == '\r'; }

static void skipBlanks(text *from) {
    while (isBlank(peek(from))) next(from);
}

/// Skips a word if it is next.
static bool take(text *from, const char *word) {
    text at = *from;
    for (; *word; word++) {
        if (next(&at) != (unsigned char)*word) return false;
    }
    *from = at;
    return true;
}

/// Skips up to the end of a word. Returns false if the text has none.
static bool skipPast(text *from, const char *word) {
    while (!take(from, word)) {
        if (next(from) == END) return false;
    }
    return true;
}

static bool skipQuoted(text *from) {
    int quote = next(from);
    for (int value; (value = next(from)) != quote;) {
        if (value == END) return false;
    }
    return true;
}

/// Skips a document type with its declarations.
static bool skipDocumentType(text *from) {
    bool isInside = false;
    for (;;) {
        if (take(from, "<!--")) {
            if (!skipPast(from, "-->")) return false;
        } else if (take(from, "<?")) {
            if (!skipPast(from, "?>")) return false;
        } else if (peek(from) == '"' || peek(from) == '\'') {
            if (!skipQuoted(from)) return false;
        } else {
            int value = next(from);
            if (value == END) return false;
            if (value == '[') isInside = true;
            if (value == ']') isInside = false;
            if (value == '>' && !isInside) return true;
        }
    }
}

/// Skips what can be before the first element, and its `<`.
static bool skipProlog(text *from) {
    static const uint8_t mark[] = {0xEF, 0xBB, 0xBF};
    const uint8_t *bytes = from->bytes;
    from->unit = 1;
    if (from->count >= 3 && !memcmp(bytes, mark, 3)) from->at = 3;
    if (from->count >= 2 && (bytes[0] ^ bytes[1]) == (0xFE ^ 0xFF) && (bytes[0] == 0xFE || bytes[0] == 0xFF)) {
        from->unit = 2;
        from->isBig = bytes[0] == 0xFE;
        from->at = 2;
    } else if (from->count >= 4 && (!memcmp(bytes, "<\0?\0", 4) || !memcmp(bytes, "\0<\0?", 4))) {
        from->unit = 2;
        from->isBig = !bytes[0];
    }
    for (;;) {
        skipBlanks(from);
        bool isThere = true;
        if (take(from, "<?")) isThere = skipPast(from, "?>");
        else if (take(from, "<!--")) isThere = skipPast(from, "-->");
        else if (take(from, "<!")) isThere = skipDocumentType(from);
        else return next(from) == '<';
        if (!isThere) return false;
    }
}

static bool endsName(int value) {
    return value == END || isBlank(value) || value == '=' || value == '>' || value == '/' || value == '<'
        || value == '"' || value == '\'';
}

/// Reads a name. One that does not fit is cut, and is no name that is looked for.
static void readName(text *from, char *name, size_t capacity) {
    size_t length = 0;
    while (!endsName(peek(from))) {
        int value = next(from);
        if (length < capacity - 1) name[length++] = (char)value;
    }
    name[length] = 0;
}

/// Reads a quoted value. One that does not fit is taken as missing.
static bool readValue(text *from, char *value, size_t capacity) {
    int quote = next(from);
    if (quote != '"' && quote != '\'') return false;
    size_t length = 0;
    for (int character; (character = next(from)) != quote; length++) {
        if (character == END || character == '<') return false;
        if (length < capacity) value[length] = (char)character;
    }
    value[length < capacity ? length : 0] = 0;
    return true;
}

/// Reads a number as CSS has it, in the same way in each locale. Returns the end of the number, or NULL.
static const char *readNumber(const char *at, double *number) {
    double value = 0;
    int exponent = 0, digits = 0;
    bool isNegative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    for (bool isFraction = false;; at++) {
        if (*at == '.' && !isFraction && at[1] >= '0' && at[1] <= '9') { isFraction = true; continue; }
        if (*at < '0' || *at > '9') break;
        digits++;
        if (value < 1e17) {
            value = value * 10 + (*at - '0');
            exponent -= isFraction;
        } else {
            exponent += !isFraction;
        }
    }
    if (!digits) return NULL;
    const char *power = at + 1 + (at[0] && (at[1] == '+' || at[1] == '-'));
    if ((*at == 'e' || *at == 'E') && *power >= '0' && *power <= '9') {
        int stated = 0;
        bool isSmall = at[1] == '-';
        for (at = power; *at >= '0' && *at <= '9'; at++) stated = stated < 10000 ? stated * 10 + (*at - '0') : stated;
        exponent += isSmall ? -stated : stated;
    }
    // Beyond these powers, a value is more than the greatest length or less than the least.
    if (value > 0 && exponent > 30) value = MOST;
    else if (exponent < -60) value = 0;
    else for (; exponent != 0; exponent += exponent < 0 ? 1 : -1) value = exponent < 0 ? value / 10 : value * 10;
    *number = isNegative ? -value : value;
    return at;
}

static bool isUnit(const char *at, const char *unit) {
    for (; *unit; at++, unit++) {
        if ((*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at) != *unit) return false;
    }
    while (isBlank(*at)) at++;
    return !*at;
}

/// Reads a length in pixels. Returns −1 for one that is missing, relative to something else, or wrong.
static double length(const char *value) {
    static const struct { const char *name; double pixels; } units[] = {
        {"", 1}, {"px", 1}, {"pt", 96.0 / 72}, {"pc", 16}, {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4},
        {"q", 96 / 101.6}, {"em", 16}, {"rem", 16}, {"ex", 8}, {"ch", 8},
    };
    while (isBlank(*value)) value++;
    double number;
    const char *unit = readNumber(value, &number);
    if (!unit || number < 0) return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!isUnit(unit, units[i].name)) continue;
        number *= units[i].pixels;
        return number < MOST ? number : MOST;
    }
    return -1;
}

/// Reads the size of a view box. Returns false for one that is missing or wrong.
static bool readBox(const char *value, tern_svg_size *size) {
    double numbers[4];
    for (int i = 0; i < 4; i++) {
        while (isBlank(*value)) value++;
        if (i && *value == ',') value++;
        while (isBlank(*value)) value++;
        value = readNumber(value, &numbers[i]);
        if (!value) return false;
    }
    while (isBlank(*value)) value++;
    *size = (tern_svg_size){numbers[2] < MOST ? numbers[2] : MOST, numbers[3] < MOST ? numbers[3] : MOST};
    return !*value && size->width > 0 && size->height > 0;
}

typedef struct {
    char name[72], width[32], height[32], viewBox[160];
    /// Boolean values that indicate whether the name is `svg`, whether the text ends within the tag, and whether the
    /// element has no end tag.
    bool isSVG, isCut, isClosed;
} element;

/// Reads the attributes of an element. Returns false if its tag is not whole.
static bool readAttributes(text *from, element *into) {
    for (;;) {
        skipBlanks(from);
        if (take(from, "/>")) return into->isClosed = true;
        if (take(from, ">")) return true;
        char name[16], ignored[2];
        readName(from, name, sizeof name);
        skipBlanks(from);
        if (!name[0] || !take(from, "=")) return false;
        skipBlanks(from);
        char *value = ignored;
        size_t capacity = sizeof ignored;
        if (!strcmp(name, "width")) { value = into->width; capacity = sizeof into->width; }
        if (!strcmp(name, "height")) { value = into->height; capacity = sizeof into->height; }
        if (!strcmp(name, "viewBox")) { value = into->viewBox; capacity = sizeof into->viewBox; }
        if (!readValue(from, value, capacity)) return false;
    }
}

/// Reads the first element. Returns false if it is not `svg`, or if its tag is not whole.
static bool readElement(text *from, element *into) {
    memset(into, 0, sizeof *into);
    if (!skipProlog(from)) return false;
    readName(from, into->name, sizeof into->name);
    const char *colon = strchr(into->name, ':');
    into->isSVG = !strcmp(colon ? colon + 1 : into->name, "svg");
    if (!into->isSVG) return false;
    bool isWhole = readAttributes(from, into);
    into->isCut = !isWhole && peek(from) == END;
    return isWhole;
}

static bool isCompressed(const uint8_t *bytes, size_t count) {
    return count >= 3 && bytes[0] == 0x1F && bytes[1] == 0x8B && bytes[2] == 8;
}

/// Reads the first element of a compressed file.
static bool readCompressed(const uint8_t *bytes, size_t count, element *into) {
    bool isFound = false;
    memset(into, 0, sizeof *into);
    // Few files need more than the first.
    for (size_t capacity = 1 << 12; capacity <= PROLOG_LIMIT && !isFound; capacity *= 16) {
        z_stream stream = {0};
        uint8_t *out = malloc(capacity);
        if (!out || inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) {
            free(out);
            return false;
        }
        stream.next_in = (Bytef *)(uintptr_t)bytes;
        stream.avail_in = (uInt)(count < PROLOG_LIMIT ? count : PROLOG_LIMIT);
        stream.next_out = out;
        stream.avail_out = (uInt)capacity;
        inflate(&stream, Z_SYNC_FLUSH);
        size_t length = capacity - stream.avail_out;
        inflateEnd(&stream);
        isFound = readElement(&(text){.bytes = out, .count = length}, into);
        free(out);
        if (length < capacity) break;
    }
    return isFound;
}

tern_codec_result tern_svg_measure(const uint8_t *bytes, size_t count, tern_svg_size *size, char *error) {
    element first;
    text from = {.bytes = bytes, .count = count < PROLOG_LIMIT ? count : PROLOG_LIMIT};
    bool isFound = isCompressed(bytes, count) ? readCompressed(bytes, count, &first) : readElement(&from, &first);
    if (!isFound && !first.isSVG) {
        snprintf(error, 160, "the first element is not svg");
        return TERN_CODEC_UNSUPPORTED;
    }
    if (!isFound) {
        snprintf(error, 160, "the tag of the first element is %s", first.isCut ? "cut" : "damaged");
        return first.isCut ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
    }
    tern_svg_size box = {0};
    bool hasBox = readBox(first.viewBox, &box);
    double width = length(first.width), height = length(first.height);
    // The default size of CSS, which also browsers take.
    if (width < 0 && height < 0) {
        width = hasBox ? box.width : 300;
        height = hasBox ? box.height : 150;
    } else if (width < 0) {
        width = hasBox ? height / box.height * box.width : 300;
    } else if (height < 0) {
        height = hasBox ? width / box.width * box.height : 150;
    }
    // A box has no unit: the size of a tiny one is that of its shape.
    double longer = width > height ? width : height;
    if (hasBox && length(first.width) < 0 && length(first.height) < 0 && longer < 1) {
        width /= longer;
        height /= longer;
    }
    *size = (tern_svg_size){width < MOST ? width : MOST, height < MOST ? height : MOST};
    if (width >= LEAST && height >= LEAST) return TERN_CODEC_OK;
    snprintf(error, 160, "the first element has no size");
    return TERN_CODEC_CORRUPT;
}

/// Returns whether nothing but blanks, comments and instructions follows.
static bool isAtEnd(text from) {
    for (;;) {
        skipBlanks(&from);
        if (peek(&from) == END) return true;
        if (take(&from, "<!--") ? !skipPast(&from, "-->") : !take(&from, "<?") || !skipPast(&from, "?>")) return false;
    }
}

bool tern_svg_ends(const uint8_t *bytes, size_t count) {
    if (isCompressed(bytes, count)) return true;
    text from = {.bytes = bytes, .count = count};
    element first;
    if (!readElement(&from, &first)) return false;
    if (first.isClosed) return true;
    // The last end tag of this name is that of the first element, if nothing but comments of some length follows it.
    if (count - from.at > END_LIMIT) from.at = count - END_LIMIT - (count - from.at) % 2;
    text end = from;
    bool isFound = false;
    while (peek(&from) != END) {
        if (!take(&from, "</") || !take(&from, first.name)) { next(&from); continue; }
        skipBlanks(&from);
        if (!take(&from, ">")) continue;
        end = from;
        isFound = true;
    }
    return isFound && isAtEnd(end);
}
#endif
