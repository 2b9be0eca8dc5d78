// Functions of Linux that the event loop needs and Swift cannot call itself, or not without a copy of a union.
#ifndef CTERNLOOP_H
#define CTERNLOOP_H

#include "CTernDatagrams.h"
#include "CTernPipeSignal.h"
#include "CTernSemaphore.h"

#if defined(__linux__)

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/// Registers, changes or removes `fd`. `operation` is EPOLL_CTL_ADD, _MOD or _DEL. Each event of `fd` carries `data`.
/// Returns 0 or the error number.
int tern_loop_control(int epoll, int operation, int fd, uint32_t events, uint64_t data);

/// The number that was registered with the descriptor of an event.
static inline uint64_t tern_loop_event_data(const struct epoll_event *event) { return event->data.u64; }

/// Sets the calling thread's name, at most 15 bytes.
void tern_loop_name_thread(const char *name);

/// Lets glibc keep up to 2 MiB of free memory at the top of each heap. glibc does so by itself once a program has freed
/// a block of 1 MiB. Until then, every burst of frees on the loop returns pages that the next turn faults in again.
void tern_loop_keep_heap(void);

/// Sends up to `count` bytes of `file`, from `offset` on, over `socket`. Returns the number of bytes, 0 at the end of the
/// file, or −1 with errno. A socket that was closed raises no SIGPIPE, also if the peer closes it after the first bytes.
int64_t tern_loop_send_file(int socket, int file, int64_t offset, int64_t count);

/// Returns the calling thread's CPU time in microseconds.
int64_t tern_loop_thread_microseconds(void);

#endif
#endif
