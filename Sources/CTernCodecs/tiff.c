// Decodes TIFF with libtiff, which is loaded when the first TIFF file arrives. Its reader of RGBA knows all kinds of
// samples of up to 16 bits. It is asked for bands of whole strips or tiles, and for the rows as stored.
#include "CTernCodecs.h"

#if defined(__linux__)
#include "loaded.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Declarations from <tiffio.h> 4.5, whose layout belongs to libtiff.so.6.
typedef struct TIFF TIFF;
typedef struct TIFFOpenOptions TIFFOpenOptions;
typedef struct {
    TIFF *file;
    int stopsAtError, isContiguous, alpha;
    uint32_t width, height;
    uint16_t bits, samples, orientation, wantedOrientation, photometric;
    void *maps[8], *tables[2];
    // Products of a colour and its alpha, for straight colours.
    uint8_t *products, *levels;
    int row, column;
    // Members that later versions add.
    char room[256];
} reader;
typedef int (*report)(TIFF *, void *client, const char *module, const char *format, va_list);

enum {
    SUBFILE_TYPE = 254, COMPRESSION = 259, PHOTOMETRIC = 262, ORIENTATION = 274, SAMPLES = 277, ROWS_PER_STRIP = 278,
    TILE_LENGTH = 323, SUB_DIRECTORIES = 330, EXTRA_SAMPLES = 338, ICC_PROFILE = 34675,
};
enum { GREY = 1, SEPARATED = 5 };

static struct {
    TIFFOpenOptions *(*newOptions)(void);
    void (*freeOptions)(TIFFOpenOptions *), (*limitMemory)(TIFFOpenOptions *, intptr_t);
    void (*onError)(TIFFOpenOptions *, report, void *), (*onWarning)(TIFFOpenOptions *, report, void *);
    TIFF *(*open)(
        const char *, const char *, void *, intptr_t (*)(void *, void *, intptr_t),
        intptr_t (*)(void *, void *, intptr_t), uint64_t (*)(void *, uint64_t, int), int (*)(void *),
        uint64_t (*)(void *), int (*)(void *, void **, uint64_t *), void (*)(void *, void *, uint64_t),
        TIFFOpenOptions *);
    void (*close)(TIFF *);
    int (*get)(TIFF *, uint32_t, ...), (*getDefault)(TIFF *, uint32_t, ...), (*isTiled)(TIFF *);
    uint32_t (*partCount)(TIFF *);
    uint64_t (*partOffset)(TIFF *, uint32_t), (*partLength)(TIFF *, uint32_t), (*stripSize)(TIFF *), (*tileSize)(TIFF *);
    int (*begin)(reader *, TIFF *, int, char *), (*read)(reader *, uint32_t *, uint32_t, uint32_t);
    void (*end)(reader *);
    char obstacle[160];
} library;

static void loadOnce(void) {
    static const char *const names[] = {"libtiff.so.6"};
    const tern_symbol symbols[] = {
        {"TIFFOpenOptionsAlloc", &library.newOptions}, {"TIFFOpenOptionsFree", &library.freeOptions},
        {"TIFFOpenOptionsSetMaxSingleMemAlloc", &library.limitMemory},
        {"TIFFOpenOptionsSetErrorHandlerExtR", &library.onError},
        {"TIFFOpenOptionsSetWarningHandlerExtR", &library.onWarning}, {"TIFFClientOpenExt", &library.open},
        {"TIFFClose", &library.close}, {"TIFFGetField", &library.get},
        {"TIFFGetFieldDefaulted", &library.getDefault}, {"TIFFIsTiled", &library.isTiled},
        {"TIFFNumberOfStrips", &library.partCount}, {"TIFFGetStrileOffset", &library.partOffset},
        {"TIFFGetStrileByteCount", &library.partLength}, {"TIFFStripSize64", &library.stripSize},
        {"TIFFTileSize64", &library.tileSize}, {"TIFFRGBAImageBegin", &library.begin},
        {"TIFFRGBAImageGet", &library.read}, {"TIFFRGBAImageEnd", &library.end},
    };
    tern_load(
        names, 1, symbols, sizeof symbols / sizeof *symbols,
        "install libtiff 4.5 or later: the Debian package libtiff6 (Fedora: libtiff)", library.obstacle);
}

const char *tern_tiff_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

struct tern_tiff {
    const uint8_t *bytes;
    size_t count, at;
    TIFF *file;
    reader reader;
    // Boolean values that indicate whether the file has an alpha channel, whether libtiff writes one that the file does
    // not have, and whether the samples are compressed as JPEG.
    bool hasAlpha, inventsAlpha, hasJPEG;
    bool isOpen, isReading;
    uint32_t width, height, row;
    // The rows of a strip or of a row of tiles.
    uint32_t partRows;
    // The first error of libtiff, or the first warning about the data of a JPEG, for which it invents pixels.
    char text[160];
};

// libtiff reads the bytes in place where it can.
static intptr_t readBytes(void *client, void *into, intptr_t count) {
    tern_tiff *tiff = client;
    const size_t left = tiff->at < tiff->count ? tiff->count - tiff->at : 0;
    const size_t taken = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    memcpy(into, tiff->bytes + tiff->at, taken);
    tiff->at += taken;
    return (intptr_t)taken;
}

static intptr_t writeBytes(void *client, void *from, intptr_t count) { return 0; }

static uint64_t seekBytes(void *client, uint64_t offset, int from) {
    tern_tiff *tiff = client;
    const uint64_t start = from == SEEK_SET ? 0 : from == SEEK_CUR ? tiff->at : tiff->count;
    tiff->at = (size_t)(start + offset);
    return tiff->at;
}

static int closeBytes(void *client) { return 0; }
static uint64_t countBytes(void *client) { return ((const tern_tiff *)client)->count; }

static int mapBytes(void *client, void **base, uint64_t *size) {
    const tern_tiff *tiff = client;
    // libtiff does not write to what it maps for reading.
    memcpy(base, &tiff->bytes, sizeof *base);
    *size = tiff->count;
    return 1;
}

static void unmapBytes(void *client, void *base, uint64_t size) {}

static void note(tern_tiff *tiff, const char *format, va_list arguments) {
    if (!tiff->text[0]) vsnprintf(tiff->text, sizeof tiff->text, format, arguments);
}

static int noteError(TIFF *file, void *client, const char *module, const char *format, va_list arguments) {
    note(client, format, arguments);
    return 1;
}

static int noteWarning(TIFF *file, void *client, const char *module, const char *format, va_list arguments) {
    tern_tiff *tiff = client;
    if (tiff->isReading && tiff->hasJPEG) note(tiff, format, arguments);
    return 1;
}

/// Returns whether a strip or tile lies beyond the end of the bytes.
static bool isCut(const tern_tiff *tiff) {
    const uint32_t parts = library.partCount(tiff->file);
    for (uint32_t part = 0; part < parts; part++) {
        const uint64_t offset = library.partOffset(tiff->file, part), length = library.partLength(tiff->file, part);
        if (offset > tiff->count || length > tiff->count - offset) return true;
    }
    return false;
}

/// The extent of a file's first directory: the entries, and the link to the next directory behind them.
typedef enum { CUT, WITHOUT_LINK, WHOLE } directory;

static directory findDirectory(const uint8_t *bytes, size_t count) {
    if (count < 8) return CUT;
    const bool isLittle = bytes[0] == 'I', isBig = bytes[2] == '+' || bytes[3] == '+';
    const size_t width = isBig ? 8 : 4, start = isBig ? 8 : 4;
    if (count < start + width) return CUT;
    uint64_t offset = 0;
    for (size_t i = 0; i < width; i++) offset = offset << 8 | bytes[start + (isLittle ? width - 1 - i : i)];
    if (offset > count - 8) return CUT;
    const size_t counter = isBig ? 8 : 2, entry = isBig ? 20 : 12;
    uint64_t entries = 0;
    for (size_t i = 0; i < counter; i++) entries = entries << 8 | bytes[offset + (isLittle ? counter - 1 - i : i)];
    const uint64_t left = count - offset - counter;
    if (entries > left / entry) return CUT;
    return left - entries * entry >= width ? WHOLE : WITHOUT_LINK;
}

/// Returns whether the file declares an alpha channel, or has a fourth sample without a word about its meaning. libtiff
/// also takes a fourth sample for alpha that is declared to be something else.
static bool hasAlpha(TIFF *file, const reader *reader) {
    uint16_t count = 0, *kinds = NULL;
    if (!reader->alpha) return false;
    return library.getDefault(file, EXTRA_SAMPLES, &count, &kinds) != 1 || count == 0 || kinds[0] == 1 || kinds[0] == 2;
}

static int number(TIFF *file, uint32_t tag) {
    uint16_t value = 0;
    return library.getDefault(file, tag, &value) == 1 ? value : 0;
}

static uint32_t length(TIFF *file, uint32_t tag) {
    uint32_t value = 0;
    return library.getDefault(file, tag, &value) == 1 ? value : 0;
}

/// Returns whether the first picture has pictures of its own.
static bool hasPart(TIFF *file) {
    uint16_t count = 0;
    const void *offsets = NULL;
    return library.get(file, SUB_DIRECTORIES, &count, &offsets) == 1 && count > 0;
}

static TIFF *openFile(tern_tiff *tiff, uint64_t memory) {
    TIFFOpenOptions *options = library.newOptions();
    if (!options) return NULL;
    library.limitMemory(options, memory < INTPTR_MAX ? (intptr_t)memory : INTPTR_MAX);
    library.onError(options, noteError, tiff);
    library.onWarning(options, noteWarning, tiff);
    TIFF *file = library.open(
        "TIFF", "r", tiff, readBytes, writeBytes, seekBytes, closeBytes, countBytes, mapBytes, unmapBytes, options);
    library.freeOptions(options);
    return file;
}

tern_tiff *tern_tiff_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_UNSUPPORTED;
    const char *obstacle = tern_tiff_obstacle();
    if (obstacle) {
        snprintf(error, 160, "%s", obstacle);
        return NULL;
    }
    tern_tiff *tiff = calloc(1, sizeof *tiff);
    *result = TERN_CODEC_MEMORY;
    if (!tiff) return NULL;
    tiff->bytes = bytes;
    tiff->count = count;
    TIFF *file = tiff->file = openFile(tiff, limits.memory);
    if (!file) {
        *result = findDirectory(bytes, count) == CUT ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
        snprintf(error, 160, "%s", tiff->text);
        tern_tiff_close(tiff);
        return NULL;
    }
    // The first picture of a camera's raw file is a small version of the one that the program asked for.
    if ((length(file, SUBFILE_TYPE) & 1) != 0 && hasPart(file)) {
        *result = TERN_CODEC_UNSUPPORTED;
        snprintf(error, 160, "a raw file of a camera, or another whose first picture stands for a larger one");
        tern_tiff_close(tiff);
        return NULL;
    }
    // Takes tables for levels and colours, and nothing for pixels.
    char text[1024] = "";
    tiff->text[0] = 0;
    tiff->isOpen = library.begin(&tiff->reader, file, 1, text) != 0;
    if (!tiff->isOpen) {
        *result = TERN_CODEC_UNSUPPORTED;
        snprintf(error, 160, "%.150s", text[0] ? text : tiff->text);
        tern_tiff_close(tiff);
        return NULL;
    }
    // The rows as stored, from the top, and straight colours as they are.
    tiff->reader.wantedOrientation = tiff->reader.orientation;
    for (size_t i = 0; tiff->reader.products && i < 65536; i++) tiff->reader.products[i] = (uint8_t)i;
    tiff->width = tiff->reader.width;
    tiff->height = tiff->reader.height;
    const bool isTiled = library.isTiled(file) != 0;
    tiff->partRows = isTiled ? length(file, TILE_LENGTH) : length(file, ROWS_PER_STRIP);
    if (tiff->partRows == 0 || tiff->partRows > tiff->height) tiff->partRows = tiff->height;
    tiff->hasAlpha = hasAlpha(file, &tiff->reader);
    tiff->inventsAlpha = tiff->reader.alpha && !tiff->hasAlpha;
    tiff->hasJPEG = number(file, COMPRESSION) == 6 || number(file, COMPRESSION) == 7;
    const int orientation = number(file, ORIENTATION), samples = number(file, SAMPLES);
    uint32_t profileCount = 0;
    const void *profile = NULL;
    const bool hasProfile = library.get(file, ICC_PROFILE, &profileCount, &profile) == 1 && profileCount > 0;
    // One strip or tile per plane, unpacked, and tables of numbers.
    const uint64_t part = isTiled ? library.tileSize(file) : library.stripSize(file);
    *info = (tern_codec_info){
        .width = tiff->width, .height = tiff->height, .frameCount = 1, .hasAlpha = tiff->hasAlpha,
        .orientation = orientation >= 1 && orientation <= 8 ? orientation : 1, .hasProfile = hasProfile,
        .isInk = number(file, PHOTOMETRIC) == SEPARATED,
        .memory = part < UINT64_MAX / 16 ? part * (uint64_t)(samples > 4 ? samples : 4) + (4 << 20) : UINT64_MAX / 2,
    };
    *result = TERN_CODEC_OK;
    // Sizes are judged by the caller. Tables of offsets are read only for a picture that it can accept.
    if (tiff->width > 0 && tiff->height > 0 && (uint64_t)tiff->width * tiff->height <= limits.pixels)
        info->isCut = isCut(tiff);
    return tiff;
}

const uint8_t *tern_tiff_profile(const tern_tiff *tiff, size_t *count, int *channels) {
    uint32_t size = 0;
    const uint8_t *profile = NULL;
    if (library.get(tiff->file, ICC_PROFILE, &size, &profile) != 1) return NULL;
    *count = size;
    const int photometric = number(tiff->file, PHOTOMETRIC);
    *channels = photometric == SEPARATED ? TERN_CHANNELS_INK
        : photometric <= GREY ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    // Inks are mixed by libtiff, without the profile.
    return photometric == SEPARATED ? NULL : profile;
}

/// Writes straight colours in place of premultiplied ones.
static void straighten(uint8_t *row, size_t pixels) {
    for (size_t i = 0; i < pixels * 4; i += 4) {
        const unsigned alpha = row[i + 3];
        if (alpha == 255) continue;
        for (size_t c = 0; c < 3; c++) {
            const unsigned value = alpha ? (row[i + c] * 255u + alpha / 2) / alpha : 0;
            row[i + c] = (uint8_t)(value < 255 ? value : 255);
        }
    }
}

tern_codec_result tern_tiff_rows(tern_tiff *tiff, tern_canvas canvas, uint32_t rows, char *error) {
    if (!tern_canvas_fits(canvas, tiff->width, tiff->height, error)) return TERN_CODEC_CORRUPT;
    if (canvas.stride != (size_t)tiff->width * 4) return TERN_CODEC_CORRUPT;
    reader *reader = &tiff->reader;
    tiff->isReading = true;
    // A band begins at a strip or tile, which would otherwise be decoded once more for each band.
    const uint32_t left = tiff->height - tiff->row;
    uint64_t band = ((uint64_t)rows + tiff->partRows - 1) / tiff->partRows * tiff->partRows;
    if (band > left) band = left;
    uint8_t *start = canvas.pixels + canvas.stride * tiff->row;
    reader->row = (int)tiff->row;
    const bool isRead = library.read(reader, (uint32_t *)(void *)start, tiff->width, (uint32_t)band) == 1;
    for (size_t i = 0; tiff->inventsAlpha && i < (size_t)band * tiff->width; i++) start[i * 4 + 3] = 255;
    if (!isRead || tiff->text[0]) {
        snprintf(error, 160, "%.100s, after %u rows", tiff->text, (unsigned)tiff->row);
        return TERN_CODEC_CORRUPT;
    }
    if (tiff->hasAlpha && !reader->products) straighten(start, (size_t)band * tiff->width);
    tiff->row += (uint32_t)band;
    return tiff->row < tiff->height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

bool tern_tiff_has_end(const tern_tiff *tiff) { return findDirectory(tiff->bytes, tiff->count) == WHOLE; }

void tern_tiff_close(tern_tiff *tiff) {
    if (!tiff) return;
    if (tiff->isOpen) library.end(&tiff->reader);
    if (tiff->file) library.close(tiff->file);
    free(tiff);
}
#endif
