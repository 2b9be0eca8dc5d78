// Calls below a folder that is held open, and SQLite's files in it.
#define _GNU_SOURCE
#include "CTernSQLite.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#define TERN_FOLDER (O_PATH | O_DIRECTORY)
#else
#define TERN_FOLDER (O_RDONLY | O_DIRECTORY)
#endif

static int close_keeping_error(int descriptor) {
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
}

// Opens each folder of the path in the one before it.
static int walk(int folder, const char *path, int flags, unsigned mode) {
    int at = folder, found;
    char name[256];
    const char *slash;
    while ((slash = strchr(path, '/')) != NULL) {
        size_t length = (size_t)(slash - path);
        if (length >= sizeof name) {
            errno = ENAMETOOLONG;
            found = -1;
        } else {
            memcpy(name, path, length);
            name[length] = 0;
            if (length == 0 || strcmp(name, "..") == 0) {
                errno = EINVAL;
                found = -1;
            } else {
                found = openat(at, name, TERN_FOLDER | O_NOFOLLOW | O_CLOEXEC);
            }
        }
        if (at != folder) close_keeping_error(at);
        if (found < 0) return -1;
        at = found;
        path = slash + 1;
    }
    if (*path == 0 || strcmp(path, "..") == 0) {
        errno = EINVAL;
        found = -1;
    } else {
        found = openat(at, path, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    if (at != folder) close_keeping_error(at);
    return found;
}

#if defined(__linux__) && defined(__LP64__) && defined(SYS_preadv2)

// These constants of linux/openat2.h and linux/fs.h are newer than the headers of some systems. The number of the
// system call is the same on all processors.
#define TERN_SYS_OPENAT2 437
#define TERN_RESOLVE_NO_SYMLINKS 0x04
#define TERN_RESOLVE_BENEATH 0x08
#define TERN_RESOLVE_CACHED 0x20
#define TERN_RWF_NOWAIT 0x8
struct tern_open_how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

// An old kernel or a sandbox refuses the call, or a way to resolve, which is then never tried again.
static int refuses_call(void) { return errno == ENOSYS || errno == EINVAL || errno == EPERM; }

int tern_open_below(int folder, const char *path, int flags, unsigned mode) {
    static _Atomic int isMissing;
    if (!atomic_load_explicit(&isMissing, memory_order_relaxed)) {
        struct tern_open_how how = {
            (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC), flags & O_CREAT ? mode : 0,
            TERN_RESOLVE_NO_SYMLINKS | TERN_RESOLVE_BENEATH};
        int descriptor = (int)syscall(TERN_SYS_OPENAT2, folder, path, &how, sizeof how);
        // EAGAIN: another folder was renamed meanwhile.
        if (descriptor >= 0 || (!refuses_call() && errno != EAGAIN)) return descriptor;
        // EPERM is also the answer of a file system. The other way tells.
        if (errno == ENOSYS) atomic_store_explicit(&isMissing, 1, memory_order_relaxed);
    }
    return walk(folder, path, flags, mode);
}

int tern_open_cached(int folder, const char *path) {
    static _Atomic int isMissing;
    if (atomic_load_explicit(&isMissing, memory_order_relaxed)) return -1;
    uint64_t resolve = folder == AT_FDCWD ? 0 : TERN_RESOLVE_NO_SYMLINKS | TERN_RESOLVE_BENEATH;
    struct tern_open_how how = {O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, resolve | TERN_RESOLVE_CACHED};
    int descriptor = (int)syscall(TERN_SYS_OPENAT2, folder, path, &how, sizeof how);
    if (descriptor < 0 && refuses_call()) atomic_store_explicit(&isMissing, 1, memory_order_relaxed);
    return descriptor;
}

ptrdiff_t tern_read_cached(int descriptor, void *buffer, size_t count, int64_t offset) {
    struct iovec part = {buffer, count};
    return syscall(SYS_preadv2, descriptor, &part, 1L, (long)offset, 0L, (long)TERN_RWF_NOWAIT);
}

#else

int tern_open_below(int folder, const char *path, int flags, unsigned mode) { return walk(folder, path, flags, mode); }

int tern_open_cached(int folder, const char *path) {
    (void)folder, (void)path;
    return -1;
}

ptrdiff_t tern_read_cached(int descriptor, void *buffer, size_t count, int64_t offset) {
    (void)descriptor, (void)buffer, (void)count, (void)offset;
    return -1;
}

#endif

int tern_open_folder_below(int folder, const char *path) { return tern_open_below(folder, path, TERN_FOLDER, 0); }

// SQLite's own files, except that the name of a database is used as it is given. SQLite would replace the name of a
// held folder by the path that the folder has at that moment.
static sqlite3_vfs held_files;

static int keep_name(sqlite3_vfs *files, const char *name, int count, char *full) {
    (void)files;
    size_t length = strlen(name);
    if (count <= 0 || length >= (size_t)count) return SQLITE_CANTOPEN;
    memcpy(full, name, length + 1);
    return SQLITE_OK;
}

static const char *held_name;

static void register_held_files(void) {
    sqlite3_vfs *files = sqlite3_vfs_find("unix");
    if (files == NULL) return;
    held_files = *files;
    held_files.pNext = NULL;
    held_files.zName = "tern-held";
    held_files.xFullPathname = keep_name;
    if (sqlite3_vfs_register(&held_files, 0) == SQLITE_OK) held_name = held_files.zName;
}

const char *tern_sqlite_held_files(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    // Registration needs the library to be initialized.
    if (sqlite3_initialize() != SQLITE_OK) return NULL;
    pthread_once(&once, register_held_files);
    return held_name;
}
