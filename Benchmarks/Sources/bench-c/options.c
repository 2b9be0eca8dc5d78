#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "get", "https", "h2", "body64k", "download-file", "download-stream", "upload" };

/// Reads `SCENARIO --url URL --connections N --requests M …`.
bool options_parse(struct options *o, int argc, char **argv) {
    *o = (struct options){ .connections = 1, .requests = 1, .warm_up = -1, .size = -1 };
    if (argc < 2) return false;
    o->name = argv[1];
    bool known = false;
    for (int i = 0; i < 7; i++) {
        if (strcmp(argv[1], names[i]) == 0) { o->scenario = (enum scenario)i; known = true; }
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (strcmp(key, "--url") == 0) o->url = value;
        else if (strcmp(key, "--warm-up-url") == 0) o->warm_up_url = value;
        else if (strcmp(key, "--cacert") == 0) o->ca_file = value;
        else if (strcmp(key, "--file") == 0) o->file = value;
        else if (strcmp(key, "--connections") == 0) o->connections = atol(value);
        else if (strcmp(key, "--at-once") == 0) o->at_once = atol(value);
        else if (strcmp(key, "--requests") == 0) o->requests = atol(value);
        else if (strcmp(key, "--warm-up") == 0) o->warm_up = atol(value);
        else if (strcmp(key, "--size") == 0) o->size = atoll(value);
        else if (strcmp(key, "--field") == 0 && o->field_count < 16) o->fields[o->field_count++] = value;
        else known = false;
    }
    bool needs_file = o->scenario == DOWNLOAD_FILE || o->scenario == UPLOAD;
    return known && o->url && o->connections > 0 && o->requests > 0 && (o->file || !needs_file);
}

/// Returns whether the scenario expects a body of so many bytes.
bool options_accept(const struct options *o, int64_t bytes) {
    if (o->size >= 0) return bytes == o->size;
    switch (o->scenario) {
        case GET: case HTTPS: case H2: return bytes >= 64 && bytes <= 100;
        case BODY64K: return bytes == 65536;
        default: return bytes == (int64_t)1 << 30;
    }
}
