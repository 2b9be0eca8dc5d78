#include "CTernZ.h"

#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#endif

// Brotli and zstd are loaded when a coding is first offered: Tern works without them, and needs no headers of theirs.
// The parts of their interfaces that Tern uses have not changed since brotli 1.0 and zstd 1.4.
struct brotli {
    void *(*make)(void *allocate, void *release, void *context);
    int (*decode)(void *state, size_t *avail_in, const uint8_t **next_in, size_t *avail_out, uint8_t **next_out, size_t *);
    void (*release)(void *state);
};

struct zstd_buffer {
    void *bytes;
    size_t size, position;
};

struct zstd {
    void *(*make)(void);
    size_t (*decode)(void *stream, struct zstd_buffer *output, struct zstd_buffer *input);
    size_t (*set)(void *stream, int parameter, int value);
    unsigned (*is_error)(size_t code);
    size_t (*release)(void *stream);
};

static struct brotli brotli;
static struct zstd zstd;

#if defined(__linux__)
static void find(void) {
    void *library = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&brotli.decode = dlsym(library, "BrotliDecoderDecompressStream");
        *(void **)&brotli.release = dlsym(library, "BrotliDecoderDestroyInstance");
        if (brotli.decode && brotli.release) { *(void **)&brotli.make = dlsym(library, "BrotliDecoderCreateInstance"); }
    }
    library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&zstd.decode = dlsym(library, "ZSTD_decompressStream");
        *(void **)&zstd.set = dlsym(library, "ZSTD_DCtx_setParameter");
        *(void **)&zstd.is_error = dlsym(library, "ZSTD_isError");
        *(void **)&zstd.release = dlsym(library, "ZSTD_freeDStream");
        if (zstd.decode && zstd.set && zstd.is_error && zstd.release) {
            *(void **)&zstd.make = dlsym(library, "ZSTD_createDStream");
        }
    }
}

static void look(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
}
#else
static void look(void) {}
#endif

struct tern_decoder {
    enum tern_coding coding;
    z_stream z;
    // The state of brotli or zstd.
    void *state;
    // A member or a frame has ended. More may follow.
    int has_ended;
    // Bytes after the end are not decoded. They are padding, which consists of zeros.
    int is_done;
    // Boolean values about a deflate body: its form is known; it has a first byte and its form is not known yet.
    int is_known, has_first;
    unsigned char first;
};

// A frame states the memory that its decoder needs. Over HTTP this is 8 MiB at most (RFC 9659 §3), and zstd itself
// allows 128 MiB.
static void *make_zstd(void) {
    enum { window_log_max = 100, eight_mebibytes = 23 };
    void *stream = zstd.make();
    if (!stream || !zstd.is_error(zstd.set(stream, window_log_max, eight_mebibytes))) { return stream; }
    zstd.release(stream);
    return 0;
}

int tern_decoder_knows(enum tern_coding coding) {
    if (coding == tern_coding_brotli || coding == tern_coding_zstd) { look(); }
    return coding == tern_coding_brotli ? brotli.make != 0 : coding == tern_coding_zstd ? zstd.make != 0 : 1;
}

tern_decoder *tern_decoder_make(enum tern_coding coding) {
    if (!tern_decoder_knows(coding)) { return 0; }
    tern_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) { return 0; }
    decoder->coding = coding;
    int is_made = 1;
    switch (coding) {
    case tern_coding_gzip: is_made = inflateInit2(&decoder->z, 31) == Z_OK; break;
    case tern_coding_deflate: is_made = inflateInit2(&decoder->z, 15) == Z_OK; break;
    case tern_coding_brotli: is_made = (decoder->state = brotli.make(0, 0, 0)) != 0; break;
    case tern_coding_zstd: is_made = (decoder->state = make_zstd()) != 0; break;
    }
    if (is_made) { return decoder; }
    free(decoder);
    return 0;
}

void tern_decoder_free(tern_decoder *decoder) {
    switch (decoder->coding) {
    case tern_coding_gzip:
    case tern_coding_deflate: inflateEnd(&decoder->z); break;
    case tern_coding_brotli: brotli.release(decoder->state); break;
    case tern_coding_zstd: zstd.release(decoder->state); break;
    }
    free(decoder);
}

int tern_decoder_has_ended(const tern_decoder *decoder) { return decoder->has_ended; }

static int inflate_step(tern_decoder *decoder, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    z_stream *z = &decoder->z;
    z->next_in = (unsigned char *)in;
    z->avail_in = (unsigned)*in_count;
    z->next_out = out;
    z->avail_out = (unsigned)*out_count;
    int code = inflate(z, Z_NO_FLUSH);
    *in_count -= z->avail_in;
    *out_count -= z->avail_out;
    decoder->has_ended = code == Z_STREAM_END;
    // Z_BUF_ERROR means that there was nothing to do, which is no failure.
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR;
}

// "deflate" is zlib's format (RFC 9110 §8.4.1.2). Some servers send it without zlib's two bytes at the start.
static int deflate_step(tern_decoder *decoder, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    if (decoder->is_known) { return inflate_step(decoder, in, in_count, out, out_count); }
    if (!decoder->has_first) {
        decoder->first = in[0];
        decoder->has_first = 1;
        *in_count = 1;
        *out_count = 0;
        return 1;
    }
    int is_bare = (decoder->first & 15) != 8 || (decoder->first * 256 + in[0]) % 31 != 0;
    if (is_bare && inflateReset2(&decoder->z, -15) != Z_OK) { return 0; }
    decoder->is_known = 1;
    size_t one = 1, made = *out_count, rest;
    if (!inflate_step(decoder, &decoder->first, &one, out, &made) || one != 1) { return 0; }
    rest = *out_count - made;
    int is_sound = inflate_step(decoder, in, in_count, out + made, &rest);
    *out_count = made + rest;
    return is_sound;
}

int tern_decoder_step(tern_decoder *decoder, const void *in, size_t *in_count, void *out, size_t *out_count) {
    if (*in_count == 0 && decoder->coding == tern_coding_deflate && !decoder->is_known) {
        *out_count = 0;
        return 1;
    }
    if (decoder->has_ended && *in_count == 0) {
        *out_count = 0;
        return 1;
    }
    if (decoder->has_ended) {
        const uint8_t *bytes = in;
        int goes_on = decoder->coding == tern_coding_zstd
            || (decoder->coding == tern_coding_gzip && !decoder->is_done && bytes[0] == 0x1F);
        if (!goes_on) {
            decoder->is_done = 1;
            *out_count = 0;
            // Other bytes can be a member, whose content must not be missing without an error.
            for (size_t index = 0; index < *in_count; index++) {
                if (bytes[index] != 0) { return 0; }
            }
            return 1;
        }
        if (decoder->coding == tern_coding_gzip) { inflateReset(&decoder->z); }
        decoder->has_ended = 0;
    }
    switch (decoder->coding) {
    case tern_coding_gzip: return inflate_step(decoder, in, in_count, out, out_count);
    case tern_coding_deflate: return deflate_step(decoder, in, in_count, out, out_count);
    case tern_coding_brotli: {
        size_t avail_in = *in_count, avail_out = *out_count;
        const uint8_t *next_in = in;
        uint8_t *next_out = out;
        int result = brotli.decode(decoder->state, &avail_in, &next_in, &avail_out, &next_out, 0);
        *in_count -= avail_in;
        *out_count -= avail_out;
        decoder->has_ended = result == 1;
        return result != 0;
    }
    case tern_coding_zstd: {
        struct zstd_buffer input = { (void *)in, *in_count, 0 }, output = { out, *out_count, 0 };
        size_t result = zstd.decode(decoder->state, &output, &input);
        *in_count = input.position;
        *out_count = output.position;
        if (zstd.is_error(result)) { return 0; }
        decoder->has_ended = result == 0;
        return 1;
    }
    }
    return 0;
}
