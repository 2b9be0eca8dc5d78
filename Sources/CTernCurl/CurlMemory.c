#if defined(__linux__)
#include "CTernCurl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// libcurl asks for some thirty blocks a request, one of 64 KiB among them, and gives them back at its end. In a process of
// several threads that costs a tenth of a request: locks, and a heap that is tidied up at each large block. So the loop's
// thread keeps what libcurl gives back, by size, and takes it again without either.
//
// Every block is malloc's own. Whoever has one may free it, a user of libcurl elsewhere in the process too, and what
// malloc gave to anybody may end here. Threads without a store, which are all others, go to malloc directly.

enum {
    // The sizes that malloc has itself, on 64 bits: blocks asked for with one of these hold no byte more.
    smallest = 24,
    step = 16,
    small_sizes = 128,
    small_end = smallest + step * small_sizes,
    // Above that by whole pages.
    page = 4096,
    page_sizes = 32,
    page_end = page * page_sizes,
    // What is kept in all, in bytes: the buffers of 64 transfers. What comes beyond goes back to malloc; and when that was
    // this much, so does all that is kept: sizes that nobody asks for again would stay for ever.
    limit = 64 * (page + 65536),
    refusals = 16 * limit,
};

struct store {
    // The first block of each size; in each block stands the next one.
    void *blocks[small_sizes + page_sizes];
    size_t kept;
    // Bytes that came beyond the limit since the store was emptied.
    size_t refused;
};

static __thread struct store *store;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Where blocks are kept that hold `count` bytes or more.
static inline size_t place_for(size_t count) {
    if (count <= smallest) { return 0; }
    size_t place = (count - smallest + step - 1) / step;
    return place < small_sizes ? place : small_sizes + (count + page - 1) / page;
}

// Where a block of `size` bytes is kept: never under a size that it has not. malloc gives a step more than it was asked for
// where what is left of a block could not stand alone, at the last of the small sizes too.
static inline size_t place_of(size_t size) {
    if (size < small_end) { return (size - smallest) / step; }
    return size < small_end + step ? small_sizes - 1 : small_sizes + size / page;
}

static inline size_t size_at(size_t place) {
    return place < small_sizes ? smallest + step * place : (place - small_sizes) * page;
}

__attribute__((noinline, cold)) static void empty(struct store *store) {
    for (size_t place = 0; place < small_sizes + page_sizes; place++) {
        for (void *next, *block = store->blocks[place]; block; block = next) {
            next = *(void **)block;
            free(block);
        }
        store->blocks[place] = 0;
    }
    store->kept = store->refused = 0;
}

void *tern_curl_allocate(size_t count) {
    if (!store || count >= page_end - page) { return malloc(count); }
    size_t place = place_for(count);
    void *block = store->blocks[place];
    // One that has a step more than it was asked for is kept there, and would not be found again otherwise.
    if (!block && place + 1 < small_sizes) { block = store->blocks[++place]; }
    if (!block) { return malloc(size_at(place_for(count))); }
    store->blocks[place] = *(void **)block;
    store->kept -= size_at(place);
    return block;
}

// Not part of the function below: two calls of three have nothing to give back.
__attribute__((noinline)) static void release(void *block) {
    if (!store) { return free(block); }
    size_t size = malloc_usable_size(block);
    // Between the sizes by steps and the first page lies nothing that was taken here.
    if (size < smallest || size >= page_end || (size >= small_end + step && size < page)) { return free(block); }
    size_t place = place_of(size);
    if (store->kept + size_at(place) > limit) {
        store->refused += size;
        if (store->refused > refusals) { empty(store); }
        return free(block);
    }
    *(void **)block = store->blocks[place];
    store->blocks[place] = block;
    store->kept += size_at(place);
}

void tern_curl_release(void *block) {
    if (block) { release(block); }
}

void *tern_curl_allocate_zeroed(size_t count, size_t size) {
    if (!store) { return calloc(count, size); }
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) { return 0; }
    void *block = tern_curl_allocate(whole);
    return block ? memset(block, 0, whole) : 0;
}

void *tern_curl_reallocate(void *block, size_t count) {
    if (!store || count >= page_end - page) { return realloc(block, count); }
    // Not by realloc: what it makes would be kept at the end and never be taken again.
    size_t size = block ? malloc_usable_size(block) : 0;
    if (block && count <= size) { return block; }
    void *larger = tern_curl_allocate(count);
    if (!larger || !block) { return larger; }
    memcpy(larger, block, size);
    tern_curl_release(block);
    return larger;
}

static char *duplicate(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = tern_curl_allocate(size);
    return copy ? memcpy(copy, text, size) : 0;
}

void tern_curl_set_up(void) {
    // Address sanitizer is to see each block come and go.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    curl_global_init(CURL_GLOBAL_ALL);
    return;
#endif
#endif
    curl_global_init_mem(
        CURL_GLOBAL_ALL, tern_curl_allocate, tern_curl_release, tern_curl_reallocate, duplicate,
        tern_curl_allocate_zeroed);
}

static void drop(void *kept) {
    store = 0;
    empty(kept);
    free(kept);
}

static void make_key(void) { pthread_key_create(&thread_end, drop); }

void tern_curl_keep_blocks(void) {
    pthread_once(&once, make_key);
    if (store) { return; }
    store = calloc(1, sizeof(struct store));
    pthread_setspecific(thread_end, store);
}

size_t tern_curl_kept_bytes(void) { return store ? store->kept : 0; }
#endif
