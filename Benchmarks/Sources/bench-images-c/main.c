// The C libraries' own loops, each writing RGBA into memory of its own: what Tern's full decoding is measured by.
// Reads lines `full FORMAT PATH REPEATS` and answers with the processor time of one decoding in nanoseconds.
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

static void check(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "bench-images-c: %s\n", what);
    exit(1);
}

static uint8_t *jpeg(const uint8_t *bytes, size_t count) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, count);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_EXT_RGBA;
    jpeg_start_decompress(&info);
    size_t stride = (size_t)info.output_width * 4;
    uint8_t *pixels = malloc(stride * info.output_height);
    check(pixels, "no memory");
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[4];
        for (int i = 0; i < 4; i++) rows[i] = pixels + stride * (info.output_scanline + (JDIMENSION)i);
        jpeg_read_scanlines(&info, rows, 4);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return pixels;
}

typedef struct {
    const uint8_t *bytes;
    size_t count;
} rest;

static void readBytes(png_structp reader, png_bytep target, size_t count) {
    rest *left = png_get_io_ptr(reader);
    check(count <= left->count, "the PNG ends early");
    memcpy(target, left->bytes, count);
    left->bytes += count;
    left->count -= count;
}

static uint8_t *png(const uint8_t *bytes, size_t count) {
    rest left = {bytes, count};
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(reader);
    png_set_read_fn(reader, &left, readBytes);
    png_read_info(reader, info);
    png_set_expand(reader);
    png_set_strip_16(reader);
    png_set_gray_to_rgb(reader);
    png_set_add_alpha(reader, 0xFF, PNG_FILLER_AFTER);
    png_read_update_info(reader, info);
    size_t stride = png_get_rowbytes(reader, info);
    uint32_t height = png_get_image_height(reader, info);
    uint8_t *pixels = malloc(stride * height);
    check(pixels, "no memory");
    for (uint32_t y = 0; y < height; y++) png_read_row(reader, pixels + stride * y, NULL);
    png_read_end(reader, NULL);
    png_destroy_read_struct(&reader, &info, NULL);
    return pixels;
}

static uint8_t *webp(const uint8_t *bytes, size_t count) {
    int width = 0, height = 0;
    check(WebPGetInfo(bytes, count, &width, &height), "no WebP");
    size_t stride = (size_t)width * 4;
    uint8_t *pixels = malloc(stride * (size_t)height);
    check(pixels && WebPDecodeRGBAInto(bytes, count, pixels, stride * (size_t)height, (int)stride), "the WebP");
    return pixels;
}

static uint8_t *contents(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    check(file, path);
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*count);
    check(bytes && fread(bytes, 1, *count, file) == *count, path);
    fclose(file);
    return bytes;
}

int main(void) {
    char task[16], format[16], path[1024];
    int repeats = 0;
    while (scanf("%15s %15s %1023s %d", task, format, path, &repeats) == 4) {
        size_t count = 0;
        uint8_t *bytes = contents(path, &count);
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        for (int i = 0; i < repeats; i++)
            free(*format == 'j' ? jpeg(bytes, count) : *format == 'p' ? png(bytes, count) : webp(bytes, count));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        double spent = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
        printf("%.0f\n", spent / repeats);
        fflush(stdout);
        free(bytes);
    }
    return 0;
}
