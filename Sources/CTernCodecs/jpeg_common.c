#include "jpeg_common.h"

#if defined(__linux__)
#include <string.h>
#include <jerror.h>

static void failed(j_common_ptr info) {
    tern_jpeg_errors *errors = (tern_jpeg_errors *)info->err;
    char text[JMSG_LENGTH_MAX];
    errors->base.format_message(info, text);
    if (errors->error) snprintf(errors->error, 160, "%.150s", text);
    longjmp(errors->jump, 1);
}

// Negative levels are warnings: libjpeg goes on with invented data. Those that cost no pixel are let pass.
static void warned(j_common_ptr info, int level) {
    tern_jpeg_errors *errors = (tern_jpeg_errors *)info->err;
    if (level >= 0) return;
    int code = errors->base.msg_code;
    if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR
        || code == JWRN_TOO_MUCH_DATA || code == JWRN_NOT_SEQUENTIAL || code == JWRN_BOGUS_ICC)
        return;
    // The end of the bytes is the cause; what it leads to is not news.
    if (errors->warning == JWRN_JPEG_EOF || (errors->warning != 0 && code != JWRN_JPEG_EOF)) return;
    errors->warning = code;
    errors->base.format_message(info, errors->warningText);
}

static void quiet(j_common_ptr info) { (void)info; }

void tern_jpeg_prepare_errors(tern_jpeg_errors *errors, char *error) {
    jpeg_std_error(&errors->base);
    errors->base.error_exit = failed;
    errors->base.emit_message = warned;
    errors->base.output_message = quiet;
    errors->error = error;
}

tern_codec_result tern_jpeg_kind(const tern_jpeg_errors *errors) {
    if (errors->warning == JWRN_JPEG_EOF) return TERN_CODEC_TRUNCATED;
    switch (errors->base.msg_code) {
    case JERR_OUT_OF_MEMORY: return TERN_CODEC_MEMORY;
    case JERR_ARITH_NOTIMPL: case JERR_SOF_UNSUPPORTED: case JERR_BAD_PRECISION: case JERR_CONVERSION_NOTIMPL:
        return TERN_CODEC_UNSUPPORTED;
    case JERR_INPUT_EMPTY: case JERR_INPUT_EOF: return TERN_CODEC_TRUNCATED;
    default: return TERN_CODEC_CORRUPT;
    }
}

tern_codec_result tern_jpeg_warned(const tern_jpeg_errors *errors, char *error) {
    if (errors->warning == 0) return TERN_CODEC_OK;
    snprintf(error, 160, "%.150s", errors->warningText);
    return errors->warning == JWRN_JPEG_EOF ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
}

tern_codec_info tern_jpeg_header(const struct jpeg_decompress_struct *info) {
    tern_codec_info header = {.width = info->image_width, .height = info->image_height, .orientation = 1,
                              .frameCount = 1,
                              .isInk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK};
    for (jpeg_saved_marker_ptr marker = info->marker_list; marker; marker = marker->next) {
        if (marker->marker == JPEG_APP0 + 1 && marker->data_length > 6 && !memcmp(marker->data, "Exif\0", 6))
            header.orientation = tern_exif_orientation(marker->data + 6, marker->data_length - 6);
        if (marker->marker == JPEG_APP0 + 2 && marker->data_length > 14 && !memcmp(marker->data, "ICC_PROFILE", 12))
            header.hasProfile = true;
    }
    return header;
}
#endif
