// SQLite and the checksum of values for the disk cache: functions that Swift cannot call, or cannot run fast enough.
#ifndef CTERNSQLITE_H
#define CTERNSQLITE_H

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#else
#error "Tern needs SQLite's headers: install the Debian package libsqlite3-dev (Fedora: sqlite-devel)"
#endif

#include <stddef.h>
#include <stdint.h>

// Binds bytes that stay valid during the step, so that SQLite reads them in place. (Swift does not import
// SQLITE_STATIC, which is a cast.)
static inline int tern_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, size_t count) {
    // A null pointer would bind NULL instead of an empty blob.
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_STATIC);
}

static inline int tern_sqlite_bind_copy(sqlite3_stmt *statement, int index, const void *bytes, size_t count) {
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_TRANSIENT);
}

/// An incremental XXH64 (xxHash specification, section 3).
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

/// Returns the XXH64 of contiguous bytes.
uint64_t tern_xxh64(const void *bytes, size_t count, uint64_t seed);

/// Opens a file below a folder that is held open. A link anywhere in the path is an error (ELOOP or ENOTDIR), and so is
/// a path that leaves the folder.
int tern_open_below(int folder, const char *path, int flags, unsigned mode);

/// Opens a folder in the same way, to be used with the calls that take the descriptor of a folder.
int tern_open_folder_below(int folder, const char *path);

/// Opens a file for reading if that needs nothing of the disk: below a folder like `tern_open_below`, or anywhere for
/// AT_FDCWD. Returns -1 if it does, or if the system cannot tell (before Linux 5.12, in some sandboxes, on other
/// systems). Never waits for the disk.
int tern_open_cached(int folder, const char *path);

/// Returns the name of the files of SQLite that take the name of a database as it is given, as one in
/// `/proc/self/fd/N`. NULL if they cannot be used.
const char *tern_sqlite_held_files(void);

/// Reads the bytes from an offset of a file that are in memory. Returns their number, or -1 if the first byte is not in
/// memory, or if the file system cannot tell. Never waits for the disk.
ptrdiff_t tern_read_cached(int descriptor, void *buffer, size_t count, int64_t offset);

#endif
