#if defined(__linux__)
#include "CTernCurl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// libcurl allocates about thirty blocks for a request, one of 64 KiB among them, and frees them at its end. In a
// process with several threads, that takes a tenth of a request's time, because of locks and of a heap that is
// consolidated at each large block. The loop's thread therefore keeps the blocks that libcurl frees, by size, and
// reuses them without this cost.
//
// Every block comes from malloc. Any owner may free it, including a user of libcurl elsewhere in the process, and
// blocks that malloc gave to other owners may be released here. Threads without a store, which are all others, call
// malloc directly.

enum {
    // The sizes that malloc itself uses on 64 bits. A block allocated with one of these sizes has no unused byte.
    smallest = 24,
    step = 16,
    small_sizes = 128,
    small_end = smallest + step * small_sizes,
    // Above the small sizes, sizes are whole pages.
    page = 4096,
    page_sizes = 32,
    page_end = page * page_sizes,
    // The maximum number of bytes that a store keeps: the buffers of 64 transfers. Blocks beyond it go back to malloc.
    // When `refusals` bytes have gone back, the store frees all of its blocks, because otherwise blocks of sizes that
    // are no longer used would stay forever.
    limit = 64 * (page + 65536),
    refusals = 16 * limit,
};

struct store {
    // The first block of each size. Each block contains the address of the next one.
    void *blocks[small_sizes + page_sizes];
    size_t kept;
    // The number of bytes that were refused because of the limit since the store was emptied.
    size_t refused;
};

static __thread struct store *store;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Returns the place for blocks that hold `count` bytes or more.
static inline size_t place_for(size_t count) {
    if (count <= smallest) { return 0; }
    size_t place = (count - smallest + step - 1) / step;
    return place < small_sizes ? place : small_sizes + (count + page - 1) / page;
}

// Returns the place for a block of `size` bytes, never one for a larger size. malloc returns a step more than requested
// if the rest of a block could not be a block of its own. This applies to the last of the small sizes, too.
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
    // A block that is a step larger than requested is kept in the next place, and would not be found again otherwise.
    if (!block && place + 1 < small_sizes) { block = store->blocks[++place]; }
    if (!block) { return malloc(size_at(place_for(count))); }
    store->blocks[place] = *(void **)block;
    store->kept -= size_at(place);
    return block;
}

// A separate function, because two of three calls have nothing to free.
__attribute__((noinline)) static void release(void *block) {
    if (!store) { return free(block); }
    size_t size = malloc_usable_size(block);
    // No block from this store has a size between the small sizes and the first page.
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
    // Does not use realloc, because its blocks would be kept at the end and never be reused.
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
    // Address sanitizer must see each block being allocated and freed.
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
