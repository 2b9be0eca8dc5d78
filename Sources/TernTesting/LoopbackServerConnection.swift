import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One client's connection, on its own thread: bytes in through a buffer, bytes out directly, one request after
/// another.
final class LoopbackConnection {
    typealias Failure = LoopbackServer.Failure

    static let smallBuffer = 16 << 10
    static let bulkBuffer = 256 << 10
    static let longestHead = 1 << 20

    let link: LoopbackCore.Link
    let core: LoopbackCore
    var input = [UInt8](repeating: 0, count: smallBuffer)
    /// What was received and not yet used: `input[start..<end]`.
    var start = 0
    var end = 0
    var requestCount = 0
    private(set) var sentBytes: UInt64 = 0
    /// Set when no further request may follow.
    var isLast = false
    /// Set once FIN or RST has been asked for.
    private(set) var isEnded = false
    /// The descriptor is closed: its number may be somebody else's by now.
    private var isAborted = false

    var socket: Int32 { link.socket.number }

    init(_ link: LoopbackCore.Link, core: LoopbackCore) {
        self.link = link
        self.core = core
    }

    /// The life of a connection: request, handler, what is left of the body, and again.
    func serve(_ handler: LoopbackServer.Handler) {
        do {
            while !isLast, let request = try readRequest() {
                let exchange = LoopbackServer.Exchange(request, on: self, serial: core.received(request))
                exchange.run(handler)
                core.counters.served.wrappingAdd(1, ordering: .sequentiallyConsistent)
                core.countsChanged()
                shrinkInput()
            }
            end(mayHaveUnreadInput: start < end || isLast)
        } catch {
            end(mayHaveUnreadInput: true)
        }
    }

    func send(_ bytes: some Collection<UInt8>) throws(Failure) {
        let sent: Void? =
            try Self.typed {
                try bytes.withContiguousStorageIfAvailable { try unsafe send(raw: UnsafeRawBufferPointer($0)) }
            }
        if sent == nil { try send(Array(bytes)) }
    }

    func send(raw bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard !isEnded else { throw .connection("the handler has ended the connection") }
        try unsafe System.sendAll(socket, bytes)
        sentBytes += UInt64(bytes.count)
        core.counters.bytesOut.wrappingAdd(bytes.count, ordering: .sequentiallyConsistent)
        core.countsChanged()
    }

    /// The standard library's `rethrows` loses the type of the error.
    private static func typed<Value>(_ body: () throws -> Value) throws(Failure) -> Value {
        do { return try body() } catch { throw error as? Failure ?? .connection("sending failed") }
    }

    // MARK: Waiting and ending

    /// Sleeps until one of `bells` rings or the time is over; throws when the connection is lost or stopped.
    /// - Returns: whether a bell rang.
    func wait(for bells: [Bell] = [], milliseconds: Int) throws(Failure) -> Bool {
        guard !isEnded else { throw .connection("the handler has ended the connection") }
        let seen = try System.wait([(socket, 0)] + bells.map { ($0.descriptor, 0) }, milliseconds: milliseconds)
        if seen[0] != 0 { throw .connection("the connection ended while the handler waited") }
        return seen.dropFirst().contains { $0 != 0 }
    }

    func finish() {
        isLast = true
        isEnded = true
        link.socket.endWriting()
    }

    func abort() {
        isLast = true
        isEnded = true
        isAborted = true
        link.socket.abort()
    }

    /// Sends FIN and closes. A close with unread bytes would be a reset, which could destroy the answer on its way: so
    /// what still comes is drained first, for a second and for 64 MiB at most.
    private func end(mayHaveUnreadInput: Bool) {
        if isAborted { return }
        finish()
        guard mayHaveUnreadInput else { return }
        let deadline = ContinuousClock.now + .seconds(1)
        var left = 64 << 20
        (start, end) = (0, 0)
        // `try?`: the connection is at its end, and a failure here only ends it sooner.
        while left > 0, (deadline - ContinuousClock.now) > .zero,
            let seen = try? System.wait([(socket, Int32(POLLIN))], milliseconds: 1_000), seen != [0],
            let count = try? discard(upTo: min(left, Self.bulkBuffer)), count > 0
        {
            left -= count
        }
    }
}
