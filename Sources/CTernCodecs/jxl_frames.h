// The frames of a JPEG XL codestream (ISO/IEC 18181-1), found without libjxl. libjxl reports only the frames to be
// shown, and takes memory for all others, too. Its versions before 0.11 end the process when memory is refused.
#ifndef TERN_JXL_FRAMES_H
#define TERN_JXL_FRAMES_H

#include "CTernCodecs.h"

/// The parts of the image header that the frames depend on, and the limits.
typedef struct {
    uint32_t width, height;
    /// The size of a preview, which is the first frame of the stream; 0 if there is none.
    uint32_t previewWidth, previewHeight;
    /// The number of channels besides grey or colours.
    uint32_t extraChannels;
    bool isXYB, isAnimation, hasTimecodes;
    tern_feed_limits limits;
} tern_jxl_head;

typedef struct {
    /// The number of frames to be shown, which begin within the bytes.
    uint32_t shown;
    /// A Boolean value that indicates whether the bytes end before the last of them does.
    bool isCut;
    /// The pixels of all frames, and the memory in bytes that libjxl takes besides the canvas.
    uint64_t pixels, memory;
} tern_jxl_frames;

/// Walks over the frames, which begin at `start`. Returns TRUNCATED if the header of the first one is incomplete, and
/// LIMIT, SCANS, UNSUPPORTED and CORRUPT with a text.
tern_codec_result tern_jxl_walk(
    const uint8_t *bytes, size_t count, size_t start, const tern_jxl_head *head, tern_jxl_frames *frames, char *error);

#endif
