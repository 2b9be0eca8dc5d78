#include "CTernFuzz.h"

#if defined(__linux__)
#include <string.h>
#include <gif_lib.h>

typedef struct {
    const uint8_t *bytes;
    size_t count;
} rest;

static int readBytes(GifFileType *file, GifByteType *target, int wanted) {
    rest *left = file->UserData;
    size_t given = (size_t)wanted < left->count ? (size_t)wanted : left->count;
    memcpy(target, left->bytes, given);
    left->bytes += given;
    left->count -= given;
    return (int)given;
}

size_t tern_fuzz_giflib_rows(const uint8_t *bytes, size_t count, uint8_t *indices) {
    rest left = {bytes, count};
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    size_t rows = 0;
    GifFileType *file = DGifOpen(&left, readBytes, NULL);
    if (!file) return 0;
    if (DGifGetRecordType(file, &record) == GIF_OK && record == IMAGE_DESC_RECORD_TYPE
        && DGifGetImageDesc(file) == GIF_OK) {
        const size_t width = (size_t)file->Image.Width, height = (size_t)file->Image.Height;
        while (rows < height && DGifGetLine(file, indices + rows * width, (int)width) == GIF_OK) rows++;
    }
    DGifCloseFile(file, NULL);
    return rows;
}
#endif
