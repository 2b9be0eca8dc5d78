// The declarations that the decoder of whole JPEGs and the incremental decoder share: how libjpeg's errors end a call,
// which of its warnings cost pixels, and the content of the header.
#ifndef TERN_JPEG_COMMON_H
#define TERN_JPEG_COMMON_H

#include "CTernCodecs.h"

#if defined(__linux__)
#if !__has_include(<jpeglib.h>)
#error "TernImages needs libjpeg-turbo's headers: install the Debian package libjpeg-dev (Fedora: libjpeg-turbo-devel)"
#endif
#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf jump;
    char *error;
    // Boolean values that indicate whether there was any warning, and whether libjpeg has read beyond the bytes; and
    // the first warning that costs pixels.
    bool hasWarned, isCut;
    int warning;
    char warningText[JMSG_LENGTH_MAX];
} tern_jpeg_errors;

/// Prepares the error handling. Errors jump to `errors->jump` with their text in `error`. Warnings are stored.
void tern_jpeg_prepare_errors(tern_jpeg_errors *errors, char *error);
/// Returns the result for the error that caused a jump.
tern_codec_result tern_jpeg_kind(const tern_jpeg_errors *errors);
/// The parts of a picture of several scans that the scans so far contain: each component, and the lowest bit of each
/// coefficient of a progressive one; -1 for none.
typedef struct {
    bool seen[MAX_COMPONENTS];
    int bits[MAX_COMPONENTS][DCTSIZE2];
} tern_jpeg_scans;

void tern_jpeg_prepare_scans(tern_jpeg_scans *scans);
/// Adds the scan that begins. Returns whether it contains anything that no earlier scan contained.
bool tern_jpeg_add_scan(tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info);
/// Returns whether the scans so far are the whole picture.
bool tern_jpeg_has_all(const tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info);

/// Returns the result for the warnings, once all rows are read: OK if every pixel was in the file, even if its end was
/// not; otherwise TRUNCATED or CORRUPT with a text.
tern_codec_result tern_jpeg_judge(
    const tern_jpeg_errors *errors, const tern_jpeg_scans *scans, const struct jpeg_decompress_struct *info,
    char *error);
/// Returns the information of a header that was read with the markers APP1 and APP2 saved.
tern_codec_info tern_jpeg_header(struct jpeg_decompress_struct *info);
/// Sets the scale that `tern_jpeg_scaled` finds.
void tern_jpeg_set_scale(struct jpeg_decompress_struct *info, uint32_t leastWidth, uint32_t leastHeight);
#endif

#endif
