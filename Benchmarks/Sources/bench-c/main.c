#include "bench.h"

#if defined(__linux__)
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct worker {
    CURL *easy;
    int64_t bytes;     // of the response's body
    int64_t echoed;    // upload: the number in the response's body
    off_t offset;      // upload: the next byte to read
    int fd;
    char partial[4096];
    char *kept;        // 64 KiB bodies: the body so far
    size_t capacity;
};

struct bench {
    const struct options *options;
    struct loop *loop;
    const char *url;
    bool plain;        // a small GET whatever the scenario says: the warm-up of a transfer
    int64_t file_size;
    long at_once;      // requests under way at a time
    long started, total, errors;
    int64_t moved;
    struct curl_slist *headers;
};

static struct bench bench;

/// Collects the body in memory, in one piece: the room is allocated at once where the length is known.
static bool keep(struct worker *worker, const char *data, size_t bytes) {
    size_t filled = (size_t)worker->bytes;
    if (filled + bytes > worker->capacity) {
        curl_off_t length = -1;
        if (!worker->kept) curl_easy_getinfo(worker->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        size_t room = length > 0 ? (size_t)length : 2 * worker->capacity;
        if (room < filled + bytes) room = filled + bytes;
        char *grown = realloc(worker->kept, room);
        if (!grown) return false;
        worker->kept = grown;
        worker->capacity = room;
    }
    memcpy(worker->kept + filled, data, bytes);
    return true;
}

static size_t on_body(char *data, size_t size, size_t count, void *context) {
    struct worker *worker = context;
    size_t bytes = size * count;
    if (bench.options->scenario == BODY64K && !keep(worker, data, bytes)) return 0;
    worker->bytes += (int64_t)bytes;
    if (worker->fd >= 0 && bench.options->scenario == DOWNLOAD_FILE) {
        for (size_t done = 0; done < bytes;) {
            ssize_t written = write(worker->fd, data + done, bytes - done);
            if (written < 0) return 0;
            done += (size_t)written;
        }
    } else if (bench.options->scenario == UPLOAD) {
        for (size_t i = 0; i < bytes; i++) {
            if (data[i] >= '0' && data[i] <= '9') worker->echoed = worker->echoed * 10 + data[i] - '0';
        }
    }
    return bytes;
}

static size_t on_read(char *buffer, size_t size, size_t count, void *context) {
    struct worker *worker = context;
    ssize_t got = pread(worker->fd, buffer, size * count, worker->offset);
    if (got < 0) return CURL_READFUNC_ABORT;
    worker->offset += got;
    return (size_t)got;
}

/// Options that hold for the life of a pooled handle.
static void configure(struct worker *worker) {
    const struct options *o = bench.options;
    CURL *easy = worker->easy;
    bool large = o->scenario >= DOWNLOAD_FILE;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PRIVATE, worker);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, worker);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, worker);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, bench.headers);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, large ? 512L * 1024 : 64L * 1024);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     o->scenario == H2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    if (o->scenario == H2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (o->ca_file) curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
    loop_configure(bench.loop, easy);
}

/// Starts a request: sets the options that differ from the one before.
static void start(struct worker *worker) {
    bool upload = bench.options->scenario == UPLOAD && !bench.plain;
    bool download = bench.options->scenario == DOWNLOAD_FILE && !bench.plain;
    bench.started++;
    worker->bytes = worker->echoed = 0;
    worker->offset = 0;
    curl_easy_setopt(worker->easy, CURLOPT_URL, bench.url);
    if (upload) {
        worker->fd = open(bench.options->file, O_RDONLY | O_CLOEXEC);
        curl_easy_setopt(worker->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(worker->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)bench.file_size);
    } else if (download) {
        snprintf(worker->partial, sizeof worker->partial, "%s.%p.partial", bench.options->file, (void *)worker);
        worker->fd = open(worker->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    loop_add(bench.loop, worker->easy);
}

/// Checks status and size, puts a download in its place, and starts the worker's next request.
static void finished(void *context, CURL *easy, CURLcode result) {
    struct worker *worker;
    long status = 0;
    (void)context;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&worker);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    bool upload = bench.options->scenario == UPLOAD && !bench.plain;
    int64_t moved = upload ? worker->echoed : worker->bytes;
    bool right = upload ? moved == bench.file_size : bench.plain || options_accept(bench.options, moved);
    if (worker->fd >= 0) {
        close(worker->fd);
        worker->fd = -1;
        if (!upload && rename(worker->partial, bench.options->file) != 0) right = false;
    }
    free(worker->kept);  // As a caller does who is done with the body.
    worker->kept = NULL;
    worker->capacity = 0;
    if (result != CURLE_OK || status != 200 || !right) {
        if (bench.errors++ == 0) {
            fprintf(stderr, "bench-c: %s, status %ld, %lld bytes\n", curl_easy_strerror(result), status,
                    (long long)moved);
        }
    }
    bench.moved += moved;
    if (bench.started < bench.total) start(worker);
}

static void run(struct worker *workers, const char *url, long total) {
    bench.url = url;
    bench.started = 0;
    bench.total = total;
    bench.moved = 0;
    for (long i = 0; i < bench.at_once && i < total; i++) start(&workers[i]);
    loop_run(bench.loop);
}

int main(int argc, char **argv) {
    struct options options;
    if (argc == 2 && strcmp(argv[1], "version") == 0) return puts(curl_version()) < 0;
    if (!options_parse(&options, argc, argv)) {
        fprintf(stderr, "usage: bench-c get|https|h2|body64k|download-file|download-stream|upload --url URL "
                "--connections N --requests M [--cacert PEM] [--file PATH] [--warm-up-url URL] "
                "[--warm-up N] [--size BYTES] [--at-once N] [--field 'NAME: VALUE']...\n");
        return 64;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    bench.options = &options;
    bench.headers = curl_slist_append(NULL, "Expect:");
    for (int i = 0; i < options.field_count; i++) {
        bench.headers = curl_slist_append(bench.headers, options.fields[i]);
    }
    bench.at_once = options.at_once ? options.at_once : options.connections;
    bench.loop = loop_open(options.connections, options.at_once ? options.connections : 0, finished, NULL);
    struct stat info;
    if (options.scenario == UPLOAD && stat(options.file, &info) == 0) bench.file_size = info.st_size;
    struct worker *workers = calloc((size_t)bench.at_once, sizeof *workers);
    for (long i = 0; i < bench.at_once; i++) {
        workers[i].easy = curl_easy_init();
        workers[i].fd = -1;
        configure(&workers[i]);
    }

    if (options.scenario < DOWNLOAD_FILE) {
        long tenth = options.requests / 10 < 2000 ? options.requests / 10 : 2000;
        long twice = 2 * options.connections;
        run(workers, options.url, options.warm_up >= 0 ? options.warm_up : tenth > twice ? tenth : twice);
    } else if (options.warm_up_url) {
        bench.plain = true;
        run(workers, options.warm_up_url, options.connections);
        bench.plain = false;
    }

    struct sample before = sample_now();
    run(workers, options.url, options.requests);
    struct sample after = sample_now();

    double seconds = after.wall - before.wall, cpu = after.cpu - before.cpu;
    printf("{\"client\":\"c\",\"scenario\":\"%s\",\"connections\":%ld,\"requests\":%ld,\"seconds\":%.4f,"
           "\"rps\":%.1f,\"cpu_us_per_request\":%.2f,\"cpu_seconds\":%.4f,\"mb_per_s\":%.1f,"
           "\"peak_rss_mib\":%.1f,\"errors\":%ld}\n",
           options.name, options.connections, options.requests, seconds, (double)options.requests / seconds,
           cpu * 1e6 / (double)options.requests, cpu, (double)bench.moved / 1e6 / seconds, peak_rss_mib(),
           bench.errors);
    for (long i = 0; i < bench.at_once; i++) curl_easy_cleanup(workers[i].easy);
    loop_close(bench.loop);
    curl_slist_free_all(bench.headers);
    free(workers);
    return bench.errors ? 1 : 0;
}
#else
#include <stdio.h>
int main(void) { fprintf(stderr, "bench-c: the epoll loop is for Linux\n"); return 69; }
#endif
