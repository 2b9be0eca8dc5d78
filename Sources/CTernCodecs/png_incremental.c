#include "incremental.h"
#include "memory.h"
#include "png_chunks.h"

#if defined(__linux__)
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

typedef struct {
    tern_feed feed;
    png_structp reader;
    png_infop info;
    char *error;
    // The number of bytes of the current chunk that go to libpng as they arrive.
    uint64_t passing;
    tern_png_exif exif;
    // The colours of the first cICP chunk before the picture's data.
    bool hasCICP;
    tern_color_numbers cicp;
    int pass;
    uint32_t row;
    // Boolean values that indicate whether the file is an animation, whether the picture is a frame of it, and whether
    // the picture is grey.
    bool isAnimated, hasControl, isGrey;
    // Boolean values about chunks that libpng does not get: whether the current chunk is one, whether it belongs to the
    // frames behind the picture, and whether there was one that does.
    bool isSkipping, isFrame, hasFrames;
    bool hasSignature, hasHeader, isData, hasAnnounced, hasPicture, isDone, memory;
    // The first warning of libpng, which warns of damaged picture data and continues.
    char warning[80];
    // The samples before any conversion, the position of the first chunk with picture data, and that of the first chunk
    // that is not there as a whole, while bytes are gathered.
    tern_png_samples samples;
    size_t dataStart, gathered;
    // For a whole file: the destination of its rows, and the number of rows read.
    bool isStill;
    tern_png_target target;
    uint32_t rowsRead;
} png_feed;

static void failed(png_structp reader, png_const_charp text) {
    png_feed *png = png_get_error_ptr(reader);
    if (png->error) snprintf(png->error, 160, "%.150s", text);
    png->memory = strstr(text, "memory") != NULL;
    png_longjmp(reader, 1);
}

static void warned(png_structp reader, png_const_charp text) {
    png_feed *png = png_get_error_ptr(reader);
    if (png->isData && !png->warning[0]) snprintf(png->warning, sizeof png->warning, "%.70s", text);
}

/// Returns the colours that the file states by numbers, of which cICP counts before a profile, and a profile before sRGB,
/// gAMA and cHRM (W3C PNG, third edition, §12.1). gAMA counts without cHRM, and cHRM not without gAMA, as in browsers.
static bool readColor(png_feed *png, tern_color_numbers *color) {
    if (png->hasCICP) {
        *color = png->cicp;
        return true;
    }
    png_fixed_point gamma = 0, points[8];
    if (png_get_valid(png->reader, png->info, PNG_INFO_iCCP | PNG_INFO_sRGB) != 0) return false;
    // Powers beyond these are mistakes.
    if (!png_get_gAMA_fixed(png->reader, png->info, &gamma) || gamma < 10000 || gamma > 1000000) return false;
    *color = (tern_color_numbers){.primaries = 2, .transfer = 2, .power = 100000.0 / gamma};
    // The number that stands for the curve of sRGB (§11.3.2.2), within libpng's tolerance of 5%.
    if (abs(gamma - 45455) < 2273) color->power = 0;
    if (png_get_cHRM_fixed(
            png->reader, png->info, points, points + 1, points + 2, points + 3, points + 4, points + 5, points + 6,
            points + 7))
        for (int i = 0; i < 8; i++) color->points[i] = points[i] / 100000.0;
    return true;
}

static bool isLittleEndian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/// Keeps what the header and the chunks before the picture's data state about its samples.
static void readSamples(png_feed *png, int depth, int color, bool isInterlaced) {
    tern_png_samples *samples = &png->samples;
    *samples = (tern_png_samples){.width = png->feed.info.width, .height = png->feed.info.height,
                                  .depth = (uint8_t)depth, .color = (uint8_t)color, .isInterlaced = isInterlaced};
    png_colorp palette = NULL;
    png_bytep alphas = NULL;
    png_color_16p key = NULL;
    int count = 0, alphaCount = 0;
    const bool hasKey = png_get_tRNS(png->reader, png->info, &alphas, &alphaCount, &key) != 0;
    if (color != PNG_COLOR_TYPE_PALETTE) {
        samples->hasKey = hasKey && key;
        if (!samples->hasKey) return;
        const bool isGrey = color == PNG_COLOR_TYPE_GRAY;
        const uint16_t values[] = {isGrey ? key->gray : key->red, key->green, key->blue};
        memcpy(samples->key, values, sizeof values);
        return;
    }
    if (!png_get_PLTE(png->reader, png->info, &palette, &count)) return;
    samples->colorCount = count < 256 ? (unsigned)count : 256;
    for (unsigned i = 0; i < samples->colorCount; i++) {
        const uint8_t alpha = hasKey && alphas && (int)i < alphaCount ? alphas[i] : 255;
        memcpy(samples->colors[i], (uint8_t[]){palette[i].red, palette[i].green, palette[i].blue, alpha}, 4);
    }
}

static void onInfo(png_structp reader, png_infop info) {
    png_feed *png = png_get_progressive_ptr(reader);
    if (png->hasPicture) png_error(reader, "picture data in two places");
    png->hasPicture = true;
    tern_feed *feed = &png->feed;
    png_uint_32 width = 0, height = 0;
    int depth = 0, color = 0, interlace = 0;
    png_get_IHDR(reader, info, &width, &height, &depth, &color, &interlace, NULL, NULL);
    bool transparent = png_get_valid(reader, info, PNG_INFO_tRNS) != 0;
    feed->info = (tern_codec_info){.width = width, .height = height, .orientation = png->exif.orientation,
                                   .frameCount = 1, .hasAlpha = (color & PNG_COLOR_MASK_ALPHA) || transparent,
                                   .hasProfile = !png->hasCICP && png_get_valid(reader, info, PNG_INFO_iCCP) != 0,
                                   .memory = tern_png_memory(width, (unsigned)depth, png_get_channels(reader, info))};
    feed->info.hasColor = readColor(png, &feed->info.color);
    png->isGrey = !(color & PNG_COLOR_MASK_COLOR);
    // If the picture is not the animation's first frame, the decoder of animations has to show that frame.
    feed->state.isGathering = png->isAnimated && !png->hasControl && !png->isStill;
    feed->keepsBytes = feed->state.isGathering;
    feed->state.isAnimation = png->isAnimated;
    feed->state.isInterlaced = interlace != PNG_INTERLACE_NONE;
    const bool isDeep = tern_is_deep(feed->limits, (unsigned)depth, &feed->info);
    // Samples of 16 bits are those of a whole file.
    if (isDeep && !png->isStill) feed->state.isGathering = feed->keepsBytes = true;
    feed->info.isDeep = isDeep && png->isStill;
    readSamples(png, depth, color, interlace != PNG_INTERLACE_NONE);
    if (feed->info.isDeep) {
        feed->info.memory += (uint64_t)width * 8;
        png_set_expand_16(reader);
        if (isLittleEndian()) png_set_swap(reader);
    } else {
        png_set_expand(reader);
        png_set_scale_16(reader);
    }
    png_set_gray_to_rgb(reader);
    png_set_add_alpha(reader, feed->info.isDeep ? 0xFFFF : 0xFF, PNG_FILLER_AFTER);
    png_set_interlace_handling(reader);
    png_read_update_info(reader, info);
    const size_t pixel = feed->info.isDeep ? 8 : 4;
    if (png_get_rowbytes(reader, info) != width * pixel) png_error(reader, "another number of bytes a pixel");
}

/// Passes a row of a whole file to its destination.
static void place(png_feed *png, png_bytep row, png_uint_32 index) {
    tern_png_target *target = &png->target;
    uint32_t width = png->feed.state.width;
    png->rowsRead++;
    if (!target->resize) {
        if (row) png_progressive_combine_row(png->reader, target->canvas.pixels + index * target->canvas.stride, row);
        return;
    }
    uint8_t *into = tern_resize_place(target->resize);
    if (!into) png_error(png->reader, "no memory to resize");
    memcpy(into, row, (size_t)width * 4);
    if (target->premultiplies) tern_premultiply(into, (size_t)width * 4, width, 1);
    tern_resize_take(target->resize, target->canvas);
}

// libpng calls this function for every row of every pass. It widens the pixels of an early pass to blocks, so that no
// pass leaves a hole.
static void onRow(png_structp reader, png_bytep row, png_uint_32 index, int pass) {
    png_feed *png = png_get_progressive_ptr(reader);
    tern_feed *feed = &png->feed;
    if (index >= feed->state.height) png_error(reader, "a row too many");
    if (png->isStill) place(png, row, index);
    else if (!feed->canvas) png_error(reader, "a row too many");
    else if (row) png_progressive_combine_row(reader, feed->canvas + (size_t)index * feed->state.width * 4, row);
    png->pass = pass;
    png->row = index + 1;
    bool isLast = png->row == feed->state.height;
    int passes = isLast ? pass + 1 : pass;
    if (passes > feed->state.passes) feed->state.passes = passes;
    if (!feed->state.isInterlaced || pass == 6) feed->state.rows = png->row;
}

static void onEnd(png_structp reader, png_infop info) {
    (void)info;
    png_feed *png = png_get_progressive_ptr(reader);
    png->isDone = png->feed.state.hasEnd = true;
}

/// Returns the number of bytes to give to libpng at once, so that it does not run far past the end of a pass.
static size_t slice(const png_feed *png) {
    const tern_feed *feed = &png->feed;
    if (!feed->state.isInterlaced || png->pass >= 6 || png->isStill) return 16384;
    static const int shares[] = {64, 64, 32, 16, 8, 4, 2};
    uint64_t left = (uint64_t)feed->state.width * (feed->state.height - png->row % feed->state.height);
    uint64_t bytes = left / (uint64_t)shares[png->pass] / 32;
    return bytes < 16 ? 16 : bytes > 16384 ? 16384 : (size_t)bytes;
}

/// Returns whether the complete pass contained pixels and a later one will. A narrow picture has empty passes.
static bool isBoundary(const tern_feed *feed) {
    static const uint32_t lefts[] = {0, 4, 0, 2, 0, 1, 0}, tops[] = {0, 0, 4, 0, 2, 0, 1};
    int done = feed->state.passes - 1;
    if (!feed->state.isInterlaced || feed->state.width <= lefts[done] || feed->state.height <= tops[done]) return false;
    for (int pass = done + 1; pass < 7; pass++)
        if (feed->state.width > lefts[pass] && feed->state.height > tops[pass]) return true;
    return false;
}

/// Returns whether libpng has read every row of every pass.
static bool hasAllRows(const png_feed *png) {
    return png->feed.state.passes >= (png->feed.state.isInterlaced ? 7 : 1);
}

/// Returns whether a whole file has its picture data to their end.
static bool hasStream(const png_feed *png) {
    const tern_feed *feed = &png->feed;
    return tern_png_has_stream(
        feed->bytes, feed->end, (tern_png_data){8, TERN_PNG_IDAT, feed->info.width, feed->info.height});
}

/// Returns the result of a file whose end libpng has seen. libpng counts neither rows nor passes.
static tern_codec_result judge(const png_feed *png, char *error) {
    if (!hasAllRows(png)) {
        snprintf(error, 160, "the picture's data end before its last row%s%s", png->warning[0] ? ": " : "", png->warning);
        return TERN_CODEC_CORRUPT;
    }
    // The zlib stream has ended without an error, and bytes follow it.
    bool isWhole = !png->warning[0] || !strcmp(png->warning, "Extra compression data in IDAT");
    // Bytes that are no longer available cannot be checked here; the decoder of whole files checks them.
    if (isWhole || (png->isStill && hasStream(png))) return TERN_CODEC_OK;
    snprintf(error, 160, "the picture's data are damaged: %s", png->warning);
    return TERN_CODEC_CORRUPT;
}

/// Returns the result of a step that lacks bytes. If the end of a whole file is missing, its picture is whole once the
/// data are, with their checksum. An animation also needs the frames that it states.
static tern_codec_result starved(const png_feed *png, char *error) {
    const tern_feed *feed = &png->feed;
    bool isWhole = png->isStill && png->hasPicture && hasAllRows(png) && hasStream(png)
        && !(png->isAnimated && tern_apng_is_cut(feed->bytes, feed->end));
    return isWhole ? TERN_CODEC_OK : tern_feed_starved(feed, error);
}

/// Gives libpng an empty chunk in place of one that it does not get, so that picture data after it do not count as a
/// continuation of the data before it.
static void giveEmptyChunk(png_feed *png) {
    static const uint8_t empty[] = {0, 0, 0, 0, 't', 'e', 'R', 'n', 0xA9, 0x82, 0x92, 0x95};
    png_process_data(png->reader, png->info, (png_bytep)(uintptr_t)empty, sizeof empty);
}

/// Examines the chunk that begins. Returns the number of its bytes that can be taken, or 0 if the chunk must be whole
/// and is not yet.
///
/// libpng gets a chunk other than picture data only when all of it is there, so a length that a file only claims takes
/// no memory.
static uint64_t chunk(png_feed *png) {
    tern_feed *feed = &png->feed;
    size_t left = tern_feed_left(feed);
    if (left < 8) return 0;
    const uint8_t *at = feed->bytes + feed->start;
    const uint64_t length = tern_png_number(at), whole = 8 + length + 4;
    const uint32_t type = tern_png_number(at + 4);
    // The still picture of an animation does not depend on the frames behind it, whose chunks may be damaged (W3C PNG,
    // third edition, §4.9).
    png->isFrame = png->isAnimated && png->hasPicture && (type == TERN_PNG_fcTL || type == TERN_PNG_fdAT);
    png->hasFrames = png->hasFrames || png->isFrame;
    png->isSkipping = png->isFrame;
    if (png->isFrame) return whole;
    if (png->hasFrames && type == TERN_PNG_IDAT) png_error(png->reader, "picture data in two places");
    if (length > INT32_MAX) png_error(png->reader, "a chunk of an impossible length");
    if (type == TERN_PNG_IDAT) return whole;
    if (tern_png_is_critical(type) && length > TERN_PNG_CHUNK_LIMIT) png_error(png->reader, "a chunk that is too long");
    png->isSkipping = !tern_png_is_decoded(type) || length > TERN_PNG_CHUNK_LIMIT;
    bool isRead = !png->isSkipping
        || ((type == TERN_PNG_eXIf || type == TERN_PNG_cICP) && length <= TERN_PNG_CHUNK_LIMIT);
    if (isRead && left < whole) return 0;
    // libpng refuses a second header without a look at it, and the picture before it stays.
    if (type == TERN_PNG_IHDR && length == 13 && !png->hasHeader) {
        png->hasHeader = true;
        if (!tern_png_fits(at + 8, &feed->limits, png->error)) return UINT64_MAX;
    }
    if (!png->hasPicture && type == TERN_PNG_acTL) png->isAnimated = true;
    if (!png->hasPicture && type == TERN_PNG_fcTL) png->hasControl = true;
    if (isRead && type == TERN_PNG_eXIf) tern_png_read_exif(&png->exif, at);
    if (type == TERN_PNG_cICP && isRead && !png->hasPicture && !png->hasCICP)
        png->hasCICP = tern_png_read_cicp(&png->cicp, at);
    // The picture is turned at the end of decoding, but the size that is wanted of it depends on the orientation.
    if (png->hasPicture && png->exif.orientation != feed->info.orientation) feed->state.isDoubtful = true;
    if (png->isSkipping && png->hasPicture) giveEmptyChunk(png);
    return whole;
}

static tern_codec_result open(png_feed *png) {
    png->reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, failed, warned);
    png->info = png->reader ? png_create_info_struct(png->reader) : NULL;
    // Encoders state a smaller window than their distances need. libpng would take no larger one.
    if (png->reader) png_set_option(png->reader, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
    return png->info ? TERN_CODEC_OK : TERN_CODEC_MEMORY;
}

/// Returns whether the bytes that are gathered have the end chunk.
static bool reachesEnd(png_feed *png) {
    const tern_feed *feed = &png->feed;
    if (png->gathered == 0) png->gathered = png->dataStart;
    while (png->gathered < feed->end && feed->end - png->gathered >= 12) {
        const uint8_t *at = feed->bytes + png->gathered;
        const size_t length = tern_png_number(at);
        if (length > feed->end - png->gathered - 12) return false;
        if (tern_png_number(at + 4) == TERN_PNG_IEND) return true;
        png->gathered += 12 + length;
    }
    return false;
}

static tern_codec_result pngStep(tern_feed *feed, char *error) {
    png_feed *png = (png_feed *)feed;
    png->error = error;
    if (feed->isAwaited) return feed->hasEnded || reachesEnd(png) ? TERN_CODEC_OK : TERN_CODEC_STARVED;
    if (!png->reader && open(png) != TERN_CODEC_OK) return TERN_CODEC_MEMORY;
    if (setjmp(png_jmpbuf(png->reader))) return png->memory ? TERN_CODEC_MEMORY : TERN_CODEC_CORRUPT;
    if (!png->hasSignature) {
        if (tern_feed_left(feed) < 8) return starved(png, error);
        // libpng gets the highest limits on sides. The caller's limits are checked with the header before libpng reads
        // it.
        png_set_user_limits(png->reader, 0x7FFFFFFF, 0x7FFFFFFF);
        // This limits what libpng unpacks, such as a profile. It does not limit the length of a chunk: libpng reports a
        // longer one as a benign error, of which a reader only warns, and the handlers of pCAL and sCAL then allocate
        // and clear that many bytes before they read the first (png_check_chunk_length and png_read_buffer, 1.6). A
        // file of 57 bytes took 2 GiB. `chunk` therefore withholds such chunks.
        png_set_chunk_malloc_max(png->reader, TERN_PNG_CHUNK_LIMIT);
        png_set_progressive_read_fn(png->reader, png, onInfo, onRow, onEnd);
        png_process_data(png->reader, png->info, feed->bytes + feed->start, 8);
        feed->start += 8;
        png->hasSignature = true;
    }
    for (size_t given = 0; given < 65536;) {
        if (png->isDone) return judge(png, error);
        if (feed->state.isGathering && feed->hasEnded) return TERN_CODEC_OK;
        if (feed->state.isGathering) return TERN_CODEC_STARVED;
        bool isHead = png->passing == 0;
        if (isHead) {
            png->passing = chunk(png);
            if (png->passing == UINT64_MAX) return TERN_CODEC_LIMIT;
            if (png->passing == 0) return starved(png, error);
        }
        uint64_t count = tern_feed_left(feed);
        if (png->isFrame && png->isStill && tern_png_has_end(feed->bytes, feed->end)) {
            feed->start = feed->end - 12;
            png->passing = 0;
            continue;
        }
        if (count > png->passing) count = png->passing;
        if (png->isSkipping) {
            if (count == 0) return starved(png, error);
            feed->start += count;
            png->passing -= count;
            given += 12;
            continue;
        }
        // From picture data, libpng first gets only the head. It then reports the header and allocates no row yet.
        if (isHead) png->isData = tern_png_number(feed->bytes + feed->start + 4) == TERN_PNG_IDAT;
        if (isHead && png->isData && !png->hasPicture) png->dataStart = feed->start;
        size_t most = !png->isData ? SIZE_MAX : isHead ? 8 : slice(png);
        if (count > most) count = most;
        if (count == 0) return starved(png, error);
        int passes = feed->state.passes;
        const uint8_t *bytes = feed->bytes + feed->start;
        feed->start += count;
        png->passing -= count;
        given += count;
        png_process_data(png->reader, png->info, (png_bytep)bytes, count);
        if (png->hasPicture && !png->hasAnnounced) {
            png->hasAnnounced = true;
            return TERN_CODEC_HEADER;
        }
        if (feed->state.passes > passes && isBoundary(feed)) return TERN_CODEC_BOUNDARY;
        // A few bytes can unpack to many rows, so cancellation is checked in between.
        if (png->isStill && png->rowsRead > 0) return TERN_CODEC_MORE;
    }
    return TERN_CODEC_MORE;
}

static tern_codec_result pngStart(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error) {
    (void)leastWidth;
    (void)leastHeight;
    feed->state.width = feed->info.width;
    feed->state.height = feed->info.height;
    return feed->state.isGathering ? TERN_CODEC_OK : tern_feed_canvas(feed, error);
}

static void pngClose(tern_feed *feed) {
    png_feed *png = (png_feed *)feed;
    if (png->reader) png_destroy_read_struct(&png->reader, &png->info, NULL);
}

static const uint8_t *pngProfile(tern_feed *feed, size_t *count, int *channels) {
    png_feed *png = (png_feed *)feed;
    png->error = NULL;
    if (setjmp(png_jmpbuf(png->reader))) return NULL;
    png_charp name = NULL;
    png_bytep profile = NULL;
    png_uint_32 length = 0;
    int compression = 0;
    if (!png_get_iCCP(png->reader, png->info, &name, &compression, &profile, &length)) return NULL;
    *count = length;
    *channels = png->isGrey ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    return profile;
}

tern_feed *tern_png_feed(void) {
    static const tern_feed_format format = {
        .step = pngStep, .start = pngStart, .close = pngClose, .profile = pngProfile, .isDoneOnce = true,
    };
    png_feed *png = calloc(1, sizeof *png);
    if (!png) return NULL;
    png->exif.orientation = 1;
    png->feed.format = &format;
    // The bytes are kept until it is known whether the file is an animation, which needs all of them.
    png->feed.keepsBytes = true;
    return &png->feed;
}

tern_feed *tern_png_still(const uint8_t *bytes, size_t count, tern_feed_limits limits) {
    tern_feed *feed = tern_png_feed();
    if (!feed) return NULL;
    png_feed *png = (png_feed *)feed;
    png->isStill = true;
    png->exif = tern_png_find_exif(bytes, count);
    // An eXIf chunk behind the picture's data is known already.
    png->exif.isKnown = true;
    feed->limits = limits;
    // The bytes are only read. Nothing is ever appended to them.
    feed->bytes = (uint8_t *)(uintptr_t)bytes;
    feed->end = feed->capacity = count;
    feed->hasEnded = true;
    return feed;
}

tern_codec_result tern_png_still_header(tern_feed *feed, char *error) {
    tern_codec_result result = TERN_CODEC_MORE;
    while (result == TERN_CODEC_MORE) result = tern_feed_step(feed, error);
    if (result != TERN_CODEC_HEADER) return result;
    feed->state.width = feed->info.width;
    feed->state.height = feed->info.height;
    return TERN_CODEC_OK;
}

const tern_png_samples *tern_png_still_samples(const tern_feed *feed, size_t *dataStart) {
    const png_feed *png = (const png_feed *)feed;
    *dataStart = png->dataStart;
    return &png->samples;
}

tern_codec_result tern_png_still_rows(tern_feed *feed, tern_png_target target, uint32_t rows, char *error) {
    png_feed *png = (png_feed *)feed;
    uint32_t width = feed->state.width, height = feed->state.height;
    bool fits = target.resize ? tern_resize_fits(target.resize, width, height, target.canvas, error)
                              : tern_canvas_fits(target.canvas, width, height, error);
    if (!fits) return TERN_CODEC_CORRUPT;
    // Samples of 16 bits are not resized row by row.
    if (feed->info.isDeep && (target.resize || target.canvas.stride < (size_t)width * 8)) return TERN_CODEC_CORRUPT;
    png->target = target;
    png->rowsRead = 0;
    while (png->rowsRead < rows) {
        tern_codec_result result = tern_feed_step(feed, error);
        if (result <= TERN_CODEC_OK) return result;
    }
    return TERN_CODEC_MORE;
}

void tern_png_still_close(tern_feed *feed) {
    if (!feed) return;
    feed->bytes = NULL;
    tern_feed_close(feed);
}
#endif
