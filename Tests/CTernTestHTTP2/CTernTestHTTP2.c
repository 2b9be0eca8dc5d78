#include "CTernTestHTTP2.h"

#if defined(__linux__)
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
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

struct tern_test_http2 {
    nghttp2_session *session;
    uint32_t error;
    char status[4];
    int requests;
};

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
    tern_test_http2 *server = data;
    int is_message = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!is_message || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    server->requests++;
    int32_t stream = frame->hd.stream_id;
    if (server->error) return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, server->error);
    nghttp2_nv field = {(uint8_t *)":status", (uint8_t *)server->status, 7, 3, NGHTTP2_NV_FLAG_NONE};
    return nghttp2_submit_response(session, stream, &field, 1, NULL);
}

tern_test_http2 *tern_test_http2_new(uint32_t error, const char *status) {
    tern_test_http2 *server = calloc(1, sizeof *server);
    nghttp2_session_callbacks *callbacks = NULL;
    if (!server || nghttp2_session_callbacks_new(&callbacks) != 0) {
        free(server);
        return NULL;
    }
    server->error = error;
    strncpy(server->status, status, 3);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    int result = nghttp2_session_server_new(&server->session, callbacks, server);
    nghttp2_session_callbacks_del(callbacks);
    if (result != 0 || nghttp2_submit_settings(server->session, NGHTTP2_FLAG_NONE, NULL, 0) != 0) {
        tern_test_http2_free(server);
        return NULL;
    }
    return server;
}

void tern_test_http2_free(tern_test_http2 *server) {
    if (!server) return;
    nghttp2_session_del(server->session);
    free(server);
}

int tern_test_http2_receive(tern_test_http2 *server, const uint8_t *bytes, size_t length) {
    return nghttp2_session_mem_recv(server->session, bytes, length) == (ssize_t)length ? 0 : -1;
}

ptrdiff_t tern_test_http2_output(tern_test_http2 *server, uint8_t *bytes, size_t capacity) {
    const uint8_t *output = NULL;
    ssize_t count = nghttp2_session_mem_send(server->session, &output);
    if (count < 0 || (size_t)count > capacity) return -1;
    if (count > 0) memcpy(bytes, output, (size_t)count);
    return count;
}

int tern_test_http2_requests(const tern_test_http2 *server) { return server->requests; }
#endif
