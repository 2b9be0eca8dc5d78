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
        guard let ends = try? LoopbackListener.endpoints(of: connection.socket), ends.peer != 0 else {
            return try waitUntilUnixPeerReceived()  // `try?`: a Unix-domain socket has no ports
        }
        let queue = ReceiveQueue(isIPv6: connection.core.isIPv6, client: ends.peer, server: ends.local)
        try waitUntil { queue.isEmpty }
        #else
        try pause(for: .milliseconds(2))
        #endif
    }

    #if os(Linux)
    private func waitUntilUnixPeerReceived() throws {
        let socket = connection.socket
        try waitUntil {
            // For a Unix-domain socket this is what the peer has not read yet.
            var pending: Int32 = 0
            return unsafe ioctl(socket, UInt(TIOCOUTQ), &pending) != 0 || pending == 0
        }
    }

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

#if os(Linux)
/// What a client's socket on this machine holds unread, by the kernel's table of TCP sockets.
private struct ReceiveQueue {
    private let table: String
    private let client: String
    private let server: String

    init(isIPv6: Bool, client: Int, server: Int) {
        table = isIPv6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp"
        self.client = Self.suffix(client)
        self.server = Self.suffix(server)
    }

    private static func suffix(_ port: Int) -> String {
        let digits = String(port, radix: 16, uppercase: true)
        return ":" + String(repeating: "0", count: 4 - digits.count) + digits
    }

    /// Also true when the client's socket is gone. Bytes on their way stand in the queue of the server's socket.
    var isEmpty: Bool {
        for line in contents.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard fields.count > 4 else { continue }
            let isClient = ends(fields[1], client) && ends(fields[2], server)
            let isServer = ends(fields[1], server) && ends(fields[2], client)
            let queues = fields[4].split(separator: UInt8(ascii: ":"))
            guard isClient || isServer, queues.count == 2 else { continue }
            if queues[isClient ? 1 : 0].contains(where: { $0 != UInt8(ascii: "0") }) { return false }
        }
        return true
    }

    private func ends(_ field: ArraySlice<UInt8>, _ suffix: String) -> Bool {
        field.suffix(5).elementsEqual(suffix.utf8)
    }

    private var contents: [UInt8] {
        let file = unsafe open(table, O_RDONLY)
        guard file >= 0 else { return [] }
        defer { System.close(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = unsafe read(file, &block, block.count)
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: block[..<count])
        }
    }
}
#endif
