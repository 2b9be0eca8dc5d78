#include "deflate.h"
#include "CTernCodecs.h"

#if defined(__linux__)
#include "loaded.h"

#include <pthread.h>
#include <zlib.h>

// Declarations from <libdeflate.h>, whose results have not changed since 1.0 (2018).
static struct {
    void *(*open)(void);
    void (*close)(void *);
    int (*inflate)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
    uint32_t (*crc)(uint32_t, const void *, size_t);
    char obstacle[160];
} library;

static void loadOnce(void) {
    static const char *const names[] = {"libdeflate.so.0"};
    const tern_symbol symbols[] = {
        {"libdeflate_alloc_decompressor", &library.open}, {"libdeflate_free_decompressor", &library.close},
        {"libdeflate_zlib_decompress_ex", &library.inflate}, {"libdeflate_crc32", &library.crc},
    };
    tern_load(
        names, 1, symbols, sizeof symbols / sizeof *symbols,
        "install libdeflate: the Debian package libdeflate0 (Fedora: libdeflate)", library.obstacle);
}

const char *tern_deflate_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

static size_t least(size_t one, size_t other) { return one < other ? one : other; }

/// Decompresses with zlib, whose counts of bytes have 32 bits.
static bool inflatePlain(const uint8_t *stream, size_t count, uint8_t *contents, size_t size) {
    z_stream state = {0};
    if (inflateInit(&state) != Z_OK) return false;
    int result = Z_OK;
    while (result == Z_OK) {
        const uInt given = state.avail_in = (uInt)least(count, 1 << 30);
        const uInt room = state.avail_out = (uInt)least(size, 1 << 30);
        state.next_in = (Bytef *)(uintptr_t)stream;
        state.next_out = contents;
        result = inflate(&state, Z_NO_FLUSH);
        stream += given - state.avail_in;
        count -= given - state.avail_in;
        contents += room - state.avail_out;
        size -= room - state.avail_out;
    }
    inflateEnd(&state);
    return result == Z_STREAM_END && count == 0 && size == 0;
}

bool tern_inflate(const uint8_t *stream, size_t count, uint8_t *contents, size_t size) {
    // No distance is checked against the window that a stream states, which is too small in files of some encoders.
    if (tern_deflate_obstacle()) return inflatePlain(stream, count, contents, size);
    void *decompressor = library.open();
    if (!decompressor) return false;
    size_t used = 0;
    // Without a place for the number of bytes written, another number than the size is an error.
    const int result = library.inflate(decompressor, stream, count, contents, size, &used, NULL);
    library.close(decompressor);
    return result == 0 && used == count;
}

uint32_t tern_crc32(uint32_t earlier, const uint8_t *bytes, size_t count) {
    if (tern_deflate_obstacle()) return (uint32_t)crc32_z(earlier, bytes, count);
    return count > 0 ? library.crc(earlier, bytes, count) : earlier;
}
#endif
