#include "CTernDatagrams.h"

#if defined(__linux__)
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

// The headers of older systems lack these numbers.
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

int tern_datagrams_prepare(int socket, int is_ipv6) {
    int yes = 1, large = 2 << 20;
    // A datagram that is too large for the path is lost, which tells the path's limit (RFC 9000 §14).
    int probe = is_ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
    int failed = is_ipv6 ? setsockopt(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe)
                         : setsockopt(socket, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    if (failed) return -1;
    if (is_ipv6) (void)setsockopt(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, &yes, sizeof yes);
    else (void)setsockopt(socket, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes);
    (void)setsockopt(socket, IPPROTO_UDP, UDP_GRO, &yes, sizeof yes);
    // The system takes as much of it as it allows.
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    return 0;
}

ptrdiff_t tern_datagrams_receive(int socket, uint8_t *bytes, size_t capacity, size_t *segment, uint8_t *ecn) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int)) * 4];
    } control;
    struct iovec piece = {bytes, capacity};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count;
    do count = recvmsg(socket, &message, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0) return -1;
    *segment = (size_t)count;
    *ecn = 0;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_GRO) {
            int size = 0;
            memcpy(&size, CMSG_DATA(each), sizeof size);
            if (size > 0 && (size_t)size < *segment) *segment = (size_t)size;
        } else if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TOS) {
            *ecn = *(const uint8_t *)CMSG_DATA(each) & 3;
        } else if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_TCLASS) {
            int class = 0;
            memcpy(&class, CMSG_DATA(each), sizeof class);
            *ecn = class & 3;
        }
    }
    return count;
}

static ssize_t send_batch(
    int socket, int is_ipv6, const uint8_t *bytes, size_t length, size_t segment, uint8_t ecn) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec piece = {(uint8_t *)bytes, length};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *each = CMSG_FIRSTHDR(&message);
    size_t used = 0;
    if (ecn) {
        int class = ecn;
        each->cmsg_level = is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
        each->cmsg_type = is_ipv6 ? IPV6_TCLASS : IP_TOS;
        each->cmsg_len = CMSG_LEN(sizeof class);
        memcpy(CMSG_DATA(each), &class, sizeof class);
        used += CMSG_SPACE(sizeof class);
        each = CMSG_NXTHDR(&message, each);
    }
    if (length > segment) {
        uint16_t size = (uint16_t)segment;
        each->cmsg_level = IPPROTO_UDP;
        each->cmsg_type = UDP_SEGMENT;
        each->cmsg_len = CMSG_LEN(sizeof size);
        memcpy(CMSG_DATA(each), &size, sizeof size);
        used += CMSG_SPACE(sizeof size);
    }
    message.msg_controllen = used;
    if (!used) message.msg_control = NULL;
    ssize_t count;
    do count = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (count < 0 && errno == EINTR);
    // Larger than the path takes: lost, like any other.
    if (count < 0 && errno == EMSGSIZE && length <= segment) return (ssize_t)length;
    return count;
}

ptrdiff_t tern_datagrams_send(
    int socket, int is_ipv6, const uint8_t *bytes, size_t length, size_t segment, uint8_t ecn, int *uses_segments) {
    if (segment == 0 || length <= segment || *uses_segments) {
        ssize_t count = send_batch(socket, is_ipv6, bytes, length, segment ? segment : length, ecn);
        bool lacksSegments = count < 0 && length > segment && (errno == EIO || errno == EINVAL || errno == EMSGSIZE);
        if (!lacksSegments) return count;
        // A device without checksums, or a system before 4.18.
        *uses_segments = 0;
    }
    size_t taken = 0;
    while (taken < length) {
        size_t size = length - taken < segment ? length - taken : segment;
        ssize_t count = send_batch(socket, is_ipv6, bytes + taken, size, size, ecn);
        if (count < 0) return taken ? (ssize_t)taken : -1;
        taken += size;
    }
    return (ssize_t)taken;
}
#endif
