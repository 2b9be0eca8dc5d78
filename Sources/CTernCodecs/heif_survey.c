// Judges the structure of a HEIF file (ISO/IEC 14496-12 and 23008-12) before libheif reads it. libheif 1.15 follows
// references in circles, decodes a picture as often as a grid names it, and leaves the size that the HEVC stream states
// to the HEVC decoder.
#include "heif_survey.h"

#if defined(__linux__)
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

enum { MOST_ITEMS = 2048, MOST_DEPTH = 8, MOST_EXTENTS = 32, MOST_UNITS = 65536, MOST_TURNS = 8 };
/// The kind of a NAL unit with a sequence parameter set.
enum { SPS = 33 };
/// The pixels that can be decoded in the time that it takes to start a decoder.
enum { START_PIXELS = 65536 };

/// Bytes that are read from the front. Reading beyond their end returns 0 and sets `isShort`.
typedef struct {
    const uint8_t *at;
    size_t left;
    bool isShort;
} cursor;

typedef struct {
    uint32_t type;
    cursor content;
} box;

typedef enum { FRESH, OPEN, JUDGED } state;

typedef struct {
    uint32_t id, type;
    /// The size as stated.
    uint32_t width, height;
    /// The entries of the boxes iloc, ipma and iref.
    cursor extents, properties, references;
    unsigned extentCount, propertyCount, referenceCount;
    uint64_t base;
    unsigned method;
    bool hasPlace, hasWideProperties, hasWideReferences, isPacked, isTurned;
    state state;
    /// The index of the item with the alpha channel, plus 1.
    size_t alpha;
    uint64_t coded;
} item;

typedef struct {
    const uint8_t *bytes;
    size_t count;
    uint64_t pixelLimit;
    cursor idat;
    item *items;
    size_t itemCount;
    box *properties;
    size_t propertyCount;
    unsigned offsetSize, lengthSize, baseSize, indexSize;
    tern_heif_survey *survey;
    char *error;
} file;

static tern_codec_result fail(const file *file, tern_codec_result result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(file->error, 160, format, arguments);
    va_end(arguments);
    return result;
}

static tern_codec_result broken(const file *file, const char *box) {
    return fail(file, TERN_CODEC_CORRUPT, "the box %s is damaged", box);
}

static uint64_t take(cursor *from, unsigned bytes) {
    if (from->left < bytes) {
        from->left = 0;
        from->isShort = true;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value = value << 8 | from->at[i];
    from->at += bytes;
    from->left -= bytes;
    return value;
}

static cursor split(cursor *from, uint64_t bytes) {
    if (bytes > from->left) {
        from->left = 0;
        from->isShort = true;
        return (cursor){from->at, 0, true};
    }
    const cursor result = {from->at, (size_t)bytes, false};
    from->at += bytes;
    from->left -= (size_t)bytes;
    return result;
}

/// Reads the next box. Returns false at the end, and sets `isShort` for a box that reaches beyond it.
static bool next(cursor *from, box *into) {
    if (from->left == 0) return false;
    const size_t whole = from->left;
    uint64_t size = take(from, 4);
    into->type = (uint32_t)take(from, 4);
    if (size == 1) size = take(from, 8);
    else if (size == 0) size = whole;
    const size_t head = whole - from->left;
    if (from->isShort) return false;
    if (size < head) {
        from->isShort = true;
        return false;
    }
    into->content = split(from, size - head);
    return !from->isShort;
}

// MARK: The boxes

static int compare(const void *one, const void *other) {
    const uint32_t left = ((const item *)one)->id, right = ((const item *)other)->id;
    return left < right ? -1 : left > right;
}

static item *find(const file *file, uint64_t id) {
    size_t low = 0, high = file->itemCount;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (file->items[middle].id == id) return &file->items[middle];
        if (file->items[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/// Skips a text that ends with a zero byte. Returns whether it has other bytes.
static bool skipText(cursor *from) {
    const size_t left = from->left;
    while (from->left > 0 && take(from, 1) != 0) {}
    return left - from->left > 1;
}

static tern_codec_result readItems(file *file, cursor iinf) {
    const unsigned version = (unsigned)take(&iinf, 1);
    take(&iinf, 3);
    take(&iinf, version == 0 ? 2 : 4);
    if (iinf.isShort) return broken(file, "iinf");
    // An entry has 20 bytes or more.
    const size_t most = iinf.left / 20 + 1;
    file->items = calloc(most, sizeof *file->items);
    if (!file->items) return TERN_CODEC_MEMORY;
    box entry;
    while (next(&iinf, &entry)) {
        if (entry.type != CODE('i', 'n', 'f', 'e')) continue;
        cursor content = entry.content;
        const unsigned entryVersion = (unsigned)take(&content, 1);
        take(&content, 3);
        const uint32_t id = (uint32_t)take(&content, entryVersion == 3 ? 4 : 2);
        take(&content, 2);
        const uint32_t type = entryVersion >= 2 ? (uint32_t)take(&content, 4) : 0;
        if (content.isShort || entryVersion > 3 || file->itemCount >= most) return broken(file, "infe");
        if (file->itemCount >= MOST_ITEMS) return fail(file, TERN_CODEC_LIMIT, "more than %d items", MOST_ITEMS);
        skipText(&content);
        bool isPacked = false;
        if (type == CODE('m', 'i', 'm', 'e') || entryVersion < 2) {
            skipText(&content);
            isPacked = skipText(&content);
        }
        file->items[file->itemCount++] = (item){.id = id, .type = type, .isPacked = isPacked};
    }
    if (iinf.isShort) return broken(file, "iinf");
    qsort(file->items, file->itemCount, sizeof *file->items, compare);
    for (size_t i = 1; i < file->itemCount; i++)
        if (file->items[i].id == file->items[i - 1].id) return broken(file, "iinf");
    return TERN_CODEC_OK;
}

static bool isSize(unsigned bytes) { return bytes == 0 || bytes == 4 || bytes == 8; }

/// Reads the places of the items' data. Their lengths together are limited, because libheif copies what it reads.
static tern_codec_result readPlaces(file *file, cursor iloc) {
    const unsigned version = (unsigned)take(&iloc, 1);
    take(&iloc, 3);
    const unsigned sizes = (unsigned)take(&iloc, 2);
    file->offsetSize = sizes >> 12;
    file->lengthSize = sizes >> 8 & 15;
    file->baseSize = sizes >> 4 & 15;
    file->indexSize = version == 0 ? 0 : sizes & 15;
    const bool isKnown = isSize(file->offsetSize) && isSize(file->lengthSize) && isSize(file->baseSize)
        && isSize(file->indexSize);
    if (version > 2 || !isKnown) return broken(file, "iloc");
    const uint64_t count = take(&iloc, version < 2 ? 2 : 4);
    uint64_t all = 0;
    for (uint64_t i = 0; i < count && !iloc.isShort; i++) {
        const uint64_t id = take(&iloc, version < 2 ? 2 : 4);
        const unsigned method = version == 0 ? 0 : (unsigned)take(&iloc, 2) & 15;
        take(&iloc, 2);
        const uint64_t base = take(&iloc, file->baseSize);
        const unsigned extents = (unsigned)take(&iloc, 2);
        const unsigned each = file->indexSize + file->offsetSize + file->lengthSize;
        const cursor places = split(&iloc, (uint64_t)extents * each);
        item *item = find(file, id);
        uint64_t length = 0;
        cursor place = places;
        for (unsigned extent = 0; extent < extents && each > 0 && !place.isShort; extent++) {
            take(&place, file->indexSize);
            take(&place, file->offsetSize);
            const uint64_t bytes = take(&place, file->lengthSize);
            length += bytes < file->count ? bytes : file->count;
        }
        all += length;
        if (!item) continue;
        if (item->hasPlace) return broken(file, "iloc");
        item->hasPlace = true;
        item->extents = places;
        item->extentCount = extents;
        item->method = method;
        item->base = base;
        // A stream of deflate unpacks to at most 1032 times its size.
        file->survey->metadata += item->isPacked ? length * 1032 : length;
    }
    if (iloc.isShort) return broken(file, "iloc");
    if (all / 4 > file->count) return fail(file, TERN_CODEC_CORRUPT, "the items have the same bytes many times");
    return TERN_CODEC_OK;
}

static tern_codec_result readProperties(file *file, cursor iprp) {
    box part;
    cursor ipco = {NULL, 0, false};
    bool hasProperties = false;
    cursor rest = iprp;
    while (next(&rest, &part)) {
        if (part.type != CODE('i', 'p', 'c', 'o')) continue;
        if (hasProperties) return broken(file, "iprp");
        hasProperties = true;
        ipco = part.content;
    }
    if (rest.isShort || !hasProperties) return broken(file, "iprp");
    file->properties = calloc(ipco.left / 8 + 1, sizeof *file->properties);
    if (!file->properties) return TERN_CODEC_MEMORY;
    while (next(&ipco, &file->properties[file->propertyCount])) file->propertyCount++;
    if (file->propertyCount > MOST_ITEMS) return fail(file, TERN_CODEC_LIMIT, "more than %d properties", MOST_ITEMS);
    if (ipco.isShort) return broken(file, "ipco");
    while (next(&iprp, &part)) {
        if (part.type != CODE('i', 'p', 'm', 'a')) continue;
        cursor ipma = part.content;
        const unsigned version = (unsigned)take(&ipma, 1);
        const bool isWide = (take(&ipma, 3) & 1) != 0;
        const uint64_t count = take(&ipma, 4);
        for (uint64_t i = 0; i < count && !ipma.isShort; i++) {
            const uint64_t id = take(&ipma, version == 0 ? 2 : 4);
            const unsigned properties = (unsigned)take(&ipma, 1);
            const cursor indices = split(&ipma, (uint64_t)properties * (isWide ? 2 : 1));
            item *item = find(file, id);
            if (!item) continue;
            if (item->propertyCount > 0) return broken(file, "ipma");
            item->properties = indices;
            item->propertyCount = properties;
            item->hasWideProperties = isWide;
        }
        if (ipma.isShort) return broken(file, "ipma");
    }
    return TERN_CODEC_OK;
}

/// Returns the next property of an item; NULL at the end. Skips indices without a property.
static const box *nextProperty(const file *file, const item *item, cursor *indices) {
    while (indices->left > 0) {
        const size_t index = (size_t)take(indices, item->hasWideProperties ? 2 : 1)
            & (item->hasWideProperties ? 0x7FFF : 0x7F);
        if (index > 0 && index <= file->propertyCount) return &file->properties[index - 1];
    }
    return NULL;
}

static bool isAlpha(const file *file, const item *item) {
    static const char *const names[] = {
        "urn:mpeg:hevc:2015:auxid:1", "urn:mpeg:avc:2015:auxid:1", "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
    };
    cursor indices = item->properties;
    const box *property;
    while ((property = nextProperty(file, item, &indices))) {
        cursor name = property->content;
        take(&name, 4);
        for (size_t i = 0; i < 3 && property->type == CODE('a', 'u', 'x', 'C'); i++) {
            const size_t length = strlen(names[i]);
            if (name.left >= length && memcmp(name.at, names[i], length) == 0) return true;
        }
    }
    return false;
}

static tern_codec_result readReferences(file *file, cursor iref) {
    const unsigned version = (unsigned)take(&iref, 1);
    take(&iref, 3);
    box part;
    while (next(&iref, &part)) {
        cursor content = part.content;
        const unsigned size = version == 0 ? 2 : 4;
        item *from = find(file, take(&content, size));
        const unsigned count = (unsigned)take(&content, 2);
        if (content.left < (size_t)count * size || content.isShort) return broken(file, "iref");
        if (!from) continue;
        if (part.type == CODE('d', 'i', 'm', 'g')) {
            if (from->referenceCount > 0) return broken(file, "iref");
            from->references = content;
            from->referenceCount = count;
            from->hasWideReferences = version != 0;
        } else if (part.type == CODE('a', 'u', 'x', 'l') && isAlpha(file, from)) {
            for (unsigned i = 0; i < count; i++) {
                item *to = find(file, take(&content, size));
                if (!to) continue;
                if (to->alpha > 0) return broken(file, "iref");
                to->alpha = (size_t)(from - file->items) + 1;
            }
        }
    }
    return iref.isShort ? broken(file, "iref") : TERN_CODEC_OK;
}

// MARK: The data of an item

/// Copies bytes of an item's data from its extents. Returns how many there are, up to the number.
static size_t copy(const file *file, const item *item, uint64_t from, uint8_t *into, size_t number) {
    cursor places = item->extents;
    size_t copied = 0;
    for (unsigned i = 0; i < item->extentCount && copied < number; i++) {
        take(&places, file->indexSize);
        const uint64_t offset = take(&places, file->offsetSize), length = take(&places, file->lengthSize);
        if (from >= length) {
            from -= length;
            continue;
        }
        const uint64_t part = length - from < number - copied ? length - from : number - copied;
        const uint8_t *all = item->method == 1 ? file->idat.at : file->bytes;
        memcpy(into + copied, all + item->base + offset + from, part);
        copied += part;
        from = 0;
    }
    return copied;
}

/// Checks that the extents of an item are there. Sets the number of its bytes.
static tern_codec_result measure(const file *file, const item *item, uint64_t *bytes) {
    const unsigned id = item->id;
    if (!item->hasPlace || item->extentCount == 0) return fail(file, TERN_CODEC_CORRUPT, "item %u has no data", id);
    if (item->method > 1 || item->extentCount > MOST_EXTENTS)
        return fail(file, TERN_CODEC_UNSUPPORTED, "the data of item %u is put together in a rare way", id);
    const uint64_t end = item->method == 1 ? file->idat.left : file->count;
    cursor places = item->extents;
    *bytes = 0;
    for (unsigned i = 0; i < item->extentCount; i++) {
        take(&places, file->indexSize);
        const uint64_t offset = take(&places, file->offsetSize), length = take(&places, file->lengthSize);
        if (places.isShort || length == 0) return broken(file, "iloc");
        const uint64_t start = item->base + offset;
        if (start < offset || start > end || length > end - start) {
            const bool isCut = item->method == 0;
            return fail(
                file, isCut ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT, "the data of item %u lies beyond the end", id);
        }
        *bytes += length;
    }
    return TERN_CODEC_OK;
}

// MARK: HEVC

/// Judges a NAL unit by its first bytes. The HEVC stream must not have much larger pictures than the item states, which
/// would take memory, nor smaller ones, which would leave parts of a grid as the memory was.
static tern_codec_result judgeUnit(const file *file, const uint8_t *unit, size_t count, const item *item) {
    if (count < 2 || (unit[0] >> 1 & 63) != SPS) return TERN_CODEC_OK;
    // Further layers are those of other views.
    if ((unit[0] & 1) != 0 || unit[1] >> 3 != 0) return TERN_CODEC_OK;
    tern_heif_size sequence;
    if (!tern_heif_sequence(unit + 2, count - 2, &sequence))
        return fail(file, TERN_CODEC_CORRUPT, "a sequence parameter set of the HEVC stream is damaged");
    const bool isLarge = sequence.width * sequence.height > tern_heif_most((uint64_t)item->width * item->height);
    if (isLarge || sequence.shownWidth < item->width || sequence.shownHeight < item->height) {
        return fail(
            file, TERN_CODEC_CORRUPT, "%u by %u pixels in the HEVC stream where the header says %u by %u",
            (unsigned)sequence.shownWidth, (unsigned)sequence.shownHeight, item->width, item->height);
    }
    file->survey->isGrey = sequence.chroma == 0;
    if (sequence.isDeep) file->survey->isDeep = true;
    if (sequence.chroma > 1) file->survey->isFine = true;
    return TERN_CODEC_OK;
}

static tern_codec_result judgeStream(const file *file, const item *item) {
    uint64_t left = 0, at = 0;
    tern_codec_result result = measure(file, item, &left);
    for (unsigned units = 0; result == TERN_CODEC_OK && left >= 4; units++) {
        uint8_t head[4], unit[TERN_HEIF_SEQUENCE];
        copy(file, item, at, head, 4);
        at += 4;
        left -= 4;
        cursor length = {head, 4, false};
        const uint64_t bytes = take(&length, 4);
        if (bytes > left || units > MOST_UNITS)
            return fail(file, TERN_CODEC_CORRUPT, "a NAL unit is of a wrong length");
        const size_t first = bytes < TERN_HEIF_SEQUENCE ? (size_t)bytes : TERN_HEIF_SEQUENCE;
        const size_t copied = copy(file, item, at, unit, first);
        result = judgeUnit(file, unit, copied, item);
        at += bytes;
        left -= bytes;
    }
    return result;
}

static tern_codec_result judgeConfiguration(const file *file, cursor hvcC, const item *item) {
    take(&hvcC, 8);
    take(&hvcC, 8);
    take(&hvcC, 5);
    // libheif takes the length of a NAL unit to be in four bytes.
    if ((take(&hvcC, 1) & 3) != 3) return fail(file, TERN_CODEC_UNSUPPORTED, "NAL units with short lengths");
    const unsigned arrays = (unsigned)take(&hvcC, 1);
    tern_codec_result result = TERN_CODEC_OK;
    for (unsigned array = 0; array < arrays && result == TERN_CODEC_OK; array++) {
        take(&hvcC, 1);
        const unsigned units = (unsigned)take(&hvcC, 2);
        for (unsigned i = 0; i < units && result == TERN_CODEC_OK && !hvcC.isShort; i++) {
            const cursor unit = split(&hvcC, take(&hvcC, 2));
            result = judgeUnit(file, unit.at, unit.left < TERN_HEIF_SEQUENCE ? unit.left : TERN_HEIF_SEQUENCE, item);
        }
    }
    return hvcC.isShort ? broken(file, "hvcC") : result;
}

// MARK: Pictures

static tern_codec_result judge(file *file, item *item, unsigned depth);

/// Returns a sum, or a large number in place of a larger one.
static uint64_t sum(uint64_t one, uint64_t other) {
    const uint64_t most = UINT64_MAX / 4;
    return one > most - other ? most : one + other;
}

/// Adds the pixels of the pictures that one is put together of.
static tern_codec_result judgeParts(file *file, item *whole, unsigned depth) {
    cursor references = whole->references;
    if (whole->referenceCount == 0) return fail(file, TERN_CODEC_CORRUPT, "item %u has no parts", (unsigned)whole->id);
    for (unsigned i = 0; i < whole->referenceCount; i++) {
        item *part = find(file, take(&references, whole->hasWideReferences ? 4 : 2));
        if (!part) return fail(file, TERN_CODEC_CORRUPT, "item %u has parts that are not there", (unsigned)whole->id);
        const tern_codec_result result = judge(file, part, depth + 1);
        if (result != TERN_CODEC_OK) return result;
        whole->coded = sum(whole->coded, part->coded);
    }
    return TERN_CODEC_OK;
}

/// Reads the size of the canvas of a grid or an overlay (ISO/IEC 23008-12, §6.6.2). The parts of a grid have one size,
/// and must cover it, because libheif leaves the rest as the memory was.
static tern_codec_result judgeCanvas(file *file, const item *whole) {
    uint64_t bytes = 0;
    const tern_codec_result result = measure(file, whole, &bytes);
    if (result != TERN_CODEC_OK) return result;
    uint8_t head[32];
    cursor content = {head, copy(file, whole, 0, head, sizeof head), false};
    take(&content, 1);
    const unsigned size = (take(&content, 1) & 1) != 0 ? 4 : 2;
    const bool isGrid = whole->type == CODE('g', 'r', 'i', 'd');
    const unsigned rows = isGrid ? (unsigned)take(&content, 1) + 1 : 0;
    const unsigned columns = isGrid ? (unsigned)take(&content, 1) + 1 : 0;
    if (!isGrid) take(&content, 8);
    const uint64_t width = take(&content, size), height = take(&content, size);
    if (content.isShort || width == 0 || height == 0)
        return fail(file, TERN_CODEC_CORRUPT, "the size of item %u is damaged", whole->id);
    if (whole->width != width || whole->height != height) {
        return fail(
            file, TERN_CODEC_CORRUPT, "%u by %u pixels put together where the header says %u by %u", (unsigned)width,
            (unsigned)height, whole->width, whole->height);
    }
    if (!isGrid) return TERN_CODEC_OK;
    if (rows * columns != whole->referenceCount)
        return fail(file, TERN_CODEC_CORRUPT, "%u parts in %u by %u", whole->referenceCount, columns, rows);
    cursor references = whole->references;
    const item *first = NULL;
    for (unsigned i = 0; i < whole->referenceCount; i++) {
        const item *part = find(file, take(&references, whole->hasWideReferences ? 4 : 2));
        if (!first) first = part;
        const bool isSmall = (uint64_t)part->width * columns < width || (uint64_t)part->height * rows < height;
        const bool isOther = part->width != first->width || part->height != first->height || part->isTurned;
        if (isSmall || isOther) return fail(file, TERN_CODEC_CORRUPT, "the parts of a grid leave gaps");
    }
    return TERN_CODEC_OK;
}

/// Reads primaries and transfer (ISO/IEC 14496-12, §12.1.5), unless they are known: those of the whole picture come
/// before those of its parts.
static void readColor(tern_color_numbers *color, cursor colr) {
    if (take(&colr, 4) != CODE('n', 'c', 'l', 'x') || color->primaries != 2 || color->transfer != 2) return;
    const uint16_t primaries = (uint16_t)take(&colr, 2), transfer = (uint16_t)take(&colr, 2);
    if (primaries > 0) color->primaries = primaries;
    if (transfer > 0) color->transfer = transfer;
}

static tern_codec_result judgeItem(file *file, item *item, unsigned depth) {
    const box *property, *configuration = NULL;
    uint64_t pixels = 0;
    unsigned turns = 0;
    cursor indices = item->properties;
    while ((property = nextProperty(file, item, &indices))) {
        cursor content = property->content;
        switch (property->type) {
        case CODE('h', 'v', 'c', 'C'):
            if (configuration) return broken(file, "ipma");
            configuration = property;
            break;
        case CODE('i', 's', 'p', 'e'): {
            take(&content, 4);
            if (pixels > 0) return broken(file, "ipma");
            item->width = (uint32_t)take(&content, 4);
            item->height = (uint32_t)take(&content, 4);
            pixels = (uint64_t)item->width * item->height;
            if (content.isShort || pixels == 0) return broken(file, "ispe");
            break;
        }
        case CODE('c', 'o', 'l', 'r'): readColor(&file->survey->color, content); break;
        case CODE('c', 'l', 'l', 'i'): file->survey->color.peak = (double)take(&content, 2); break;
        case CODE('i', 'r', 'o', 't'): case CODE('i', 'm', 'i', 'r'): case CODE('c', 'l', 'a', 'p'): turns++; break;
        default: break;
        }
    }
    if (turns > MOST_TURNS) return broken(file, "ipma");
    item->isTurned = turns > 0 || item->type == CODE('i', 'd', 'e', 'n');
    if (pixels > file->survey->largest) file->survey->largest = pixels;
    tern_codec_result result = TERN_CODEC_OK;
    switch (item->type) {
    case CODE('h', 'v', 'c', '1'):
        if (pixels == 0 || !configuration)
            return fail(file, TERN_CODEC_CORRUPT, "item %u has no size or no setup", item->id);
        item->coded = sum(pixels, START_PIXELS);
        result = judgeConfiguration(file, configuration->content, item);
        if (result == TERN_CODEC_OK) result = judgeStream(file, item);
        break;
    case CODE('g', 'r', 'i', 'd'): case CODE('i', 'o', 'v', 'l'):
        if (item->type == CODE('i', 'o', 'v', 'l')) file->survey->isOverlay = true;
        result = judgeParts(file, item, depth);
        if (result == TERN_CODEC_OK) result = judgeCanvas(file, item);
        break;
    case CODE('i', 'd', 'e', 'n'): result = judgeParts(file, item, depth); break;
    default:
        return fail(
            file, TERN_CODEC_UNSUPPORTED, "a picture of the type %c%c%c%c, which is not HEVC", item->type >> 24 & 127,
            item->type >> 16 & 127, item->type >> 8 & 127, item->type & 127);
    }
    if (file->survey->largest > tern_heif_most(file->pixelLimit)) {
        return fail(
            file, TERN_CODEC_LIMIT, "%llu pixels, the limit is %llu", (unsigned long long)file->survey->largest,
            (unsigned long long)file->pixelLimit);
    }
    return result;
}

static tern_codec_result judge(file *file, item *item, unsigned depth) {
    if (item->state == JUDGED) return TERN_CODEC_OK;
    if (item->state == OPEN || depth > MOST_DEPTH)
        return fail(file, TERN_CODEC_CORRUPT, "the pictures are parts of each other");
    item->state = OPEN;
    uint64_t alpha = 0;
    if (item->alpha > 0) {
        // Judged first, so that the samples of the colours count.
        const tern_codec_result result = judge(file, &file->items[item->alpha - 1], depth + 1);
        if (result != TERN_CODEC_OK) return result;
        alpha = file->items[item->alpha - 1].coded;
        file->survey->color = (tern_color_numbers){.primaries = 2, .transfer = 2};
    }
    const tern_codec_result result = judgeItem(file, item, depth);
    item->coded = sum(item->coded, alpha);
    item->state = JUDGED;
    return result;
}

static tern_codec_result walkMeta(file *file, cursor meta) {
    struct { uint32_t type; const char *name; bool isThere; cursor content; } parts[] = {
        {.type = CODE('i', 'i', 'n', 'f'), .name = "iinf"}, {.type = CODE('i', 'l', 'o', 'c'), .name = "iloc"},
        {.type = CODE('i', 'p', 'r', 'p'), .name = "iprp"}, {.type = CODE('p', 'i', 't', 'm'), .name = "pitm"},
        {.type = CODE('i', 'r', 'e', 'f'), .name = "iref"}, {.type = CODE('i', 'd', 'a', 't'), .name = "idat"},
    };
    enum { IINF, ILOC, IPRP, PITM, IREF, IDAT, PARTS };
    take(&meta, 4);
    box part;
    while (next(&meta, &part)) {
        for (size_t i = 0; i < PARTS; i++) {
            if (parts[i].type != part.type) continue;
            if (parts[i].isThere) return broken(file, parts[i].name);
            parts[i].isThere = true;
            parts[i].content = part.content;
        }
    }
    if (meta.isShort) return broken(file, "meta");
    for (size_t i = 0; i < IREF; i++)
        if (!parts[i].isThere) return fail(file, TERN_CODEC_CORRUPT, "there is no box %s", parts[i].name);
    file->idat = parts[IDAT].content;
    tern_codec_result result = readItems(file, parts[IINF].content);
    if (result == TERN_CODEC_OK) result = readPlaces(file, parts[ILOC].content);
    if (result == TERN_CODEC_OK) result = readProperties(file, parts[IPRP].content);
    if (result == TERN_CODEC_OK && parts[IREF].isThere) result = readReferences(file, parts[IREF].content);
    if (result != TERN_CODEC_OK) return result;
    cursor pitm = parts[PITM].content;
    const unsigned version = (unsigned)take(&pitm, 1);
    take(&pitm, 3);
    const uint64_t id = take(&pitm, version == 0 ? 2 : 4);
    item *primary = find(file, id);
    if (pitm.isShort || !primary) return broken(file, "pitm");
    result = judge(file, primary, 0);
    if (result != TERN_CODEC_OK) return result;
    file->survey->hasAlpha = primary->alpha > 0;
    // An alpha channel has as many pixels again, and the last row and column of a grid can be larger than the picture.
    if (primary->coded / 4 <= file->pixelLimit + (1 << 22)) return TERN_CODEC_OK;
    return fail(file, TERN_CODEC_LIMIT, "the picture is put together of too many pixels");
}

tern_codec_result tern_heif_walk(
    const uint8_t *bytes, size_t count, uint64_t pixelLimit, tern_heif_survey *survey, char *error) {
    *survey = (tern_heif_survey){.color = {.primaries = 2, .transfer = 2}};
    file file = {.bytes = bytes, .count = count, .pixelLimit = pixelLimit, .survey = survey, .error = error};
    cursor all = {bytes, count, false}, meta = {NULL, 0, false};
    bool hasMeta = false, hasMovie = false;
    box part;
    while (next(&all, &part)) {
        if (part.type == CODE('m', 'o', 'o', 'v')) hasMovie = true;
        if (part.type != CODE('m', 'e', 't', 'a')) continue;
        if (hasMeta) return broken(&file, "meta");
        hasMeta = true;
        meta = part.content;
    }
    if (!hasMeta && hasMovie) return fail(&file, TERN_CODEC_UNSUPPORTED, "an image sequence without a still picture");
    if (!hasMeta) return fail(&file, TERN_CODEC_TRUNCATED, "the bytes end before the box meta does");
    const tern_codec_result result = walkMeta(&file, meta);
    free(file.items);
    free(file.properties);
    return result;
}
#endif
