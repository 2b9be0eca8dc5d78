#define _GNU_SOURCE
#include "CTernFiles.h"

#if defined(__linux__)
#include "CTernPipeSignal.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

int64_t tern_read_in_memory(int fd, void *bytes, size_t count, int64_t offset) {
    struct iovec part = { bytes, count };
    ssize_t got = preadv2(fd, &part, 1, offset, RWF_NOWAIT);
    if (got >= 0 || errno != EOPNOTSUPP) { return got; }
    struct statfs system;
    if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) { return -1; }
    return pread(fd, bytes, count, offset);
}

// cachestat, which the headers of the lowest supported systems do not name. The number is that of all processors.
#define TERN_CACHESTAT 451

int64_t tern_count_in_memory(int fd, int64_t offset, int64_t count) {
    struct { uint64_t offset, length; } range = { (uint64_t)offset, (uint64_t)count };
    struct { uint64_t cached, dirty, writeback, evicted, recently_evicted; } pages = { 0 };
    if (count <= 0 || syscall(TERN_CACHESTAT, fd, &range, &pages, 0) != 0) { return 0; }
    int64_t size = sysconf(_SC_PAGESIZE);
    int64_t needed = (offset + count - 1) / size - offset / size + 1;
    return pages.cached >= (uint64_t)needed ? count : 0;
}

int tern_rename_if_absent(const char *path, const char *destination) {
    // RENAME_NOREPLACE, which not every C library names.
    return syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, destination, 1u) == 0 ? 0 : errno;
}

bool tern_birth_time(const char *path, int64_t *seconds, int64_t *nanoseconds) {
    struct statx information;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &information) != 0) { return false; }
    if ((information.stx_mask & STATX_BTIME) == 0) { return false; }
    *seconds = information.stx_btime.tv_sec;
    *nanoseconds = information.stx_btime.tv_nsec;
    return true;
}

int tern_reserve_space(int fd, int64_t length) {
    while (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, length) != 0) {
        if (errno != EINTR) { return errno; }
    }
    return 0;
}

bool tern_open_pipe(int *read_end, int *write_end, int capacity) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) { return false; }
    if (fcntl(ends[1], F_SETPIPE_SZ, capacity) < capacity) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    *read_end = ends[0];
    *write_end = ends[1];
    return true;
}

int64_t tern_move_bytes(int from, int to, size_t count) {
    struct tern_pipe_signal before;
    if (!tern_pipe_signal_hold(&before)) { return -1; }
    int64_t moved = splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    tern_pipe_signal_release(&before);
    return moved;
}
#else
// An empty translation unit on other systems.
typedef int tern_files_is_linux_only;
#endif
