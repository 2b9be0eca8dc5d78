// The yardstick: what a careful C programmer gets out of libcurl's multi interface on one epoll thread.
#ifndef BENCH_H
#define BENCH_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

enum scenario { GET, HTTPS, H2, BODY64K, DOWNLOAD_FILE, DOWNLOAD_STREAM, UPLOAD };

/// The command line, the same for every peer.
struct options {
    enum scenario scenario;
    const char *name;
    const char *url;
    const char *warm_up_url;
    const char *ca_file;
    const char *file;
    long connections;
    long at_once;   // requests under way at a time; 0: as many as connections
    long requests;
    long warm_up;   // requests before the clock starts; -1: the default
    int64_t size;   // bytes a body must have; -1: the scenario's own range
    const char *fields[16];  // "Name: value", sent beside what libcurl writes by itself
    int field_count;
};

bool options_parse(struct options *options, int argc, char **argv);
bool options_accept(const struct options *options, int64_t bytes);

/// A point in time: wall clock and the processor time of this process.
struct sample {
    double wall;
    double cpu;
};

struct sample sample_now(void);
double peak_rss_mib(void);

/// One multi handle, one epoll instance, one thread.
struct loop;
typedef void (*loop_done)(void *context, CURL *easy, CURLcode result);

/// `limit`: the most connections to a host; 0: none.
struct loop *loop_open(long connections, long limit, loop_done done, void *context);
void loop_add(struct loop *loop, CURL *easy);
void loop_run(struct loop *loop);
void loop_close(struct loop *loop);
void loop_configure(struct loop *loop, CURL *easy);

#endif
