#include "incremental.h"
#include "memory.h"

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
    png_structp reader;
    png_infop info;
    const uint8_t *bytes;
    size_t count, offset;
    char *error;
    bool truncated, memory, grey, alpha;
    // Reads the rows with the incremental decoder, so that both decoders make the same picture of the same bytes.
    tern_feed *feed;
};

static void failed(png_structp reader, png_const_charp text) {
    tern_png *png = png_get_error_ptr(reader);
    if (png->error) snprintf(png->error, 160, "%.150s", text);
    png->memory = strstr(text, "memory") != NULL;
    png_longjmp(reader, 1);
}

static void warned(png_structp reader, png_const_charp text) { (void)reader; (void)text; }

static void readBytes(png_structp reader, png_bytep target, size_t count) {
    tern_png *png = png_get_io_ptr(reader);
    if (count > png->count - png->offset) {
        png->truncated = true;
        png_error(reader, "the bytes end too early");
    }
    memcpy(target, png->bytes + png->offset, count);
    png->offset += count;
}

static tern_codec_result kind(const tern_png *png) {
    return png->truncated ? TERN_CODEC_TRUNCATED : png->memory ? TERN_CODEC_MEMORY : TERN_CODEC_CORRUPT;
}

tern_png *tern_png_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    tern_png *png = calloc(1, sizeof *png);
    *result = TERN_CODEC_MEMORY;
    if (!png) return NULL;
    png->bytes = bytes;
    png->count = count;
    png->error = error;
    png->reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, failed, warned);
    png->info = png->reader ? png_create_info_struct(png->reader) : NULL;
    if (!png->info) { tern_png_close(png); return NULL; }
    if (setjmp(png_jmpbuf(png->reader))) {
        *result = kind(png);
        tern_png_close(png);
        return NULL;
    }
    png_set_read_fn(png->reader, png, readBytes);
    // libpng gets the highest limits on sides. The caller checks its own limits with the header, which it gets next.
    png_set_user_limits(png->reader, 0x7FFFFFFF, 0x7FFFFFFF);
    png_set_chunk_malloc_max(png->reader, 8 << 20);
    png_set_chunk_cache_max(png->reader, 256);
    // These chunks are not used. 240 compressed texts in a file of 1.7 MB took three seconds.
    png_set_keep_unknown_chunks(png->reader, PNG_HANDLE_CHUNK_NEVER,
                                (png_const_bytep)"tEXt\0zTXt\0iTXt\0sPLT", 4);
    png_read_info(png->reader, png->info);
    png_uint_32 width = 0, height = 0;
    int depth = 0, color = 0, interlace = 0;
    png_get_IHDR(png->reader, png->info, &width, &height, &depth, &color, &interlace, NULL, NULL);
    bool transparent = png_get_valid(png->reader, png->info, PNG_INFO_tRNS) != 0;
    *info = (tern_codec_info){.width = width, .height = height, .orientation = 1, .frameCount = 1,
                              .hasAlpha = (color & PNG_COLOR_MASK_ALPHA) || transparent,
                              .hasProfile = png_get_valid(png->reader, png->info, PNG_INFO_iCCP) != 0,
                              .memory = tern_png_memory(
                                  width, (unsigned)depth, png_get_channels(png->reader, png->info))};
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif = NULL;
    png_uint_32 exifCount = 0;
    if (png_get_eXIf_1(png->reader, png->info, &exifCount, &exif) && exif)
        info->orientation = tern_exif_orientation(exif, exifCount);
#endif
    png->alpha = info->hasAlpha;
    png->grey = !(color & PNG_COLOR_MASK_COLOR);
    *result = TERN_CODEC_OK;
    return png;
}

const uint8_t *tern_png_profile(tern_png *png, size_t *count, int *channels) {
    png->error = NULL;
    if (setjmp(png_jmpbuf(png->reader))) return NULL;
    png_charp name = NULL;
    png_bytep profile = NULL;
    png_uint_32 length = 0;
    int compression = 0;
    if (!png_get_iCCP(png->reader, png->info, &name, &compression, &profile, &length)) return NULL;
    *count = length;
    *channels = png->grey ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    return profile;
}

/// Reads up to `rows` rows into a picture's buffer or through a resizer.
static tern_codec_result readRows(tern_png *png, tern_png_target target, uint32_t rows, char *error) {
    if (!png->feed) png->feed = tern_png_still(png->bytes, png->count);
    if (!png->feed) return TERN_CODEC_MEMORY;
    return tern_png_still_rows(png->feed, target, rows, error);
}

tern_codec_result tern_png_rows(tern_png *png, tern_canvas canvas, uint32_t rows, char *error) {
    return readRows(png, (tern_png_target){.canvas = canvas}, rows, error);
}

bool tern_png_interlaced(const tern_png *png) {
    return png_get_interlace_type(png->reader, png->info) != PNG_INTERLACE_NONE;
}

tern_codec_result tern_png_resized(
    tern_png *png, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error) {
    return readRows(png, (tern_png_target){canvas, resize, png->alpha}, rows, error);
}

void tern_png_close(tern_png *png) {
    if (!png) return;
    if (png->reader) png_destroy_read_struct(&png->reader, &png->info, NULL);
    tern_png_still_close(png->feed);
    free(png);
}

typedef struct {
    uint8_t *bytes;
    size_t count, capacity;
    char *error;
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

static void flush(png_structp writer) { (void)writer; }

uint8_t *tern_png_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int level, size_t *count, char *error) {
    sink *into = calloc(1, sizeof *into);
    if (!into) return NULL;
    into->error = error;
    png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, into, writeFailed, warned);
    png_infop info = writer ? png_create_info_struct(writer) : NULL;
    if (!info || setjmp(png_jmpbuf(writer))) {
        png_destroy_write_struct(&writer, &info);
        free(into->bytes);
        free(into);
        return NULL;
    }
    png_set_write_fn(writer, into, writeBytes, flush);
    png_set_compression_level(writer, level);
    png_set_IHDR(writer, info, width, height, 8, PNG_COLOR_TYPE_RGB_ALPHA, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer, info);
    for (uint32_t row = 0; row < height; row++) png_write_row(writer, pixels + stride * row);
    png_write_end(writer, info);
    png_destroy_write_struct(&writer, &info);
    uint8_t *bytes = into->bytes;
    *count = into->count;
    free(into);
    return bytes;
}
#endif
