#include "CTernHTTP2.h"

#if defined(__linux__)
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

struct tern_h2 {
    nghttp2_session *session;
    tern_h2_callbacks callbacks;
    void *context;
};

_Static_assert((int)TERN_H2_DROP == (int)NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE, "the codes agree");
_Static_assert((int)TERN_H2_WAIT == (int)NGHTTP2_ERR_DEFERRED, "the codes agree");
_Static_assert((int)TERN_H2_FATAL == (int)NGHTTP2_ERR_CALLBACK_FAILURE, "the codes agree");

// The limit exists since nghttp2 1.61 and in patched older ones, so the symbol may be absent.
extern void nghttp2_option_set_max_continuations(nghttp2_option *option, size_t val) __attribute__((weak));

static tern_h2_frame flattened(const nghttp2_frame *frame) {
    tern_h2_frame flat = {frame->hd.type, frame->hd.flags, frame->hd.stream_id, 0, 0, NULL, 0};
    switch (frame->hd.type) {
    case NGHTTP2_RST_STREAM:
        flat.code = frame->rst_stream.error_code;
        break;
    case NGHTTP2_PING:
        flat.data = frame->ping.opaque_data;
        flat.length = 8;
        break;
    case NGHTTP2_GOAWAY:
        flat.code = frame->goaway.error_code;
        flat.last_stream = frame->goaway.last_stream_id;
        flat.data = frame->goaway.opaque_data;
        flat.length = frame->goaway.opaque_data_len;
        break;
    default:
        break;
    }
    return flat;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    return self->callbacks.begin_headers(self->context, frame->hd.stream_id, frame->hd.flags);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    if (header->type != NGHTTP2_DATA) return 0;
    return self->callbacks.begin_data(self->context, header->stream_id, header->flags, header->length);
}

static int on_header(
    nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
    const uint8_t *value, size_t value_length, uint8_t flags, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    (void)flags;
    return self->callbacks.header(self->context, frame->hd.stream_id, name, name_length, value, value_length);
}

static int on_invalid_header(
    nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
    const uint8_t *value, size_t value_length, uint8_t flags, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    (void)name;
    (void)name_length;
    (void)value;
    (void)value_length;
    (void)flags;
    return self->callbacks.invalid_header(self->context, frame->hd.stream_id);
}

static int on_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    (void)flags;
    return self->callbacks.data(self->context, stream, bytes, length);
}

static int on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_DATA:
        if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
        break;
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) return 0;
        break;
    case NGHTTP2_PING:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) return 0;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_GOAWAY:
        break;
    default:
        return 0;
    }
    tern_h2_frame flat = flattened(frame);
    return self->callbacks.received(self->context, &flat);
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS:
    case NGHTTP2_GOAWAY:
        break;
    default:
        return 0;
    }
    tern_h2_frame flat = flattened(frame);
    return self->callbacks.sent(self->context, &flat);
}

static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    (void)error;
    return self->callbacks.not_sent(self->context, frame->hd.type, frame->hd.stream_id);
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    return self->callbacks.invalid_frame(self->context, frame->hd.type, frame->hd.stream_id, error);
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    return self->callbacks.closed(self->context, stream, code);
}

static ssize_t on_read(
    nghttp2_session *session, int32_t stream, uint8_t *bytes, size_t length, uint32_t *data_flags,
    nghttp2_data_source *source, void *user_data) {
    tern_h2 *self = user_data;
    (void)session;
    (void)source;
    uint32_t flags = 0;
    ssize_t count = self->callbacks.read(self->context, stream, bytes, length, &flags);
    if (flags & TERN_H2_BODY_ENDS) *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    if (flags & TERN_H2_TRAILERS_FOLLOW) *data_flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return count;
}

static int start(tern_h2 *self, const tern_h2_settings *settings) {
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int result = NGHTTP2_ERR_NOMEM;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return result;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_received);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    if (nghttp2_option_new(&option) == 0) {
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_peer_max_concurrent_streams(option, 100);
        nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
        nghttp2_option_set_max_settings(option, 32);
        nghttp2_option_set_max_outbound_ack(option, 1000);
        if (nghttp2_option_set_max_continuations)
            nghttp2_option_set_max_continuations(option, settings->continuations);
        result = nghttp2_session_client_new2(&self->session, callbacks, self, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (result != 0) return result;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings->head_limit},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    result = nghttp2_submit_settings(self->session, NGHTTP2_FLAG_NONE, entries, sizeof entries / sizeof entries[0]);
    if (result != 0) return result;
    return nghttp2_session_set_local_window_size(
        self->session, NGHTTP2_FLAG_NONE, 0, settings->connection_window);
}

tern_h2 *tern_h2_new(const tern_h2_callbacks *callbacks, const tern_h2_settings *settings) {
    tern_h2 *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->callbacks = *callbacks;
    if (start(self, settings) != 0) {
        tern_h2_free(self);
        return NULL;
    }
    return self;
}

void tern_h2_set_context(tern_h2 *self, void *context) { self->context = context; }

void tern_h2_free(tern_h2 *self) {
    if (!self) return;
    nghttp2_session_del(self->session);
    free(self);
}

ptrdiff_t tern_h2_receive(tern_h2 *self, const uint8_t *bytes, size_t length) {
    return nghttp2_session_mem_recv(self->session, bytes, length);
}

ptrdiff_t tern_h2_send(tern_h2 *self, const uint8_t **bytes) {
    return nghttp2_session_mem_send(self->session, bytes);
}

int tern_h2_wants_read(const tern_h2 *self) { return nghttp2_session_want_read(self->session); }

int tern_h2_wants_write(const tern_h2 *self) { return nghttp2_session_want_write(self->session); }

int tern_h2_can_request(const tern_h2 *self) { return nghttp2_session_check_request_allowed(self->session); }

enum { ON_STACK = 64 };

// Returns the fields in nghttp2's form: in `room` if it is large enough, otherwise in memory that the caller frees.
static nghttp2_nv *converted(const uint8_t *base, const tern_h2_field *fields, size_t count, nghttp2_nv *room) {
    nghttp2_nv *result = count <= ON_STACK ? room : malloc(count * sizeof *result);
    if (!result) return NULL;
    for (size_t index = 0; index < count; index++) {
        const tern_h2_field *field = &fields[index];
        result[index].name = (uint8_t *)base + field->name;
        result[index].namelen = field->name_length;
        result[index].value = (uint8_t *)base + field->value;
        result[index].valuelen = field->value_length;
        result[index].flags = field->is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    }
    return result;
}

int32_t tern_h2_submit(tern_h2 *self, const uint8_t *base, const tern_h2_field *fields, size_t count, int has_body) {
    nghttp2_nv room[ON_STACK];
    nghttp2_nv *values = converted(base, fields, count, room);
    if (!values) return NGHTTP2_ERR_NOMEM;
    nghttp2_data_provider provider = {{0}, on_read};
    int32_t stream =
        nghttp2_submit_request(self->session, NULL, values, count, has_body ? &provider : NULL, NULL);
    if (values != room) free(values);
    return stream;
}

int tern_h2_submit_trailers(
    tern_h2 *self, int32_t stream, const uint8_t *base, const tern_h2_field *fields, size_t count) {
    nghttp2_nv room[ON_STACK];
    nghttp2_nv *values = converted(base, fields, count, room);
    if (!values) return NGHTTP2_ERR_NOMEM;
    int result = nghttp2_submit_trailer(self->session, stream, values, count);
    if (values != room) free(values);
    return result;
}

int tern_h2_reset(tern_h2 *self, int32_t stream, uint32_t code) {
    return nghttp2_submit_rst_stream(self->session, NGHTTP2_FLAG_NONE, stream, code);
}

int tern_h2_resume(tern_h2 *self, int32_t stream) { return nghttp2_session_resume_data(self->session, stream); }

int tern_h2_consume_stream(tern_h2 *self, int32_t stream, size_t length) {
    return nghttp2_session_consume_stream(self->session, stream, length);
}

int tern_h2_consume_connection(tern_h2 *self, size_t length) {
    return nghttp2_session_consume_connection(self->session, length);
}

int tern_h2_ping(tern_h2 *self, const uint8_t *data) {
    return nghttp2_submit_ping(self->session, NGHTTP2_FLAG_NONE, data);
}

int tern_h2_go_away(tern_h2 *self) {
    return nghttp2_submit_goaway(self->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

int tern_h2_terminate(tern_h2 *self, uint32_t code) { return nghttp2_session_terminate_session(self->session, code); }

int tern_h2_update_priority(tern_h2 *self, int32_t stream, const uint8_t *value, size_t length) {
    return nghttp2_submit_priority_update(self->session, NGHTTP2_FLAG_NONE, stream, value, length);
}

uint32_t tern_h2_maximum_streams(tern_h2 *self) {
    return nghttp2_session_get_remote_settings(self->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

int tern_h2_allows_connect_protocol(tern_h2 *self) {
    return nghttp2_session_get_remote_settings(self->session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

const char *tern_h2_error_text(int error) { return nghttp2_strerror(error); }
#endif
