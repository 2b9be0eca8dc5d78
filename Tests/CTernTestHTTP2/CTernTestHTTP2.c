#include "CTernTestHTTP2.h"

#if defined(__linux__)
#include <nghttp2/nghttp2.h>
#include <string.h>

void *tern_test_inflater_new(void) {
    nghttp2_hd_inflater *inflater = NULL;
    return nghttp2_hd_inflate_new(&inflater) == 0 ? inflater : NULL;
}

void tern_test_inflater_free(void *inflater) { nghttp2_hd_inflate_del(inflater); }

ptrdiff_t tern_test_inflate(void *inflater, const uint8_t *block, size_t length, uint8_t *text, size_t capacity) {
    size_t written = 0;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, block, length, 1);
        if (used < 0) return -1;
        block += used;
        length -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            size_t needed = field.namelen + field.valuelen + 4;
            if (needed > capacity - written) return -1;
            if (field.flags & NGHTTP2_NV_FLAG_NO_INDEX) text[written++] = '!';
            memcpy(text + written, field.name, field.namelen);
            written += field.namelen;
            text[written++] = ':';
            text[written++] = ' ';
            memcpy(text + written, field.value, field.valuelen);
            written += field.valuelen;
            text[written++] = '\n';
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) return nghttp2_hd_inflate_end_headers(inflater) == 0 ? (ptrdiff_t)written : -1;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && length == 0) return -1;
    }
}
#endif
