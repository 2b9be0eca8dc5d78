// Datagrams in batches: several of one size in one system call, with the two bits of ECN (RFC 3168).
#ifndef CTERNDATAGRAMS_H
#define CTERNDATAGRAMS_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>

/// Lets the system join received datagrams and report their ECN bits, and never fragment sent ones. Returns 0, or −1 with
/// errno if datagrams could be fragmented; without the other options, a socket works more slowly.
int tern_datagrams_prepare(int socket, int is_ipv6);

/// Receives one or more datagrams of one sender into `bytes`, of at least 64 KiB. `segment` becomes the size of each; the last
/// one may be shorter. Returns the number of bytes, or −1 with errno.
ptrdiff_t tern_datagrams_receive(int socket, uint8_t *bytes, size_t capacity, size_t *segment, uint8_t *ecn);

/// Sends datagrams of `segment` bytes each, the last of which may be shorter, over a connected socket. Returns the number of
/// bytes that were taken, a multiple of `segment` or all, or −1 with errno if none was. `uses_segments` is set to 0 when the
/// system cannot send several in one call, and then says so for the next call.
ptrdiff_t tern_datagrams_send(
    int socket, int is_ipv6, const uint8_t *bytes, size_t length, size_t segment, uint8_t ecn, int *uses_segments);

#endif
#endif
