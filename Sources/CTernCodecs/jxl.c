// Decodes JPEG XL with libjxl, which is loaded when the first JPEG XL file arrives. It is fed with the bare codestream
// in pieces, on one thread.
#include "jxl_frames.h"

#if defined(__linux__)
#include "jxl_layout.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct JxlDecoder JxlDecoder;
typedef struct {
    void *client;
    void *(*allocate)(void *client, size_t size);
    void (*free)(void *client, void *address);
} memoryManager;
typedef struct { int kind; uint8_t room[512]; } channelInfo;

enum { NEEDS_INPUT = 2, NEEDS_CANVAS = 5 };
enum { HEAD = 0x40, COLOR = 0x100, FRAME = 0x400, PICTURE = 0x1000 };
enum { OF_ORIGINAL = 0, OF_DATA = 1, BLACK_CHANNEL = 4 };
enum { IS_RGB = 0, IS_GREY = 1, IS_D65 = 1, IS_DCI = 11, IS_SRGB = 1, IS_BT2100 = 9, IS_P3 = 11 };
// The numbers of ITU-T H.273.
enum { LINEAR = 8, SRGB_CURVE = 13, PQ_CURVE = 16, HLG_CURVE = 18, P3_WITH_D65 = 12 };

static struct {
    uint32_t (*version)(void);
    JxlDecoder *(*create)(const memoryManager *);
    void (*destroy)(JxlDecoder *);
    int (*subscribe)(JxlDecoder *, int), (*keepOrientation)(JxlDecoder *, int), (*straighten)(JxlDecoder *, int);
    int (*limitBrightness)(JxlDecoder *, float);
    int (*setInput)(JxlDecoder *, const uint8_t *, size_t);
    size_t (*releaseInput)(JxlDecoder *);
    int (*process)(JxlDecoder *);
    int (*imageInfo)(const JxlDecoder *, imageInfo *), (*frameInfo)(const JxlDecoder *, frameInfo *);
    int (*channelInfo)(const JxlDecoder *, size_t, channelInfo *);
    int (*preferColor)(JxlDecoder *, const colorEncoding *);
    int (*canvasSize)(const JxlDecoder *, const pixelFormat *, size_t *);
    int (*setCanvas)(JxlDecoder *, const pixelFormat *, void *, size_t), (*flush)(JxlDecoder *);
    // Three functions that lost an argument in 0.9.
    void *color, *profileSize, *profile;
    bool hasFormat, refusesMemory;
    char obstacle[160];
} library;

static void loadOnce(void) {
    const tern_symbol symbols[] = {
        {"JxlDecoderVersion", &library.version}, {"JxlDecoderCreate", &library.create},
        {"JxlDecoderDestroy", &library.destroy}, {"JxlDecoderSubscribeEvents", &library.subscribe},
        {"JxlDecoderSetKeepOrientation", &library.keepOrientation},
        {"JxlDecoderSetUnpremultiplyAlpha", &library.straighten},
        {"JxlDecoderSetDesiredIntensityTarget", &library.limitBrightness},
        {"JxlDecoderSetInput", &library.setInput}, {"JxlDecoderReleaseInput", &library.releaseInput},
        {"JxlDecoderProcessInput", &library.process}, {"JxlDecoderGetBasicInfo", &library.imageInfo},
        {"JxlDecoderGetFrameHeader", &library.frameInfo}, {"JxlDecoderGetExtraChannelInfo", &library.channelInfo},
        {"JxlDecoderSetPreferredColorProfile", &library.preferColor},
        {"JxlDecoderImageOutBufferSize", &library.canvasSize}, {"JxlDecoderSetImageOutBuffer", &library.setCanvas},
        {"JxlDecoderFlushImage", &library.flush}, {"JxlDecoderGetColorAsEncodedProfile", &library.color},
        {"JxlDecoderGetICCProfileSize", &library.profileSize}, {"JxlDecoderGetColorAsICCProfile", &library.profile},
    };
    const uint32_t version =
        tern_jxl_load(symbols, sizeof symbols / sizeof *symbols, &library.version, library.obstacle);
    library.hasFormat = version < 9;
    // Earlier versions end the process.
    library.refusesMemory = version >= 11;
}

uint32_t tern_jxl_load(const tern_symbol *symbols, size_t count, uint32_t (**version)(void), char *obstacle) {
    static const char *const names[] = {
        "libjxl.so.0.11", "libjxl.so.0.10", "libjxl.so.0.9", "libjxl.so.0.8", "libjxl.so.0.7",
    };
    const char *advice = "install libjxl 0.7 to 0.11: the Debian package libjxl0.7 or libjxl0.11 (Fedora: libjxl)";
    if (!tern_load(names, sizeof names / sizeof *names, symbols, count, advice, obstacle)) return 0;
    const uint32_t minor = (*version)() / 1000;
    if (minor >= 7 && minor <= 11) return minor;
    snprintf(obstacle, 160, "%s", advice);
    return 0;
}

const char *tern_jxl_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

struct tern_jxl {
    // The codestream, which is a part of the file or a copy of its parts.
    const uint8_t *bytes;
    uint8_t *copy;
    size_t count;
    // The first byte that libjxl has not taken, the end of those that it has been given, and the bytes of a piece.
    size_t at, end, piece;
    JxlDecoder *decoder;
    imageInfo image;
    uint64_t memoryLimit, memory;
    tern_feed_limits limits;
    bool isDeep;
    // Boolean values that indicate whether libjxl was refused memory, and whether the bytes end within a frame.
    bool isRefused, isCut;
    // Boolean values that indicate whether decoding has stopped within a frame, and whether there was something to show.
    bool hasStopped, isShown;
    uint32_t duration;
    uint8_t *profile;
    size_t profileCount;
};

/// The most bytes in which libjxl looks for the header, of which the colour profile is the largest part. A profile
/// takes up to 256 times its bytes in the file.
static const size_t headLimit = 256 << 10;

static void *allocate(void *client, size_t size) {
    tern_jxl *jxl = client;
    const size_t head = 64;
    if (size > jxl->memoryLimit - jxl->memory || size > SIZE_MAX - head) {
        jxl->isRefused = true;
        return NULL;
    }
    uint8_t *block = malloc(size + head);
    if (!block) {
        jxl->isRefused = true;
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    jxl->memory += size;
    return block + head;
}

static void freeBlock(void *client, void *address) {
    tern_jxl *jxl = client;
    if (!address) return;
    uint8_t *block = (uint8_t *)address - 64;
    size_t size;
    memcpy(&size, block, sizeof size);
    jxl->memory -= size;
    free(block);
}

static uint64_t bigEndian(const uint8_t *bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) value = value << 8 | bytes[i];
    return value;
}

/// Finds the codestream in a file of boxes (ISO/IEC 18181-2), where it can be in parts, which are copied. A box can end
/// beyond the bytes. Returns false when memory is short.
static bool findStream(tern_jxl *jxl, const uint8_t *bytes, size_t count) {
    jxl->bytes = bytes;
    jxl->count = count;
    if (count < 2 || bytes[0] == 0xFF) return true;
    jxl->count = 0;
    size_t taken = 0;
    for (size_t at = 0; count - at >= 8;) {
        uint64_t size = bigEndian(bytes + at, 4), head = 8;
        const uint32_t type = (uint32_t)bigEndian(bytes + at + 4, 4);
        if (size == 1 && count - at >= 16) {
            size = bigEndian(bytes + at + 8, 8);
            head = 16;
        }
        if (size == 0 || size > count - at) size = count - at;
        if (size < head) break;
        const uint8_t *body = bytes + at + head;
        size_t length = (size_t)(size - head);
        if (type == 0x6A786C63) { // jxlc
            jxl->bytes = body;
            jxl->count = length;
            break;
        }
        if (type == 0x6A786C70 && length >= 4) { // jxlp, which begins with its number
            if (!jxl->copy && !(jxl->copy = malloc(count))) return false;
            memcpy(jxl->copy + taken, body + 4, length - 4);
            taken += length - 4;
            jxl->bytes = jxl->copy;
            jxl->count = taken;
            if (body[0] & 0x80) break;
        }
        at += (size_t)size;
    }
    return true;
}

static bool isSRGB(const colorEncoding *color) {
    const bool isGrey = color->space == IS_GREY;
    return (isGrey || (color->space == IS_RGB && color->primaries == IS_SRGB)) && color->white == IS_D65
        && color->transfer == SRGB_CURVE;
}

/// Returns the primaries in the numbers of ITU-T H.273, or 0 if the colours have to be read from a profile.
static uint16_t primariesNumber(const colorEncoding *color) {
    const int curve = color->transfer;
    if (color->space != IS_RGB) return 0;
    if (curve != LINEAR && curve != SRGB_CURVE && curve != PQ_CURVE && curve != HLG_CURVE) return 0;
    if (color->white == IS_DCI) return color->primaries == IS_P3 ? IS_P3 : 0;
    if (color->white != IS_D65) return 0;
    switch (color->primaries) {
    case IS_SRGB: case IS_BT2100: return (uint16_t)color->primaries;
    case IS_P3: return P3_WITH_D65;
    default: return 0;
    }
}

/// Returns whether the colours of the original or of the data are known by their names.
static bool readColor(const JxlDecoder *decoder, int target, colorEncoding *color) {
    int (*with)(const JxlDecoder *, const pixelFormat *, int, colorEncoding *);
    int (*without)(const JxlDecoder *, int, colorEncoding *);
    memcpy(&with, &library.color, sizeof with);
    memcpy(&without, &library.color, sizeof without);
    return (library.hasFormat ? with(decoder, NULL, target, color) : without(decoder, target, color)) == DONE;
}

static void readProfile(tern_jxl *jxl) {
    int (*sizeWith)(const JxlDecoder *, const pixelFormat *, int, size_t *);
    int (*sizeWithout)(const JxlDecoder *, int, size_t *);
    int (*with)(const JxlDecoder *, const pixelFormat *, int, uint8_t *, size_t);
    int (*without)(const JxlDecoder *, int, uint8_t *, size_t);
    memcpy(&sizeWith, &library.profileSize, sizeof sizeWith);
    memcpy(&sizeWithout, &library.profileSize, sizeof sizeWithout);
    memcpy(&with, &library.profile, sizeof with);
    memcpy(&without, &library.profile, sizeof without);
    size_t count = 0;
    const JxlDecoder *decoder = jxl->decoder;
    const int found = library.hasFormat
        ? sizeWith(decoder, NULL, OF_DATA, &count) : sizeWithout(decoder, OF_DATA, &count);
    if (found != DONE || count == 0 || count > 4 << 20) return;
    uint8_t *profile = malloc(count);
    if (!profile) return;
    const int read = library.hasFormat
        ? with(decoder, NULL, OF_DATA, profile, count) : without(decoder, OF_DATA, profile, count);
    if (read == DONE) {
        jxl->profile = profile;
        jxl->profileCount = count;
    } else {
        free(profile);
    }
}

static tern_codec_result fail(const tern_jxl *jxl, const char *part, char *error) {
    if (jxl->isRefused) {
        snprintf(error, 160, "libjxl needs more than %llu MiB", (unsigned long long)(jxl->memoryLimit >> 20));
        return TERN_CODEC_SCANS;
    }
    snprintf(error, 160, "libjxl does not understand the %s", part);
    return jxl->isCut && jxl->end == jxl->count ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
}

/// Reads the header with a new decoder of libjxl, whose next frame is the first one.
static tern_codec_result start(tern_jxl *jxl, char *error) {
    if (jxl->decoder) library.destroy(jxl->decoder);
    jxl->isRefused = jxl->hasStopped = false;
    const memoryManager manager = {jxl, allocate, freeBlock};
    JxlDecoder *decoder = jxl->decoder = library.create(library.refusesMemory ? &manager : NULL);
    if (!decoder) {
        snprintf(error, 160, "no memory for a decoder");
        return TERN_CODEC_MEMORY;
    }
    library.subscribe(decoder, HEAD | COLOR | FRAME | PICTURE);
    library.keepOrientation(decoder, 1);
    library.straighten(decoder, 1);
    const size_t given = jxl->count < headLimit ? jxl->count : headLimit;
    library.setInput(decoder, jxl->bytes, given);
    for (;;) {
        switch (library.process(decoder)) {
        case HEAD:
            if (library.imageInfo(decoder, &jxl->image) != DONE) return fail(jxl, "header", error);
            // Brighter pictures are mapped to what a display of sRGB shows.
            if (!jxl->image.usesOriginalProfile && jxl->limits.colors != TERN_COLORS_STORED)
                library.limitBrightness(decoder, 255);
            break;
        case COLOR: {
            // libjxl's own choice for pictures with a profile would be linear.
            colorEncoding color = {
                .space = jxl->image.colorChannels == 1 ? IS_GREY : IS_RGB, .white = IS_D65,
                .primaries = jxl->limits.colors == TERN_COLORS_P3 ? IS_P3 : IS_SRGB, .transfer = SRGB_CURVE, .intent = 1,
            };
            colorEncoding original;
            if (jxl->limits.colors == TERN_COLORS_STORED && readColor(decoder, OF_ORIGINAL, &original)) color = original;
            if (!jxl->image.usesOriginalProfile) library.preferColor(decoder, &color);
            jxl->at = jxl->end = given - library.releaseInput(decoder);
            return TERN_CODEC_OK;
        }
        case NEEDS_INPUT:
            if (given < jxl->count) {
                snprintf(error, 160, "the header has more than %zu KiB", headLimit >> 10);
                return TERN_CODEC_UNSUPPORTED;
            }
            snprintf(error, 160, "the bytes end in the header");
            return TERN_CODEC_TRUNCATED;
        default: return fail(jxl, "header", error);
        }
    }
}

static tern_codec_result open(tern_jxl *jxl, tern_feed_limits limits, tern_codec_info *info, char *error) {
    tern_codec_result result = start(jxl, error);
    if (result != TERN_CODEC_OK) return result;
    const imageInfo *image = &jxl->image;
    *info = (tern_codec_info){
        .width = image->width, .height = image->height, .hasAlpha = image->alphaBits > 0,
        .orientation = image->orientation >= 1 && image->orientation <= 8 ? image->orientation : 1,
        .isAnimation = image->hasAnimation, .loopCount = image->hasAnimation ? image->loops : 0, .frameCount = 1,
    };
    if ((uint64_t)image->width * image->height > limits.pixels) return TERN_CODEC_OK;
    for (uint32_t i = 0; i < image->extraChannels; i++) {
        channelInfo channel;
        if (library.channelInfo(jxl->decoder, i, &channel) != DONE || channel.kind != BLACK_CHANNEL) continue;
        snprintf(error, 160, "the picture is in inks (CMYK), which are not converted");
        return TERN_CODEC_UNSUPPORTED;
    }
    colorEncoding color = {0};
    const bool isNamed = readColor(jxl->decoder, OF_DATA, &color);
    const uint16_t primaries = isNamed ? primariesNumber(&color) : 0;
    if (!isNamed || !isSRGB(&color)) {
        info->hasColor = primaries != 0;
        info->hasProfile = primaries == 0;
        info->color = (tern_color_numbers){
            .primaries = primaries, .transfer = (uint16_t)color.transfer,
            .peak = color.transfer == PQ_CURVE ? (double)image->brightest : 0,
        };
        if (info->hasProfile) readProfile(jxl);
    }
    jxl->isDeep = info->isDeep = tern_is_deep(limits, image->bits, info);
    const tern_jxl_head head = {
        .width = image->width, .height = image->height, .previewWidth = image->hasPreview ? image->previewWidth : 0,
        .previewHeight = image->hasPreview ? image->previewHeight : 0, .extraChannels = image->extraChannels,
        .isXYB = !image->usesOriginalProfile, .isAnimation = image->hasAnimation,
        .hasTimecodes = image->hasAnimation && image->hasTimecodes, .limits = limits,
    };
    tern_jxl_frames frames;
    result = tern_jxl_walk(jxl->bytes, jxl->count, jxl->at, &head, &frames, error);
    if (result != TERN_CODEC_OK) return result;
    info->frameCount = frames.shown;
    info->isCut = jxl->isCut = frames.isCut;
    // libjxl copies the bytes of a part of a frame until it is whole.
    info->memory = frames.memory + (uint64_t)jxl->count * 2 + (8 << 20);
    // About a million pixels for each piece.
    const uint64_t pieces = frames.pixels >> 20, piece = jxl->count / (pieces > 0 ? pieces : 1);
    jxl->piece = piece < 64 ? 64 : piece > 64 << 10 ? 64 << 10 : (size_t)piece;
    return TERN_CODEC_OK;
}

tern_jxl *tern_jxl_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_UNSUPPORTED;
    const char *obstacle = tern_jxl_obstacle();
    if (obstacle) {
        snprintf(error, 160, "%s", obstacle);
        return NULL;
    }
    tern_jxl *jxl = calloc(1, sizeof *jxl);
    *result = TERN_CODEC_MEMORY;
    if (!jxl) return NULL;
    jxl->memoryLimit = limits.memory;
    jxl->limits = limits;
    if (findStream(jxl, bytes, count)) *result = open(jxl, limits, info, error);
    if (*result == TERN_CODEC_OK) return jxl;
    tern_jxl_close(jxl);
    return NULL;
}

const uint8_t *tern_jxl_profile(const tern_jxl *jxl, size_t *count, int *channels) {
    *count = jxl->profileCount;
    *channels = jxl->image.colorChannels == 1 ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    return jxl->profile;
}

static tern_codec_result decode(tern_jxl *jxl, tern_canvas canvas, uint64_t *microseconds, char *error) {
    const pixelFormat format = {4, jxl->isDeep ? WORDS : BYTES, 0, 0};
    JxlDecoder *decoder = jxl->decoder;
    if (!decoder) return TERN_CODEC_MEMORY;
    if (!tern_canvas_fits(canvas, jxl->image.width, jxl->image.height, error)) return TERN_CODEC_CORRUPT;
    if (canvas.stride != (size_t)canvas.width * (jxl->isDeep ? 8 : 4)) return TERN_CODEC_CORRUPT;
    for (;;) {
        switch (library.process(decoder)) {
        case FRAME: {
            frameInfo frame;
            jxl->duration = library.frameInfo(decoder, &frame) == DONE ? frame.duration : 0;
            break;
        }
        case NEEDS_CANVAS: {
            const size_t room = canvas.stride * canvas.height;
            size_t size = 0;
            if (library.canvasSize(decoder, &format, &size) != DONE || size > room
                || library.setCanvas(decoder, &format, canvas.pixels, room) != DONE) return fail(jxl, "size", error);
            break;
        }
        case NEEDS_INPUT:
            jxl->at = jxl->end - library.releaseInput(decoder);
            if (jxl->end == jxl->count) {
                // Writes what there is of the frame.
                jxl->isShown = library.flush(decoder) == DONE;
                snprintf(error, 160, "the bytes end within a frame");
                return TERN_CODEC_TRUNCATED;
            }
            jxl->end = jxl->count - jxl->end > jxl->piece ? jxl->end + jxl->piece : jxl->count;
            library.setInput(decoder, jxl->bytes + jxl->at, jxl->end - jxl->at);
            return TERN_CODEC_MORE;
        case PICTURE: {
            const imageInfo *image = &jxl->image;
            const double seconds = image->hasAnimation && image->ticks > 0
                ? (double)jxl->duration * image->perSeconds / image->ticks : 0;
            *microseconds = seconds < 1e9 ? (uint64_t)(seconds * 1e6 + 0.5) : 0;
            return TERN_CODEC_OK;
        }
        case DONE: snprintf(error, 160, "there are fewer frames than their headers say"); return TERN_CODEC_CORRUPT;
        default: return fail(jxl, "frame", error);
        }
    }
}

tern_codec_result tern_jxl_next(tern_jxl *jxl, tern_canvas canvas, uint64_t *microseconds, char *error) {
    const tern_codec_result result = decode(jxl, canvas, microseconds, error);
    if (result != TERN_CODEC_OK && result != TERN_CODEC_MORE) jxl->hasStopped = true;
    return result;
}

// The end of a file without boxes is that of its last frame.
bool tern_jxl_has_end(const tern_jxl *jxl) { return !jxl->isCut && !jxl->hasStopped; }

bool tern_jxl_is_shown(const tern_jxl *jxl) { return jxl->isShown; }

tern_codec_result tern_jxl_rewind(tern_jxl *jxl, char *error) { return start(jxl, error); }

void tern_jxl_close(tern_jxl *jxl) {
    if (!jxl) return;
    if (jxl->decoder) library.destroy(jxl->decoder);
    free(jxl->copy);
    free(jxl->profile);
    free(jxl);
}
#endif
