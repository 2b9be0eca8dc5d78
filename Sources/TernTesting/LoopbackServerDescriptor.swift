import Synchronization
import Tern
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A descriptor that its owner closes once, while another thread may end what it does: under one lock, so that a
/// number that the system has given to somebody else is never shut down or closed.
final class OwnedDescriptor: Sendable {
    let number: Int32
    private let isOpen = Lock(true)

    init(_ number: Int32) { self.number = number }

    deinit { close() }

    func close() {
        isOpen.withLock { isOpen in
            if isOpen { System.close(number) }
            isOpen = false
        }
    }

    /// Wakes whoever blocks on this socket, and sends FIN.
    func endBothWays() { endIfOpen(Int32(SHUT_RDWR)) }

    func endWriting() { endIfOpen(Int32(SHUT_WR)) }

    /// Makes the close an abort: with a lingering time of zero TCP drops what is queued and sends RST.
    func abort() {
        isOpen.withLock { isOpen in
            guard isOpen else { return }
            var linger = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            System.close(number)
            isOpen = false
        }
    }

    private func endIfOpen(_ direction: Int32) {
        isOpen.withLock { isOpen in
            // Fails with ENOTCONN when the peer has reset the connection: then there is nothing to end.
            if isOpen { _ = shutdown(number, direction) }
        }
    }
}
