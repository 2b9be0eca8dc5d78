// The peer in C: WebSocket echo with libwebsockets.
//
//   bench-websocket-c serve PORT                      an echo server on 127.0.0.1, for all clients
//   bench-websocket-c PORT SIZE COUNT WINDOW          a client: COUNT messages of SIZE bytes, WINDOW of them under way
//
// The client prints one line of JSON.
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { largest = 1 << 20 };

// A message, or a part of one, that waits to be echoed.
struct part {
    struct part *next;
    size_t length;
    int is_first, is_final, is_binary;
    unsigned char bytes[];
};

struct echo {
    struct part *first, **last;
    size_t waiting;
};

static int serve(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    struct echo *echo = user;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        echo->last = &echo->first;
        break;
    case LWS_CALLBACK_RECEIVE: {
        struct part *part = malloc(sizeof *part + LWS_PRE + length);
        if (!part)
            return -1;
        part->next = NULL;
        part->length = length;
        part->is_first = lws_is_first_fragment(wsi);
        part->is_final = lws_is_final_fragment(wsi);
        part->is_binary = lws_frame_is_binary(wsi);
        memcpy(part->bytes + LWS_PRE, in, length);
        *echo->last = part;
        echo->last = &part->next;
        if (++echo->waiting > 256)
            lws_rx_flow_control(wsi, 0);
        lws_callback_on_writable(wsi);
        break;
    }
    case LWS_CALLBACK_SERVER_WRITEABLE: {
        while (echo->first && !lws_send_pipe_choked(wsi)) {
            struct part *part = echo->first;
            int kind = part->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
            int flags = lws_write_ws_flags(kind, part->is_first, part->is_final);
            int written = lws_write(wsi, part->bytes + LWS_PRE, part->length, (enum lws_write_protocol)flags);
            echo->first = part->next;
            if (!echo->first)
                echo->last = &echo->first;
            size_t wanted = part->length;
            free(part);
            if (written < (int)wanted)
                return -1;
            if (--echo->waiting == 128)
                lws_rx_flow_control(wsi, 1);
        }
        if (echo->first)
            lws_callback_on_writable(wsi);
        break;
    }
    case LWS_CALLBACK_CLOSED:
        while (echo->first) {
            struct part *part = echo->first;
            echo->first = part->next;
            free(part);
        }
        break;
    default:
        break;
    }
    return 0;
}

static struct {
    size_t size;
    long count, window, sent, received, to_send;
    int is_done, has_failed;
    unsigned char bytes[LWS_PRE + largest];
} client;

static int request(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    (void)user, (void)in, (void)length;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        client.to_send = client.window;
        lws_callback_on_writable(wsi);
        break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        while (client.to_send > 0 && client.sent < client.count && !lws_send_pipe_choked(wsi)) {
            if (lws_write(wsi, client.bytes + LWS_PRE, client.size, LWS_WRITE_BINARY) < (int)client.size)
                return -1;
            client.sent++;
            client.to_send--;
        }
        if (client.to_send > 0 && client.sent < client.count)
            lws_callback_on_writable(wsi);
        break;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        if (!lws_is_final_fragment(wsi))
            break;
        client.received++;
        client.to_send++;
        if (client.sent < client.count)
            lws_callback_on_writable(wsi);
        if (client.received == client.count) {
            client.is_done = 1;
            return -1;
        }
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        client.has_failed = 1;
        break;
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (!client.is_done)
            client.has_failed = 1;
        break;
    default:
        break;
    }
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    lws_set_log_level(LLL_ERR, NULL);
    int serves = argc == 3 && !strcmp(argv[1], "serve");
    if (!serves && argc != 5) {
        fprintf(stderr, "usage: bench-websocket-c serve PORT | PORT SIZE COUNT WINDOW\n");
        return 2;
    }
    struct lws_protocols protocols[] = {
        {.name = "echo", .callback = serves ? serve : request, .rx_buffer_size = 2 * largest,
         .per_session_data_size = serves ? sizeof(struct echo) : 0},
        {0},
    };
    int port = atoi(argv[serves ? 2 : 1]);
    struct lws_context_creation_info info = {
        .port = serves ? port : CONTEXT_PORT_NO_LISTEN, .iface = serves ? "127.0.0.1" : NULL, .protocols = protocols,
        .pt_serv_buf_size = 256 << 10, .gid = -1, .uid = -1,
    };
    struct lws_context *context = lws_create_context(&info);
    if (!context)
        return 1;
    if (serves)
        while (lws_service(context, 0) >= 0)
            ;
    client.size = (size_t)atol(argv[2]);
    client.count = atol(argv[3]);
    client.window = atol(argv[4]);
    if (client.size > largest)
        return 2;
    struct lws_client_connect_info connect = {
        .context = context, .address = "127.0.0.1", .port = port, .path = "/", .host = "127.0.0.1",
        .origin = "127.0.0.1", .ietf_version_or_minus_one = -1, .local_protocol_name = "echo",
    };
    double wall = now(), cpu = used();
    if (!lws_client_connect_via_info(&connect))
        return 1;
    while (!client.is_done && !client.has_failed && lws_service(context, 0) >= 0)
        ;
    wall = now() - wall;
    cpu = used() - cpu;
    if (client.has_failed)
        return 1;
    printf("{\"rate\":%f,\"cpu_us\":%f,\"seconds\":%f}\n", (double)client.count / wall,
           cpu * 1e6 / (double)client.count, wall);
    return 0;
}
