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
    // A Boolean value that indicates whether there was any warning, and the warning that decides the result.
    bool hasWarned;
    int warning;
    char warningText[JMSG_LENGTH_MAX];
} tern_jpeg_errors;

/// Prepares the error handling. Errors jump to `errors->jump` with their text in `error`. Warnings are stored.
void tern_jpeg_prepare_errors(tern_jpeg_errors *errors, char *error);
/// Returns the result for the error that caused a jump.
tern_codec_result tern_jpeg_kind(const tern_jpeg_errors *errors);
/// Returns the result for the warnings: OK, or TRUNCATED or CORRUPT with the text of the warning that decides.
tern_codec_result tern_jpeg_warned(const tern_jpeg_errors *errors, char *error);
/// Returns the information of a header that was read with the markers APP1 and APP2 saved.
tern_codec_info tern_jpeg_header(struct jpeg_decompress_struct *info);
/// Sets the scale that `tern_jpeg_scaled` finds.
void tern_jpeg_set_scale(struct jpeg_decompress_struct *info, uint32_t leastWidth, uint32_t leastHeight);
#endif

#endif
