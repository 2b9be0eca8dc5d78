#include "jpeg_common.h"
#include "scans.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jerror.h>

struct tern_jpeg {
    struct jpeg_decompress_struct info;
    tern_jpeg_errors errors;
    tern_jpeg_scans scans;
    const uint8_t *bytes;
    size_t count;
    int scanLimit;
    bool cmyk, outputStarted;
    uint8_t *line, *profile;
    const tern_icc *color;
};

static tern_codec_result kind(const tern_jpeg *jpeg) { return tern_jpeg_kind(&jpeg->errors); }

tern_jpeg *tern_jpeg_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    tern_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) { *result = TERN_CODEC_MEMORY; return NULL; }
    tern_jpeg_prepare_errors(&jpeg->errors, error);
    jpeg->info.err = &jpeg->errors.base;
    if (setjmp(jpeg->errors.jump)) {
        *result = kind(jpeg);
        tern_jpeg_close(jpeg);
        return NULL;
    }
    jpeg_create_decompress(&jpeg->info);
    jpeg_mem_src(&jpeg->info, bytes, count);
    jpeg->bytes = bytes;
    jpeg->count = count;
    jpeg_save_markers(&jpeg->info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_save_markers(&jpeg->info, JPEG_APP0 + 2, 0xFFFF);
    jpeg_read_header(&jpeg->info, TRUE);
    *info = tern_jpeg_header(&jpeg->info);
    *result = TERN_CODEC_OK;
    return jpeg;
}

tern_codec_result tern_jpeg_start(
    tern_jpeg *jpeg, uint32_t leastWidth, uint32_t leastHeight, int scanLimit, char *error) {
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    struct jpeg_decompress_struct *info = &jpeg->info;
    jpeg->cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    info->out_color_space = jpeg->cmyk ? JCS_CMYK : JCS_EXT_RGBA;
    tern_jpeg_set_scale(info, leastWidth, leastHeight);
    jpeg->scanLimit = tern_scan_limit(info->image_width, info->image_height, scanLimit);
    // Buffered-image mode reads the scans call by call, so that they can be counted and cancelled.
    info->buffered_image = jpeg_has_multiple_scans(info);
    if (info->buffered_image) {
        // Checks the scans before memory for the coefficients is allocated.
        tern_codec_result survey = tern_scan_survey(jpeg->bytes, jpeg->count, jpeg->scanLimit, error);
        if (survey != TERN_CODEC_OK) return survey;
    }
    jpeg_start_decompress(info);
    tern_jpeg_prepare_scans(&jpeg->scans);
    if (info->buffered_image) tern_jpeg_add_scan(&jpeg->scans, info);
    if (jpeg->cmyk) {
        jpeg->line = malloc((size_t)info->output_width * 4);
        if (!jpeg->line) return TERN_CODEC_MEMORY;
    }
    return TERN_CODEC_OK;
}

tern_codec_result tern_jpeg_prepare(tern_jpeg *jpeg, char *error) {
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    struct jpeg_decompress_struct *info = &jpeg->info;
    if (!info->buffered_image || jpeg->outputStarted) return TERN_CODEC_OK;
    for (int turn = 0; turn < 16; turn++) {
        int status = jpeg_consume_input(info);
        if (info->input_scan_number > jpeg->scanLimit) {
            snprintf(error, 160, "more than %d scans", jpeg->scanLimit);
            return TERN_CODEC_SCANS;
        }
        if (status == JPEG_REACHED_SOS) tern_jpeg_add_scan(&jpeg->scans, info);
        if (status == JPEG_REACHED_EOI) {
            jpeg_start_output(info, info->input_scan_number);
            jpeg->outputStarted = true;
            return TERN_CODEC_OK;
        }
    }
    return TERN_CODEC_MORE;
}

const uint8_t *tern_jpeg_profile(tern_jpeg *jpeg, size_t *count, int *channels) {
    // The buffer of the last call is gone.
    jpeg->errors.error = NULL;
    if (setjmp(jpeg->errors.jump)) return NULL;
    unsigned length = 0;
    free(jpeg->profile);
    jpeg->profile = NULL;
    if (!jpeg_read_icc_profile(&jpeg->info, &jpeg->profile, &length)) return NULL;
    *count = length;
    J_COLOR_SPACE space = jpeg->info.jpeg_color_space;
    *channels = space == JCS_GRAYSCALE ? TERN_CHANNELS_GREY
        : space != JCS_CMYK && space != JCS_YCCK ? TERN_CHANNELS_RGB : TERN_CHANNELS_INK;
    return jpeg->profile;
}

void tern_jpeg_ink(tern_jpeg *jpeg, const tern_icc *color) { jpeg->color = color; }

static inline uint8_t scaled(unsigned value, unsigned by) {
    unsigned product = value * by + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/// Reads the next row as RGBA. Can jump.
static bool readRow(tern_jpeg *jpeg, uint8_t *row, char *error) {
    struct jpeg_decompress_struct *info = &jpeg->info;
    JSAMPROW target = jpeg->cmyk ? jpeg->line : row;
    if (jpeg_read_scanlines(info, &target, 1) != 1) {
        snprintf(error, 160, "libjpeg gave no row");
        return false;
    }
    if (jpeg->cmyk && jpeg->color) tern_icc_ink(jpeg->color, jpeg->line, row, info->output_width);
    if (!jpeg->cmyk || jpeg->color) return true;
    // Ink is inverted: 255 means no ink. Adobe introduced this, and Pillow and browsers expect it without Adobe's
    // marker, too.
    for (uint32_t x = 0; x < info->output_width; x++) {
        const uint8_t *ink = jpeg->line + (size_t)x * 4;
        for (int c = 0; c < 3; c++) row[x * 4 + c] = scaled(ink[c], ink[3]);
        row[x * 4 + 3] = 255;
    }
    return true;
}

tern_codec_result tern_jpeg_rows(tern_jpeg *jpeg, tern_canvas canvas, uint32_t rows, char *error) {
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    struct jpeg_decompress_struct *info = &jpeg->info;
    if (!tern_canvas_fits(canvas, info->output_width, info->output_height, error)) return TERN_CODEC_CORRUPT;
    for (uint32_t done = 0; done < rows && info->output_scanline < info->output_height; done++)
        if (!readRow(jpeg, canvas.pixels + canvas.stride * info->output_scanline, error)) return TERN_CODEC_CORRUPT;
    return info->output_scanline < info->output_height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_jpeg_resized(
    tern_jpeg *jpeg, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error) {
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    struct jpeg_decompress_struct *info = &jpeg->info;
    if (!tern_resize_fits(resize, info->output_width, info->output_height, canvas, error)) return TERN_CODEC_CORRUPT;
    for (uint32_t done = 0; done < rows && info->output_scanline < info->output_height; done++) {
        uint8_t *row = tern_resize_place(resize);
        if (!row) return TERN_CODEC_MEMORY;
        if (!readRow(jpeg, row, error)) return TERN_CODEC_CORRUPT;
        tern_resize_take(resize, canvas);
    }
    return info->output_scanline < info->output_height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_jpeg_verdict(const tern_jpeg *jpeg, char *error) {
    return tern_jpeg_judge(&jpeg->errors, &jpeg->scans, &jpeg->info, error);
}

void tern_jpeg_close(tern_jpeg *jpeg) {
    if (!jpeg) return;
    if (!setjmp(jpeg->errors.jump)) jpeg_destroy_decompress(&jpeg->info);
    free(jpeg->line);
    free(jpeg->profile);
    free(jpeg);
}

uint8_t *tern_jpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int quality, bool progressive,
    tern_stated_colors colors, size_t *count, char *error) {
    struct jpeg_compress_struct info;
    tern_jpeg_errors errors;
    // Values that change after setjmp and are read after the jump are behind a pointer that does not change.
    struct { unsigned char *bytes; unsigned long size; } *output = calloc(1, sizeof *output);
    if (!output) return NULL;
    memset(&info, 0, sizeof info);
    memset(&errors, 0, sizeof errors);
    tern_jpeg_prepare_errors(&errors, error);
    info.err = &errors.base;
    if (setjmp(errors.jump)) {
        jpeg_destroy_compress(&info);
        free(output->bytes);
        free(output);
        return NULL;
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &output->bytes, &output->size);
    info.image_width = width;
    info.image_height = height;
    info.input_components = 4;
    info.in_color_space = JCS_EXT_RGBX;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.optimize_coding = TRUE;
    if (progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    if (colors.profile) jpeg_write_icc_profile(&info, colors.profile, (unsigned)colors.profileCount);
    while (info.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(pixels + stride * info.next_scanline);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    uint8_t *bytes = output->bytes;
    *count = output->size;
    free(output);
    return bytes;
}
#endif
