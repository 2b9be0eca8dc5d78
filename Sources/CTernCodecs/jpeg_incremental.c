#include "incremental.h"
#include "jpeg_common.h"
#include "jpeg_end.h"
#include "scans.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jerror.h>

typedef struct {
    tern_feed feed;
    struct jpeg_decompress_struct info;
    tern_jpeg_errors errors;
    struct jpeg_source_mgr source;
    // The number of bytes of a skipped marker that have not arrived yet, and the number of bytes that were available
    // when libjpeg last asked for more.
    size_t skip, tried;
    int scanLimit, idleScans, failure;
    bool isOpen, hasHeader, isRendering, isWhole, cmyk;
    tern_jpeg_scans scans;
    tern_jpeg_end end;
    uint8_t *line, *profile;
} jpeg_feed;

static tern_codec_result kind(const jpeg_feed *jpeg) { return tern_jpeg_kind(&jpeg->errors); }

static void sourceUnused(j_decompress_ptr info) { (void)info; }

static boolean sourceFill(j_decompress_ptr info) {
    static const JOCTET end[] = {0xFF, JPEG_EOI};
    jpeg_feed *jpeg = info->client_data;
    // Before the end, libjpeg goes back to the last place where it can restart, and waits.
    if (!jpeg->feed.hasEnded) return FALSE;
    WARNMS(info, JWRN_JPEG_EOF);
    info->src->next_input_byte = end;
    info->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void sourceSkip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    jpeg_feed *jpeg = info->client_data;
    struct jpeg_source_mgr *source = info->src;
    size_t here = (size_t)count < source->bytes_in_buffer ? (size_t)count : source->bytes_in_buffer;
    source->next_input_byte += here;
    source->bytes_in_buffer -= here;
    jpeg->skip = (size_t)count - here;
}

static void take(jpeg_feed *jpeg) {
    tern_feed *feed = &jpeg->feed;
    size_t skipped = jpeg->skip < tern_feed_left(feed) ? jpeg->skip : tern_feed_left(feed);
    jpeg->skip -= skipped;
    feed->start += skipped;
    jpeg->source.next_input_byte = feed->bytes + feed->start;
    jpeg->source.bytes_in_buffer = tern_feed_left(feed);
}

static void give(jpeg_feed *jpeg) {
    tern_feed *feed = &jpeg->feed;
    const uint8_t *next = jpeg->source.next_input_byte;
    // After the end, libjpeg reads an end-of-image marker of this decoder.
    bool isOurs = feed->bytes && next >= feed->bytes && next <= feed->bytes + feed->end;
    feed->start = isOurs ? feed->end - jpeg->source.bytes_in_buffer : feed->end;
}

static tern_codec_result consume(jpeg_feed *jpeg, char *error) {
    struct jpeg_decompress_struct *info = &jpeg->info;
    for (int turn = 0; turn < 16; turn++) {
        switch (jpeg_consume_input(info)) {
        case JPEG_SUSPENDED: return TERN_CODEC_STARVED;
        case JPEG_REACHED_EOI: return TERN_CODEC_OK;
        case JPEG_REACHED_SOS:
            if (info->input_scan_number > jpeg->scanLimit) {
                snprintf(error, 160, "more than %d scans", jpeg->scanLimit);
                return TERN_CODEC_SCANS;
            }
            if (!tern_jpeg_add_scan(&jpeg->scans, info) && ++jpeg->idleScans > TERN_IDLE_SCANS) {
                snprintf(error, 160, "%d scans of what is known already", jpeg->idleScans);
                return TERN_CODEC_SCANS;
            }
            break;
        case JPEG_SCAN_COMPLETED: {
            jpeg->feed.state.passes = info->input_scan_number;
            const uint8_t *next = jpeg->source.next_input_byte;
            bool isEnd = info->unread_marker == JPEG_EOI
                || (jpeg->source.bytes_in_buffer > 1 && next[0] == 0xFF && next[1] == JPEG_EOI);
            // The last scan is no boundary, because the final image follows it.
            if (!isEnd && !tern_jpeg_has_all(&jpeg->scans, info)) return TERN_CODEC_BOUNDARY;
            break;
        }
        default: break;
        }
    }
    return TERN_CODEC_MORE;
}

static inline uint8_t scaled(unsigned value, unsigned by) {
    unsigned product = value * by + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/// Reads the next row. Returns false if libjpeg waits for bytes.
static bool readRow(jpeg_feed *jpeg, uint8_t *row) {
    struct jpeg_decompress_struct *info = &jpeg->info;
    JSAMPROW target = jpeg->cmyk ? jpeg->line : row;
    if (jpeg_read_scanlines(info, &target, 1) != 1) return false;
    if (!jpeg->cmyk) return true;
    if (jpeg->feed.ink) {
        tern_icc_ink(jpeg->feed.ink, jpeg->line, row, info->output_width);
        return true;
    }
    // Ink is inverted: 255 means no ink. Adobe introduced this, and Pillow and browsers expect it without Adobe's
    // marker, too.
    for (uint32_t x = 0; x < info->output_width; x++, row += 4) {
        const uint8_t *ink = jpeg->line + (size_t)x * 4;
        for (int i = 0; i < 3; i++) row[i] = scaled(ink[i], ink[3]);
        row[3] = 255;
    }
    return true;
}

static tern_codec_result readRows(jpeg_feed *jpeg) {
    tern_feed *feed = &jpeg->feed;
    for (int turn = 0; turn < 64; turn++) {
        if (feed->state.rows == feed->state.height) return TERN_CODEC_OK;
        if (!readRow(jpeg, feed->canvas + (size_t)feed->state.rows * feed->state.width * 4)) return TERN_CODEC_STARVED;
        feed->state.rows++;
    }
    return TERN_CODEC_MORE;
}

static tern_codec_result jpegStep(tern_feed *feed, char *error) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    // libjpeg starts again from the beginning of a part that it could not finish. The step therefore waits for more
    // than a few bytes.
    if (!feed->hasEnded && jpeg->tried > 0 && tern_feed_left(feed) <= jpeg->tried + jpeg->tried / 16)
        return TERN_CODEC_STARVED;
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    if (!jpeg->isOpen) {
        jpeg_create_decompress(&jpeg->info);
        jpeg->isOpen = true;
        jpeg->info.src = &jpeg->source;
        jpeg_save_markers(&jpeg->info, JPEG_APP0 + 1, 0xFFFF);
        jpeg_save_markers(&jpeg->info, JPEG_APP0 + 2, 0xFFFF);
    }
    take(jpeg);
    tern_codec_result result = TERN_CODEC_STARVED;
    if (!jpeg->hasHeader) {
        if (jpeg_read_header(&jpeg->info, TRUE) == JPEG_HEADER_OK) {
            jpeg->hasHeader = true;
            jpeg->feed.info = tern_jpeg_header(&jpeg->info);
            result = TERN_CODEC_HEADER;
        }
    } else if (jpeg->info.buffered_image) {
        result = consume(jpeg, error);
        jpeg->isWhole = result == TERN_CODEC_OK;
    } else {
        result = readRows(jpeg);
    }
    give(jpeg);
    // The pictures that libjpeg makes of damaged data depend on how the bytes are split into pieces.
    feed->state.isDoubtful = jpeg->errors.hasWarned;
    jpeg->tried = result == TERN_CODEC_STARVED ? tern_feed_left(feed) : 0;
    return result;
}

static tern_codec_result jpegStart(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    struct jpeg_decompress_struct *info = &jpeg->info;
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    // The bytes so far were kept in case the caller only gathers them.
    feed->keepsBytes = false;
    jpeg->cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    info->out_color_space = jpeg->cmyk ? JCS_CMYK : JCS_EXT_RGBA;
    tern_jpeg_set_scale(info, leastWidth, leastHeight);
    feed->state.isInterlaced = info->buffered_image = jpeg_has_multiple_scans(info);
    jpeg->scanLimit = tern_scan_limit(info->image_width, info->image_height, feed->limits.scans);
    take(jpeg);
    bool started = jpeg_start_decompress(info);
    give(jpeg);
    if (!started) {
        snprintf(error, 160, "libjpeg did not start");
        return TERN_CODEC_CORRUPT;
    }
    feed->state.width = info->output_width;
    feed->state.height = info->output_height;
    if (jpeg->cmyk) {
        jpeg->line = malloc((size_t)info->output_width * 4);
        if (!jpeg->line) return TERN_CODEC_MEMORY;
    }
    tern_jpeg_prepare_scans(&jpeg->scans);
    if (!info->buffered_image) return tern_feed_canvas(feed, error);
    tern_jpeg_add_scan(&jpeg->scans, info);
    return TERN_CODEC_OK;
}

static tern_codec_result jpegRender(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    struct jpeg_decompress_struct *info = &jpeg->info;
    jpeg->errors.error = error;
    if (setjmp(jpeg->errors.jump)) return kind(jpeg);
    take(jpeg);
    int scan = info->input_scan_number;
    // When blocks are scaled to a few pixels, smoothing their borders takes more time than everything else and shows
    // nothing. The last picture is the same as that of the decoder of whole files.
    info->do_block_smoothing = info->scale_num > 4 || jpeg->isWhole;
    if (!jpeg->isRendering) jpeg_start_output(info, scan);
    jpeg->isRendering = true;
    // Smoothing of a DC scan reads two rows past the last one, and the end of an output reads the next scan's header.
    // Both could wait for bytes that arrive much later. If the input is set to be one scan ahead, libjpeg reads
    // neither.
    info->input_scan_number = scan + 1;
    bool stuck = false;
    for (uint32_t done = 0; done < rows && info->output_scanline < info->output_height && !stuck; done++)
        stuck = !readRow(jpeg, canvas.pixels + canvas.stride * info->output_scanline);
    bool isDone = info->output_scanline >= info->output_height;
    if (isDone) stuck = !jpeg_finish_output(info);
    info->input_scan_number = scan;
    give(jpeg);
    if (stuck) {
        snprintf(error, 160, "libjpeg gave no row");
        return TERN_CODEC_CORRUPT;
    }
    jpeg->isRendering = !isDone;
    return isDone ? TERN_CODEC_OK : TERN_CODEC_MORE;
}

static tern_codec_result jpegVerdict(const tern_feed *feed, char *error) {
    const jpeg_feed *jpeg = (const jpeg_feed *)feed;
    return tern_jpeg_judge(&jpeg->errors, &jpeg->scans, &jpeg->info, error);
}

static void jpegClose(tern_feed *feed) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    jpeg->errors.error = NULL;
    if (jpeg->isOpen && !setjmp(jpeg->errors.jump)) jpeg_destroy_decompress(&jpeg->info);
    free(jpeg->line);
    free(jpeg->profile);
}

static void jpegWatch(tern_feed *feed, const uint8_t *bytes, size_t count) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    tern_jpeg_end_read(&jpeg->end, bytes, count);
    feed->state.hasEnd = jpeg->end.isSeen;
}

static const uint8_t *jpegProfile(tern_feed *feed, size_t *count, int *channels) {
    jpeg_feed *jpeg = (jpeg_feed *)feed;
    unsigned length = 0;
    jpeg->errors.error = NULL;
    if (setjmp(jpeg->errors.jump)) return NULL;
    free(jpeg->profile);
    jpeg->profile = NULL;
    if (!jpeg_read_icc_profile(&jpeg->info, &jpeg->profile, &length)) return NULL;
    *count = length;
    J_COLOR_SPACE space = jpeg->info.jpeg_color_space;
    *channels = space == JCS_GRAYSCALE ? TERN_CHANNELS_GREY
        : !feed->info.isInk ? TERN_CHANNELS_RGB : TERN_CHANNELS_INK;
    return jpeg->profile;
}

tern_feed *tern_jpeg_feed(void) {
    static const tern_feed_format format = {
        .step = jpegStep, .start = jpegStart, .render = jpegRender, .verdict = jpegVerdict, .close = jpegClose,
        .profile = jpegProfile, .watch = jpegWatch, .isDoneOnce = true,
    };
    jpeg_feed *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return NULL;
    jpeg->feed.format = &format;
    jpeg->feed.keepsBytes = true;
    jpeg->info.client_data = jpeg;
    tern_jpeg_prepare_errors(&jpeg->errors, NULL);
    jpeg->info.err = &jpeg->errors.base;
    jpeg->source.init_source = sourceUnused;
    jpeg->source.fill_input_buffer = sourceFill;
    jpeg->source.skip_input_data = sourceSkip;
    jpeg->source.resync_to_restart = jpeg_resync_to_restart;
    jpeg->source.term_source = sourceUnused;
    return &jpeg->feed;
}
#endif
