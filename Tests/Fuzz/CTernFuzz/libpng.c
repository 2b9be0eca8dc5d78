#include "CTernFuzz.h"

#if defined(__linux__)
#include <setjmp.h>
#include <string.h>
#include <png.h>

typedef struct {
    const uint8_t *bytes;
    size_t count;
} rest;

static void readBytes(png_structp reader, png_bytep target, size_t wanted) {
    rest *left = png_get_io_ptr(reader);
    if (wanted > left->count) png_error(reader, "the end");
    memcpy(target, left->bytes, wanted);
    left->bytes += wanted;
    left->count -= wanted;
}

static void failed(png_structp reader, png_const_charp text) {
    (void)text;
    png_longjmp(reader, 1);
}

static void warned(png_structp reader, png_const_charp text) {
    (void)reader;
    (void)text;
}

size_t tern_fuzz_libpng_rows(const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, uint8_t *pixels) {
    rest left = {bytes, count};
    volatile size_t rows = 0;
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, failed, warned);
    png_infop info = reader ? png_create_info_struct(reader) : NULL;
    if (info && !setjmp(png_jmpbuf(reader))) {
        png_set_read_fn(reader, &left, readBytes);
        png_read_info(reader, info);
        png_set_expand(reader);
        png_set_scale_16(reader);
        png_set_gray_to_rgb(reader);
        png_set_add_alpha(reader, 0xFF, PNG_FILLER_AFTER);
        png_read_update_info(reader, info);
        const bool fits = png_get_image_width(reader, info) == width && png_get_image_height(reader, info) == height
            && png_get_rowbytes(reader, info) == (size_t)width * 4;
        for (; fits && rows < height; rows = rows + 1) png_read_row(reader, pixels + rows * width * 4, NULL);
    }
    png_destroy_read_struct(&reader, &info, NULL);
    for (uint8_t *pixel = pixels; pixel < pixels + rows * width * 4; pixel += 4) {
        for (int i = 0; i < 3; i++) {
            const unsigned product = pixel[i] * pixel[3] + 128u;
            pixel[i] = (uint8_t)((product + (product >> 8)) >> 8);
        }
    }
    return rows;
}
#endif
