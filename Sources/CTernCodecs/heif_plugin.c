// Decodes HEVC with libde265 for libheif. The decoder that libheif has of its own reports no error where a damaged
// stream leaves parts of a picture as the memory was. This one takes still pictures only, gives libde265 memory with a
// known content, and looks whether all of it was written.
#include "heif_plugin.h"

#if defined(__linux__)
#include "heif_survey.h"
#include "loaded.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Declarations from <libde265/de265.h>, whose layout belongs to libde265.so.0.
typedef struct codec codec;
typedef struct picture picture;
typedef struct { int format, width, height, alignment, left, right, top, bottom, shownWidth, shownHeight; } extent;
typedef struct {
    int (*take)(codec *, extent *, picture *, void *user);
    void (*release)(codec *, picture *, void *user);
} allocation;

enum { FINE = 0, NEEDS_DATA = 13, NO_EXTENSION = 1025, NO_THREADS = 1000, FEW_THREADS = 1022, SKIPS_OFFSETS = 8 };

static struct {
    codec *(*create)(void);
    int (*start)(void), (*destroy)(codec *);
    void (*allocate)(codec *, allocation *, void *), (*setFlag)(codec *, int, int);
    int (*push)(codec *, const void *, int, int64_t, void *), (*flush)(codec *), (*decode)(codec *, int *);
    int (*warning)(codec *);
    const picture *(*next)(codec *);
    void (*setPlane)(picture *, int, void *, int, void *);
    int (*width)(const picture *, int), (*height)(const picture *, int), (*bits)(const picture *, int);
    int (*chroma)(const picture *);
    const uint8_t *(*plane)(const picture *, int, int *);
    int (*isFull)(const picture *), (*primaries)(const picture *), (*transfer)(const picture *);
    int (*matrix)(const picture *);
} library;

// Declarations from <libheif/heif_plugin.h> 1.12 to 1.21.
typedef struct image image;
typedef struct { int code, detail; const char *text; } outcome;
typedef struct { uint8_t version; int primaries, transfer, matrix; uint8_t isFull; } numbers;
typedef struct {
    int version;
    const char *(*name)(void);
    void (*start)(void), (*stop)(void);
    int (*support)(int format);
    outcome (*create)(void **);
    void (*destroy)(void *);
    outcome (*push)(void *, const void *, size_t), (*decode)(void *, image **);
    // Since versions 2, 3 and 4 of the structure.
    void (*beStrict)(void *, int);
    const char *identifier;
    outcome (*decodeLimited)(void *, image **, const void *);
    // Since version 5.
    uint32_t leastLibrary;
    int (*supportOptions)(const int *format);
    outcome (*createWith)(void **, const void *), (*pushTagged)(void *, const void *, size_t, uintptr_t);
    outcome (*flush)(void *), (*decodeTagged)(void *, image **, uintptr_t *, const void *);
} plugin;

enum { OK = 0, NO_MEMORY = 6, FAILED = 7, UNSUPPORTED = 4, HEVC = 1, YUV = 0, GREY = 2 };

static struct {
    outcome (*create)(int, int, int, int, image **), (*addPlane)(image *, int, int, int, int);
    uint8_t *(*plane)(image *, int, int *);
    void (*release)(const image *);
    numbers *(*newNumbers)(void);
    void (*freeNumbers)(numbers *);
    outcome (*setPrimaries)(numbers *, uint16_t), (*setTransfer)(numbers *, uint16_t);
    outcome (*setMatrix)(numbers *, uint16_t), (*setNumbers)(image *, const numbers *);
    outcome (*register_)(const plugin *);
    uint32_t (*version)(void);
    // NULL before version 1.13, whose threads for the parts of a grid cannot be told apart from those of others.
    void *limitThreads;
} heif;

// MARK: Memory

enum { PATTERN = 4096, MOST_SETS = 64, MOST_SEQUENCES = 16, PLANES = 3 };

typedef struct {
    uint8_t *bytes;
    // In samples.
    size_t stride, width, height;
    unsigned bits;
} plane;

typedef struct {
    codec *codec;
    plane planes[PLANES];
    tern_heif_set sets[MOST_SETS];
    bool hasSet[MOST_SETS], hasPicture, hasSlice, isDone;
    // Of the sequences' sets: the blocks of a picture, and a hash of the set.
    uint64_t blocks[MOST_SEQUENCES], hashes[MOST_SEQUENCES];
    outcome fault;
} decoder;

/// Returns samples as no picture has them, of which a plane is made that is not written yet.
static void drawPattern(uint16_t *pattern, unsigned bits) {
    uint32_t state = 2463534242;
    for (size_t i = 0; i < PATTERN; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        // libde265 looks up tables by the value of a sample.
        pattern[i] = state >> 9 & ((1u << bits) - 1);
    }
}

static size_t writePattern(const plane *plane, uint8_t *to) {
    uint16_t pattern[PATTERN];
    drawPattern(pattern, plane->bits);
    if (plane->bits > 8) {
        memcpy(to, pattern, sizeof pattern);
        return sizeof pattern;
    }
    for (size_t i = 0; i < PATTERN; i++) to[i] = (uint8_t)pattern[i];
    return PATTERN;
}

/// Returns whether samples of a plane are as they were before decoding. Blocks of 4 × 4 are decoded as a whole.
static bool isUnwritten(const plane *plane) {
    uint8_t pattern[PATTERN * 2];
    writePattern(plane, pattern);
    const size_t size = plane->bits > 8 ? 2 : 1;
    for (size_t y = 0; y + 4 <= plane->height; y += 4) {
        for (size_t x = 0; x + 4 <= plane->width; x += 4) {
            size_t row = 0;
            for (; row < 4; row++) {
                const size_t at = (y + row) * plane->stride + x;
                if (memcmp(plane->bytes + at * size, pattern + at % PATTERN * size, 4 * size) != 0) break;
            }
            if (row == 4) return true;
        }
    }
    return false;
}

static outcome fail(decoder *decoder, int code, const char *text) {
    decoder->fault = (outcome){code, 0, text};
    return decoder->fault;
}

static int takeMemory(codec *codec, extent *extent, picture *picture, void *user) {
    (void)codec;
    decoder *decoder = user;
    const int chroma = library.chroma(picture);
    // One still picture.
    if (decoder->hasPicture || extent->width < 1 || extent->height < 1) return 0;
    decoder->hasPicture = true;
    for (int i = 0; i < (chroma == 0 ? 1 : PLANES); i++) {
        plane *plane = &decoder->planes[i];
        plane->width = (size_t)(i > 0 && chroma < 3 ? (extent->width + 1) / 2 : extent->width);
        plane->height = (size_t)(i > 0 && chroma == 1 ? (extent->height + 1) / 2 : extent->height);
        plane->stride = (plane->width + 63) / 64 * 64;
        plane->bits = (unsigned)library.bits(picture, i);
        if (plane->bits < 8 || plane->bits > 16) return 0;
        const size_t size = plane->bits > 8 ? 2 : 1, count = plane->stride * plane->height * size;
        // Vectors of samples are read up to their ends.
        const size_t whole = (count + 64 + PATTERN * 2 - 1) / (PATTERN * 2) * (PATTERN * 2);
        plane->bytes = aligned_alloc(64, whole);
        if (!plane->bytes) {
            fail(decoder, NO_MEMORY, "no memory");
            return 0;
        }
        const size_t step = writePattern(plane, plane->bytes);
        for (size_t at = step; at < whole; at += step) memcpy(plane->bytes + at, plane->bytes, step);
        library.setPlane(picture, i, plane->bytes, (int)(plane->stride * size), NULL);
    }
    return 1;
}

/// The planes belong to the decoder, which lives longer than the picture.
static void releaseMemory(codec *codec, picture *picture, void *user) {
    (void)codec, (void)picture, (void)user;
}

// MARK: Decoding

static outcome destroyWith(decoder *decoder, outcome outcome) {
    if (decoder->codec) library.destroy(decoder->codec);
    for (int i = 0; i < PLANES; i++) free(decoder->planes[i].bytes);
    free(decoder);
    return outcome;
}

static outcome create(void **into) {
    static allocation allocation = {takeMemory, releaseMemory};
    decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return (outcome){NO_MEMORY, 0, "no memory"};
    decoder->fault = (outcome){OK, 0, ""};
    decoder->codec = library.create();
    if (!decoder->codec) return destroyWith(decoder, (outcome){NO_MEMORY, 0, "no memory"});
    library.allocate(decoder->codec, &allocation, decoder);
    // libde265 asks for the memory of a picture only if it does not change the picture behind the decoding.
    library.setFlag(decoder->codec, SKIPS_OFFSETS, 1);
    *into = decoder;
    return decoder->fault;
}

static outcome createWith(void **into, const void *options) {
    (void)options;
    return create(into);
}

static void destroy(void *user) { destroyWith(user, (outcome){OK, 0, ""}); }

static uint64_t hashOf(const uint8_t *bytes, size_t count) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash | 1;
}

/// Returns whether a NAL unit belongs to a still picture, and sets the fault if it makes one impossible.
static bool judge(decoder *decoder, const uint8_t *unit, size_t count) {
    enum { FIRST_INTRA = 16, LAST_INTRA = 21, VPS = 32, SPS = 33, PPS = 34 };
    if (count < 3 || (unit[0] & 1) != 0 || unit[1] >> 3 != 0) return false;
    const unsigned type = unit[0] >> 1 & 63;
    unit += 2;
    count -= 2;
    if (type >= VPS) {
        if (type > PPS || decoder->hasSlice) return false;
        tern_heif_size sequence;
        tern_heif_set set;
        if (type == SPS) {
            if (!tern_heif_sequence(unit, count, &sequence) || sequence.number >= MOST_SEQUENCES) return false;
            // libde265 compares sets of one number by members that are not set.
            const uint64_t hash = hashOf(unit, count), other = decoder->hashes[sequence.number];
            if (other != 0) {
                if (other != hash) fail(decoder, FAILED, "the HEVC stream has two sequences of one number");
                return false;
            }
            decoder->hashes[sequence.number] = hash;
            decoder->blocks[sequence.number] = sequence.blocks;
        } else if (type == PPS) {
            if (!tern_heif_picture(unit, count, &set)) return false;
            if (set.number >= MOST_SETS || set.sequence >= MOST_SEQUENCES) return false;
            decoder->sets[set.number] = set;
            decoder->hasSet[set.number] = true;
        }
        return true;
    }
    const bool isFirst = unit[0] >> 7;
    const uint32_t number = tern_heif_slice_set(unit, count);
    const tern_heif_set *set = number < MOST_SETS && decoder->hasSet[number] ? &decoder->sets[number] : NULL;
    if (type < FIRST_INTRA || type > LAST_INTRA || !set) {
        fail(decoder, FAILED, "the HEVC stream is not one of a still picture");
    } else if (isFirst == decoder->hasSlice) {
        fail(decoder, FAILED, "the HEVC stream has not one picture");
    } else if (!tern_heif_is_intra(unit, count, set, decoder->blocks[set->sequence])) {
        fail(decoder, FAILED, "the HEVC stream refers to other pictures");
    } else {
        decoder->hasSlice = true;
        return true;
    }
    return false;
}

/// Decodes the units that were pushed, and returns a picture that is whole, or NULL.
static const picture *run(decoder *decoder) {
    const picture *picture = NULL;
    int isOn = 1;
    while (isOn && !picture) {
        isOn = 0;
        const int result = library.decode(decoder->codec, &isOn);
        if (result == NEEDS_DATA) break;
        if (result != FINE) {
            if (decoder->fault.code == OK) fail(decoder, FAILED, "the HEVC stream is damaged");
            return NULL;
        }
        picture = library.next(decoder->codec);
    }
    return picture;
}

static outcome push(void *user, const void *bytes, size_t count) {
    decoder *decoder = user;
    const uint8_t *at = bytes;
    while (count > 0 && decoder->fault.code == OK) {
        const uint32_t length = count < 4 ? 0 : (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
        if (count < 4 || length > count - 4 || length > INT32_MAX)
            return fail(decoder, FAILED, "a NAL unit is of a wrong length");
        at += 4;
        count -= 4;
        if (judge(decoder, at, length)) {
            if (library.push(decoder->codec, at, (int)length, 0, NULL) != FINE)
                return fail(decoder, NO_MEMORY, "no memory");
            if (run(decoder)) return fail(decoder, FAILED, "the HEVC stream has not one picture");
        }
        at += length;
        count -= length;
    }
    return decoder->fault;
}

static outcome pushTagged(void *user, const void *bytes, size_t count, uintptr_t tag) {
    (void)tag;
    return push(user, bytes, count);
}

static outcome copyPlanes(decoder *decoder, const picture *picture, image *image) {
    for (int i = 0; i < PLANES && decoder->planes[i].bytes; i++) {
        const plane *plane = &decoder->planes[i];
        const int width = library.width(picture, i), height = library.height(picture, i), bits = (int)plane->bits;
        int from = 0, to = 0;
        const uint8_t *source = library.plane(picture, i, &from);
        const size_t row = (size_t)width * (bits > 8 ? 2 : 1);
        const size_t size = plane->stride * plane->height * (bits > 8 ? 2 : 1);
        const bool isInside = width > 0 && height > 0 && from > 0 && source >= plane->bytes
            && source < plane->bytes + size
            && (size_t)(height - 1) * (size_t)from + row <= size - (size_t)(source - plane->bytes);
        if (!isInside || bits != (int)decoder->planes[0].bits)
            return fail(decoder, UNSUPPORTED, "a HEVC stream whose planes differ");
        const outcome outcome = heif.addPlane(image, i, width, height, bits);
        if (outcome.code != OK) return outcome;
        uint8_t *target = heif.plane(image, i, &to);
        if (!target || from < 0 || to < 0 || (size_t)to < row) return fail(decoder, NO_MEMORY, "no memory");
        for (size_t y = 0; y < (size_t)height; y++) memcpy(target + y * (size_t)to, source + y * (size_t)from, row);
    }
    // Numbers that libheif does not know stay unknown.
    numbers *numbers = heif.newNumbers();
    if (!numbers) return fail(decoder, NO_MEMORY, "no memory");
    heif.setPrimaries(numbers, (uint16_t)library.primaries(picture));
    heif.setTransfer(numbers, (uint16_t)library.transfer(picture));
    heif.setMatrix(numbers, (uint16_t)library.matrix(picture));
    numbers->isFull = library.isFull(picture) != 0;
    const outcome outcome = heif.setNumbers(image, numbers);
    heif.freeNumbers(numbers);
    return outcome;
}

static outcome decode(void *user, image **into) {
    decoder *decoder = user;
    *into = NULL;
    if (decoder->fault.code != OK || decoder->isDone) return decoder->fault;
    decoder->isDone = true;
    if (!decoder->hasPicture) return fail(decoder, FAILED, "the HEVC stream has no picture");
    for (int i = 0; i < PLANES; i++)
        if (isUnwritten(&decoder->planes[i])) return fail(decoder, FAILED, "parts of the HEVC stream are missing");
    // Filters that change the decoded samples follow.
    library.setFlag(decoder->codec, SKIPS_OFFSETS, 0);
    if (library.flush(decoder->codec) != FINE) return fail(decoder, NO_MEMORY, "no memory");
    const picture *picture = run(decoder);
    if (decoder->fault.code != OK) return decoder->fault;
    if (!picture) return fail(decoder, FAILED, "the HEVC stream is damaged");
    for (int warning = library.warning(decoder->codec); warning != FINE; warning = library.warning(decoder->codec)) {
        if (warning != NO_EXTENSION && warning != NO_THREADS && warning != FEW_THREADS)
            return fail(decoder, FAILED, "the HEVC stream is damaged");
    }
    const int chroma = library.chroma(picture);
    image *image = NULL;
    outcome outcome = heif.create(
        library.width(picture, 0), library.height(picture, 0), chroma == 0 ? GREY : YUV, chroma, &image);
    if (outcome.code == OK) outcome = copyPlanes(decoder, picture, image);
    if (outcome.code != OK && image) heif.release(image);
    else *into = image;
    return outcome;
}

static outcome decodeLimited(void *user, image **into, const void *limits) {
    (void)limits;
    return decode(user, into);
}

static outcome decodeTagged(void *user, image **into, uintptr_t *tag, const void *limits) {
    (void)limits;
    if (tag) *tag = 0;
    return decode(user, into);
}

static outcome flush(void *user) {
    (void)user;
    return (outcome){OK, 0, ""};
}

// MARK: Registration

static _Thread_local bool isClaimed;

void tern_heif_claim(bool isClaimedNow) { isClaimed = isClaimedNow; }

static const char *name(void) { return "Tern, with libde265"; }

static int support(int format) {
    enum { BEFORE_OTHERS = 1000 };
    return format == HEVC && (isClaimed || !heif.limitThreads) ? BEFORE_OTHERS : 0;
}

static int supportOptions(const int *format) { return support(*format); }

static bool find(void *handle, const tern_symbol *symbols, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        if (!symbol) return false;
    }
    return true;
}

static bool load(char *obstacle) {
    static const char *const names[] = {"libde265.so.0"};
    const tern_symbol symbols[] = {
        {"de265_init", &library.start}, {"de265_new_decoder", &library.create},
        {"de265_free_decoder", &library.destroy},
        {"de265_set_image_allocation_functions", &library.allocate},
        {"de265_set_parameter_bool", &library.setFlag}, {"de265_push_NAL", &library.push},
        {"de265_flush_data", &library.flush}, {"de265_decode", &library.decode},
        {"de265_get_warning", &library.warning}, {"de265_get_next_picture", &library.next},
        {"de265_set_image_plane", &library.setPlane}, {"de265_get_image_width", &library.width},
        {"de265_get_image_height", &library.height}, {"de265_get_bits_per_pixel", &library.bits},
        {"de265_get_chroma_format", &library.chroma}, {"de265_get_image_plane", &library.plane},
        {"de265_get_image_full_range_flag", &library.isFull},
        {"de265_get_image_colour_primaries", &library.primaries},
        {"de265_get_image_transfer_characteristics", &library.transfer},
        {"de265_get_image_matrix_coefficients", &library.matrix},
    };
    const char *advice = "install libde265 1.0.7 or later: the Debian package libde265-0 (Fedora: libde265)";
    if (!tern_load(names, 1, symbols, sizeof symbols / sizeof *symbols, advice, obstacle)) return false;
    // Makes the tables once, and not for each part of a grid.
    if (library.start() == FINE) return true;
    snprintf(obstacle, 160, "libde265 does not start: no memory");
    return false;
}

void tern_heif_register(void *libheif, char *obstacle) {
    static plugin plugin = {
        .version = 1, .name = name, .support = support, .create = create, .destroy = destroy, .push = push,
        .decode = decode, .identifier = "tern", .decodeLimited = decodeLimited, .supportOptions = supportOptions,
        .createWith = createWith, .pushTagged = pushTagged, .flush = flush, .decodeTagged = decodeTagged,
    };
    const tern_symbol symbols[] = {
        {"heif_image_create", &heif.create}, {"heif_image_add_plane", &heif.addPlane},
        {"heif_image_get_plane", &heif.plane}, {"heif_image_release", &heif.release},
        {"heif_nclx_color_profile_alloc", &heif.newNumbers}, {"heif_nclx_color_profile_free", &heif.freeNumbers},
        {"heif_nclx_color_profile_set_color_primaries", &heif.setPrimaries},
        {"heif_nclx_color_profile_set_transfer_characteristics", &heif.setTransfer},
        {"heif_nclx_color_profile_set_matrix_coefficients", &heif.setMatrix},
        {"heif_image_set_nclx_color_profile", &heif.setNumbers},
        {"heif_register_decoder_plugin", &heif.register_}, {"heif_get_version_number", &heif.version},
    };
    if (!load(obstacle)) return;
    heif.limitThreads = dlsym(libheif, "heif_context_set_max_decoding_threads");
    bool isDone = find(libheif, symbols, sizeof symbols / sizeof *symbols);
    if (isDone) {
        // Version 1 of the structure is good for every libheif up to 1.21.
        plugin.version = heif.version() >> 16 >= (1u << 8 | 21) ? 5 : 1;
        isDone = heif.register_(&plugin).code == OK;
    }
    if (!isDone) snprintf(obstacle, 160, "this libheif takes no decoder of HEVC from Tern: use libheif 1.12 to 1.21");
}
#endif
