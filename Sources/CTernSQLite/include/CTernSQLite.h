// SQLite for the disk cache, and the checksum of its values: what Swift cannot reach, or not at the speed of the disk.
#ifndef CTERNSQLITE_H
#define CTERNSQLITE_H

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#else
#error "Tern needs SQLite's headers: install the Debian package libsqlite3-dev (Fedora: sqlite-devel)"
#endif

#include <stddef.h>
#include <stdint.h>

// The bytes outlive the step: SQLite may read them in place. (SQLITE_STATIC is a cast that Swift does not import.)
static inline int tern_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, size_t count) {
    // A null pointer would bind NULL: nothing is an empty blob.
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_STATIC);
}

static inline int tern_sqlite_bind_copy(sqlite3_stmt *statement, int index, const void *bytes, size_t count) {
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_TRANSIENT);
}

/// XXH64 (xxHash specification, section 3), in pieces.
typedef struct {
    uint64_t lanes[4];
    uint64_t seed;
    uint64_t total;
    uint8_t tail[32];
    uint32_t tailCount;
} tern_xxh64_state;

void tern_xxh64_begin(tern_xxh64_state *state, uint64_t seed);
void tern_xxh64_update(tern_xxh64_state *state, const void *bytes, size_t count);
uint64_t tern_xxh64_finish(const tern_xxh64_state *state);

/// XXH64 of one run of bytes.
uint64_t tern_xxh64(const void *bytes, size_t count, uint64_t seed);

/// Opens a file for reading, if all that it takes is in memory already: -1 where the disk would be asked, and where the
/// system cannot tell (before Linux 5.12, in some sandboxes, on other systems). Never waits for the disk.
int tern_open_cached(const char *path);

/// Reads from a place of a file what is in memory: the count of bytes, as far as they are; -1 if the first is not, or if
/// the file system cannot tell. Never waits for the disk.
ptrdiff_t tern_read_cached(int descriptor, void *buffer, size_t count, int64_t offset);

#endif
