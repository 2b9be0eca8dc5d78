#include "incremental.h"
#include "png_reader.h"

#if defined(__linux__)
#if !__has_include(<png.h>)
#error "TernImages needs libpng's headers: install the Debian package libpng-dev (Fedora: libpng-devel)"
#endif
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

struct tern_png {
    // Reads the header and the rows. The decoder of whole files and the incremental decoder have one reader, so that
    // both make the same picture of the same bytes.
    tern_feed *feed;
    // The rows of a sound file, once its data are decompressed; NULL if the feed reads them.
    tern_png_reader *rows;
    uint32_t rowsLeft;
    bool isStarted;
};

tern_png *tern_png_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error) {
    tern_png *png = calloc(1, sizeof *png);
    *result = TERN_CODEC_MEMORY;
    if (!png) return NULL;
    png->feed = tern_png_still(bytes, count, limits);
    if (png->feed) *result = tern_png_still_header(png->feed, error);
    if (*result != TERN_CODEC_OK) { tern_png_close(png); return NULL; }
    *info = *tern_feed_info(png->feed);
    return png;
}

const uint8_t *tern_png_profile(tern_png *png, size_t *count, int *channels) {
    return tern_feed_profile(png->feed, count, channels);
}

uint64_t tern_png_inflate_memory(const tern_png *png, size_t room) {
    size_t from = 0;
    const tern_png_samples *samples = tern_png_still_samples(png->feed, &from);
    return tern_png_reader_memory(png->feed->bytes, png->feed->end, from, samples, room);
}

bool tern_png_inflate(tern_png *png, uint8_t *place, size_t room) {
    if (png->isStarted) return false;
    size_t from = 0;
    const tern_png_samples *samples = tern_png_still_samples(png->feed, &from);
    png->rows = tern_png_reader_open(png->feed->bytes, png->feed->end, from, samples, place, place ? room : 0);
    png->rowsLeft = samples->height;
    if (!png->rows && place) memset(place, 0, room);
    return png->rows;
}

/// Reads rows, of decompressed data or with libpng.
static tern_codec_result readRows(tern_png *png, tern_png_target target, uint32_t rows, char *error) {
    png->isStarted = true;
    if (!png->rows) return tern_png_still_rows(png->feed, target, rows, error);
    const uint32_t width = png->feed->info.width, height = png->feed->info.height;
    const bool fits = target.resize ? tern_resize_fits(target.resize, width, height, target.canvas, error)
                                    : tern_canvas_fits(target.canvas, width, height, error);
    if (!fits) return TERN_CODEC_CORRUPT;
    for (; rows > 0 && png->rowsLeft > 0; rows--, png->rowsLeft--) {
        uint8_t *row = target.resize ? tern_resize_place(target.resize)
                                     : target.canvas.pixels + target.canvas.stride * (height - png->rowsLeft);
        if (!row) {
            snprintf(error, 160, "no memory to resize");
            return TERN_CODEC_MEMORY;
        }
        tern_png_reader_next(png->rows, row);
        if (!target.resize) continue;
        if (target.premultiplies) tern_premultiply(row, (size_t)width * 4, width, 1);
        tern_resize_take(target.resize, target.canvas);
    }
    return png->rowsLeft > 0 ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_png_rows(tern_png *png, tern_canvas canvas, uint32_t rows, char *error) {
    return readRows(png, (tern_png_target){.canvas = canvas}, rows, error);
}

bool tern_png_interlaced(const tern_png *png) { return tern_feed_progress(png->feed).isInterlaced; }

tern_codec_result tern_png_resized(
    tern_png *png, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error) {
    bool hasAlpha = tern_feed_info(png->feed)->hasAlpha;
    return readRows(png, (tern_png_target){canvas, resize, hasAlpha}, rows, error);
}

void tern_png_close(tern_png *png) {
    if (!png) return;
    tern_png_reader_close(png->rows);
    tern_png_still_close(png->feed);
    free(png);
}

typedef struct {
    uint8_t *bytes;
    size_t count, capacity;
    char *error;
    // A row with fewer than four channels.
    uint8_t *row;
} sink;

static void writeFailed(png_structp writer, png_const_charp text) {
    sink *into = png_get_error_ptr(writer);
    snprintf(into->error, 160, "%.150s", text);
    png_longjmp(writer, 1);
}

static void writeBytes(png_structp writer, png_bytep bytes, size_t count) {
    sink *into = png_get_io_ptr(writer);
    if (count > into->capacity - into->count) {
        size_t capacity = (into->count + count) * 2 + 4096;
        uint8_t *grown = realloc(into->bytes, capacity);
        if (!grown) png_error(writer, "out of memory");
        into->bytes = grown;
        into->capacity = capacity;
    }
    memcpy(into->bytes + into->count, bytes, count);
    into->count += count;
}

static void warned(png_structp writer, png_const_charp text) { (void)writer; (void)text; }

static void flush(png_structp writer) { (void)writer; }

int tern_png_channels(const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int bits) {
    unsigned alpha = 255, color = 0;
    const size_t step = bits == 16 ? 8 : 4;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *pixel = pixels + stride * y;
        for (uint32_t x = 0; x < width; x++, pixel += step) {
            if (bits == 16) {
                uint16_t words[4];
                memcpy(words, pixel, sizeof words);
                alpha &= words[3] == UINT16_MAX ? 255 : 0;
                color |= (unsigned)(words[0] ^ words[1]) | (unsigned)(words[1] ^ words[2]);
            } else {
                alpha &= pixel[3];
                color |= (unsigned)(pixel[0] ^ pixel[1]) | (unsigned)(pixel[1] ^ pixel[2]);
            }
        }
        if (alpha != 255 && color) return 4;
    }
    return (color ? 3 : 1) + (alpha != 255);
}

/// Writes the channels of a row of RGBA: grey, grey and alpha, or the colours. Samples of 16 bits become big-endian.
static void pack(const uint8_t *source, uint8_t *target, uint32_t width, int channels, int bits) {
    if (bits == 16) {
        for (uint32_t x = 0; x < width; x++, source += 8) {
            uint16_t words[4];
            memcpy(words, source, sizeof words);
            if (channels == 2) words[1] = words[3];
            for (int c = 0; c < channels; c++, target += 2) {
                target[0] = (uint8_t)(words[c] >> 8);
                target[1] = (uint8_t)words[c];
            }
        }
        return;
    }
    for (uint32_t x = 0; x < width; x++, source += 4, target += channels) {
        target[0] = source[0];
        if (channels == 2) target[1] = source[3];
        if (channels == 3) { target[1] = source[1]; target[2] = source[2]; }
    }
}

uint8_t *tern_png_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int bits, int channels, int level,
    tern_stated_colors colors, size_t *count, char *error) {
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    sink *into = calloc(1, sizeof *into);
    if (!into) return NULL;
    into->error = error;
    const bool packs = channels < 4 || bits == 16;
    if (packs && !(into->row = malloc((size_t)width * (size_t)channels * (size_t)bits / 8))) {
        free(into);
        return NULL;
    }
    png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, into, writeFailed, warned);
    png_infop info = writer ? png_create_info_struct(writer) : NULL;
    if (!info || setjmp(png_jmpbuf(writer))) {
        png_destroy_write_struct(&writer, &info);
        free(into->row);
        free(into->bytes);
        free(into);
        return NULL;
    }
    png_set_write_fn(writer, into, writeBytes, flush);
    png_set_compression_level(writer, level);
    png_set_IHDR(writer, info, width, height, bits, types[channels - 1], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (colors.profile) {
        png_set_iCCP(writer, info, "ICC profile", 0, colors.profile, (png_uint_32)colors.profileCount);
        // libpng leaves out a profile that it finds faulty, and only warns.
        if (!png_get_valid(writer, info, PNG_INFO_iCCP)) png_error(writer, "libpng refuses the color profile");
    }
    png_write_info(writer, info);
    if (colors.primaries) {
        const uint8_t numbers[4] = {colors.primaries, colors.transfer, 0, 1};
        png_write_chunk(writer, (png_const_bytep)"cICP", numbers, sizeof numbers);
    }
    for (uint32_t row = 0; row < height; row++) {
        if (into->row) pack(pixels + stride * row, into->row, width, channels, bits);
        png_write_row(writer, into->row ? into->row : pixels + stride * row);
    }
    png_write_end(writer, info);
    png_destroy_write_struct(&writer, &info);
    free(into->row);
    uint8_t *bytes = into->bytes;
    *count = into->count;
    free(into);
    return bytes;
}
#endif
