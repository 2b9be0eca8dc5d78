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

// Negative levels are warnings, after which libjpeg continues with invented data. Warnings that cost no pixel are
// ignored.
static void warned(j_common_ptr info, int level) {
    tern_jpeg_errors *errors = (tern_jpeg_errors *)info->err;
    if (level >= 0) return;
    errors->hasWarned = true;
    int code = errors->base.msg_code;
    if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR
        || code == JWRN_TOO_MUCH_DATA || code == JWRN_NOT_SEQUENTIAL || code == JWRN_BOGUS_ICC)
        return;
    // libjpeg reads ahead, so the end of the bytes alone costs no pixel: the warning that bits are missing follows it.
    if (code == JWRN_JPEG_EOF) errors->isCut = true;
    if (code == JWRN_JPEG_EOF || errors->warning != 0) return;
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
    if (errors->isCut) return TERN_CODEC_TRUNCATED;
    switch (errors->base.msg_code) {
    case JERR_OUT_OF_MEMORY: return TERN_CODEC_MEMORY;
    case JERR_ARITH_NOTIMPL: case JERR_SOF_UNSUPPORTED: case JERR_BAD_PRECISION: case JERR_CONVERSION_NOTIMPL:
        return TERN_CODEC_UNSUPPORTED;
    case JERR_INPUT_EMPTY: case JERR_INPUT_EOF: return TERN_CODEC_TRUNCATED;
    default: return TERN_CODEC_CORRUPT;
    }
}

void tern_jpeg_prepare_scans(tern_jpeg_scans *scans) {
    *scans = (tern_jpeg_scans){0};
    memset(scans->bits, 0xFF, sizeof scans->bits);
}

bool tern_jpeg_add_scan(tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info) {
    bool news = false;
    for (int i = 0; i < info->comps_in_scan; i++) {
        int component = info->cur_comp_info[i]->component_index;
        if (info->coef_bits) {
            for (int k = 0; k < DCTSIZE2; k++) {
                int bit = info->coef_bits[component][k], *known = &scans->bits[component][k];
                if (bit < 0 || (*known >= 0 && bit >= *known)) continue;
                news = true;
                *known = bit;
            }
        } else {
            news |= !scans->seen[component];
        }
        scans->seen[component] = true;
    }
    return news;
}

bool tern_jpeg_has_all(const tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info) {
    for (int component = 0; component < info->num_components; component++) {
        if (!scans->seen[component]) return false;
        for (int i = 0; info->coef_bits && i < DCTSIZE2; i++)
            if (scans->bits[component][i] != 0) return false;
    }
    return true;
}

tern_codec_result tern_jpeg_judge(
    const tern_jpeg_errors *errors, const tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info,
    char *error) {
    if (errors->isCut) {
        // An arithmetic decoder takes missing bytes as zeros, without a warning (ITU-T T.81, D.2.6).
        bool hasScans = !info->buffered_image || tern_jpeg_has_all(scans, info);
        if (errors->warning == 0 && !info->arith_code && hasScans) return TERN_CODEC_OK;
        snprintf(error, 160, "the bytes end before the picture does");
        return TERN_CODEC_TRUNCATED;
    }
    if (errors->warning == 0) return TERN_CODEC_OK;
    snprintf(error, 160, "%.150s", errors->warningText);
    return TERN_CODEC_CORRUPT;
}

/// Returns a scale that is a power of one half: libjpeg-turbo has vector code for these only, and the other scales blur
/// (42 dB instead of 53 dB).
static unsigned scale(uint32_t width, uint32_t height, uint32_t leastWidth, uint32_t leastHeight) {
    unsigned scale = 1;
    while (scale < 8
           && (((uint64_t)width * scale + 7) / 8 < leastWidth || ((uint64_t)height * scale + 7) / 8 < leastHeight))
        scale *= 2;
    return scale;
}

tern_extent tern_jpeg_scaled(uint32_t width, uint32_t height, uint32_t leastWidth, uint32_t leastHeight) {
    uint64_t by = scale(width, height, leastWidth, leastHeight);
    return (tern_extent){(uint32_t)((width * by + 7) / 8), (uint32_t)((height * by + 7) / 8), width * by, height * by};
}

void tern_jpeg_set_scale(struct jpeg_decompress_struct *info, uint32_t leastWidth, uint32_t leastHeight) {
    info->scale_denom = 8;
    info->scale_num = scale(info->image_width, info->image_height, leastWidth, leastHeight);
    jpeg_calc_output_dimensions(info);
}

/// Returns the memory of a decode. Several scans are read before the first row is made, so all coefficients are kept,
/// at two bytes each.
static uint64_t memory(struct jpeg_decompress_struct *info) {
    uint64_t bytes = (uint64_t)info->image_width * (uint64_t)info->num_components * 40 + (1 << 20);
    if (!jpeg_has_multiple_scans(info)) return bytes;
    for (int i = 0; i < info->num_components; i++) {
        const jpeg_component_info *each = &info->comp_info[i];
        const uint64_t across = (uint64_t)each->h_samp_factor, down = (uint64_t)each->v_samp_factor;
        const uint64_t columns = (each->width_in_blocks + across - 1) / across * across;
        const uint64_t rows = (each->height_in_blocks + down - 1) / down * down;
        bytes += columns * rows * sizeof(JBLOCK);
    }
    return bytes;
}

tern_codec_info tern_jpeg_header(struct jpeg_decompress_struct *info) {
    tern_codec_info header = {.width = info->image_width, .height = info->image_height, .orientation = 1,
                              .frameCount = 1, .memory = memory(info), .hasScans = jpeg_has_multiple_scans(info),
                              .isInk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK};
    bool hasExif = false;
    for (jpeg_saved_marker_ptr marker = info->marker_list; marker; marker = marker->next) {
        // The first Exif segment counts, as in other decoders. A second one is often that of a program that has copied
        // the file's own.
        if (!hasExif && marker->marker == JPEG_APP0 + 1 && marker->data_length > 6
            && !memcmp(marker->data, "Exif\0", 6)) {
            hasExif = true;
            header.orientation = tern_exif_orientation(marker->data + 6, marker->data_length - 6);
        }
        if (marker->marker == JPEG_APP0 + 2 && marker->data_length > 14 && !memcmp(marker->data, "ICC_PROFILE", 12))
            header.hasProfile = true;
    }
    return header;
}
#endif
