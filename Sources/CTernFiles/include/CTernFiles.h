// The calls on files that Swift cannot make itself. Empty on other systems than Linux.
#ifndef CTERNFILES_H
#define CTERNFILES_H

#if defined(__linux__)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Reads the part of a file that is in memory: in the page cache, or in a tmpfs, which does not support RWF_NOWAIT and
/// has no disk. Returns −1 if the read would wait for a disk, or if the system cannot tell.
int64_t tern_read_in_memory(int fd, void *bytes, size_t count, int64_t offset);

/// Returns `count` if that many bytes from `offset` on are in the page cache, and 0 if any is not, or if the system cannot
/// tell (before Linux 6.5, or for a file that the caller may not write).
int64_t tern_count_in_memory(int fd, int64_t offset, int64_t count);

/// Finds the time at which a file was created. Returns false if the file system does not know it.
bool tern_birth_time(const char *path, int64_t *seconds, int64_t *nanoseconds);

/// Renames a file if nothing is at the destination, in one step. Returns 0 or the error number: EEXIST if something is there, EINVAL
/// or ENOSYS if the file system or the kernel cannot do so.
int tern_rename_if_absent(const char *path, const char *destination);

/// Reserves disk space for the first `length` bytes of a file without changing its length. Returns 0 or the error number: EOPNOTSUPP if the file
/// system cannot do so.
int tern_reserve_space(int fd, int64_t length);

/// Opens a pipe that holds at least `capacity` bytes. Both ends are non-blocking and closed on exec. Returns false if the system has
/// no room for it.
bool tern_open_pipe(int *read_end, int *write_end, int capacity);

/// Moves up to `count` bytes from one descriptor to another, of which at least one is a pipe, without copying them through the
/// memory of the process. Returns the number of bytes, 0 at the end, or −1 with errno: EAGAIN if nothing can be moved now, EINVAL
/// if the system cannot move bytes between these descriptors. A pipe that has no reader raises no SIGPIPE.
int64_t tern_move_bytes(int from, int to, size_t count);

#endif
#endif
