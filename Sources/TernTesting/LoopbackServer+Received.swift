#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension LoopbackServer.Exchange {
    /// Blocks until the client's program has taken every byte that was sent out of its socket: what is written next is
    /// then a read of its own for the client.
    ///
    /// Linux tells how much the client's socket holds unread. Elsewhere this is a pause of 2 ms, and no promise.
    /// - Throws: `Failure` when the client resets the connection, the server stops, or nothing is read for 30 seconds.
    public func waitUntilReceived() throws {
        #if os(Linux)
        let socket = connection.socket
        let sent = connection.sentBytes
        guard let reader = PeerSocket(of: socket) else {
            // A Unix-domain socket's own queue is what the client has not read.
            return try waitUntil {
                var pending: Int32 = 0
                return unsafe ioctl(socket, UInt(TIOCOUTQ), &pending) != 0 || pending == 0
            }
        }
        try waitUntil {
            guard let receipt = reader.receipt else { return true }
            return receipt.receivedBytes >= sent && receipt.unreadBytes == 0
        }
        #else
        try pause(for: .milliseconds(2))
        #endif
    }

    #if os(Linux)
    private func waitUntil(_ condition: () -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(30)
        var turns = 0
        while !condition() {
            if ContinuousClock.now > deadline { throw LoopbackServer.Failure("the client did not read what was sent") }
            turns += 1
            if turns < 20 { sched_yield() } else { _ = try connection.wait(milliseconds: 1) }
        }
    }
    #endif
}
