import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One connection of a client, on its own thread. It reads through a buffer, writes directly, and serves one request
/// after another.
final class LoopbackConnection {
    typealias Failure = LoopbackServer.Failure

    static let smallBuffer = 16 << 10
    static let bulkBuffer = 256 << 10
    static let longestHead = 1 << 20

    let link: LoopbackCore.Link
    let core: LoopbackCore
    var input = [UInt8](repeating: 0, count: smallBuffer)
    /// The start of the unread bytes: `input[start..<end]`.
    var start = 0
    var end = 0
    var requestCount = 0
    private(set) var sentBytes: UInt64 = 0
    /// Whether no further request may follow.
    var isLast = false
    /// Whether FIN or RST was requested.
    private(set) var isEnded = false
    /// Whether the descriptor is closed. The system may have reused its number.
    private var isAborted = false

    var socket: Int32 { link.socket.number }

    init(_ link: LoopbackCore.Link, core: LoopbackCore) {
        self.link = link
        self.core = core
    }

    /// Serves requests until the connection ends: reads a request, calls the handler, and reads the rest of the body.
    func serve(_ handler: LoopbackServer.Handler) {
        do {
            while !isLast, let request = try readRequest() {
                let exchange = LoopbackServer.Exchange(request, on: self, logged: core.log(request))
                exchange.run(handler)
                core.counters.served.wrappingAdd(1, ordering: .sequentiallyConsistent)
                core.countsChanged()
                shrinkBuffer()
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

    /// Keeps the type of the error, which the standard library's `rethrows` loses.
    private static func typed<Value>(_ body: () throws -> Value) throws(Failure) -> Value {
        do { return try body() } catch { throw error as? Failure ?? .connection("sending failed") }
    }

    // MARK: Waiting and ending

    /// Waits until a pipe is signalled or the time has passed; throws if the connection is lost or stopped.
    ///
    /// - Returns: Whether a pipe was signalled.
    func wait(for pipes: [WakeupPipe] = [], milliseconds: Int) throws(Failure) -> Bool {
        guard !isEnded else { throw .connection("the handler has ended the connection") }
        let seen = try System.wait([(socket, 0)] + pipes.map { ($0.descriptor, 0) }, milliseconds: milliseconds)
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

    /// Sends FIN and closes. Closing with unread bytes would send a reset, which could destroy the response in transit.
    /// The connection therefore first drains at most 64 MiB for at most one second.
    private func end(mayHaveUnreadInput: Bool) {
        if isAborted { return }
        finish()
        guard mayHaveUnreadInput else { return }
        let deadline = ContinuousClock.now + .seconds(1)
        var left = 64 << 20
        (start, end) = (0, 0)
        // `try?`: the connection ends, and a failure only ends it earlier.
        while left > 0, (deadline - ContinuousClock.now) > .zero,
            let seen = try? System.wait([(socket, Int32(POLLIN))], milliseconds: 1_000), seen != [0],
            let count = try? discard(upTo: min(left, Self.bulkBuffer)), count > 0
        {
            left -= count
        }
    }
}

/// Input: from the socket through the buffer to the readers of heads, lines and bodies.
extension LoopbackConnection {
    /// Returns the head of the next request; nil if the client has closed the connection.
    func readRequest() throws(Failure) -> LoopbackServer.Request? {
        setIdle(true)
        defer { setIdle(false) }
        while true {
            // Skips empty lines before a request line (RFC 9112, section 2.2).
            while start < end, input[start] == 13 || input[start] == 10 { start += 1 }
            if let headEnd = endOfHead() {
                let head = Array(input[start..<headEnd])
                start = headEnd
                guard
                    let request = LoopbackServer.Request(
                        rawHead: head, connectionIndex: link.index, requestIndex: requestCount)
                else { return try refuse(status: "400 Bad Request") }
                requestCount += 1
                return request
            }
            if end - start > Self.longestHead { return try refuse(status: "431 Request Header Fields Too Large") }
            guard try fill() else { return nil }
            if link.isIdle.load(ordering: .relaxed) { setIdle(false) }
        }
    }

    private func refuse(status: String) throws(Failure) -> LoopbackServer.Request? {
        isLast = true
        try send(Array("HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        return nil
    }

    private func endOfHead() -> Int? {
        unsafe input.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var position = start
            while position < end, let hit = unsafe memchr(base + position, 10, end - position) {
                position = unsafe UnsafeRawPointer(hit) - base + 1
                if position < end, unsafe bytes[position] == 10 { return position + 1 }
                if position + 1 < end, unsafe bytes[position] == 13 && bytes[position + 1] == 10 { return position + 2 }
            }
            return nil
        }
    }

    /// Receives more bytes into the buffer; returns false at the client's FIN.
    private func fill() throws(Failure) -> Bool {
        if start == end { (start, end) = (0, 0) }
        if end == input.count {
            if start > 0 {
                input.replaceSubrange(0..<(end - start), with: Array(input[start..<end]))
                (start, end) = (0, end - start)
            } else {
                input.append(contentsOf: repeatElement(0, count: input.count))
            }
        }
        let from = end
        let socket = socket
        let count: Int
        do {
            count = try unsafe input.withUnsafeMutableBytes { bytes in
                try unsafe System.receive(socket, into: UnsafeMutableRawBufferPointer(rebasing: bytes[from...]))
            }
        } catch { throw error as? Failure ?? .connection("receiving failed") }
        end += count
        countReceived(count)
        return count > 0
    }

    private func countReceived(_ count: Int) {
        core.counters.bytesIn.wrappingAdd(count, ordering: .sequentiallyConsistent)
        core.countsChanged()
    }

    /// Returns at most `limit` bytes and at least one; nil at the client's FIN. The slice shares the buffer: a caller
    /// that releases it before the next call causes no copy.
    func take(upTo limit: Int) throws(Failure) -> ArraySlice<UInt8>? {
        if start == end {
            if limit > Self.smallBuffer, input.count < Self.bulkBuffer {
                input = [UInt8](repeating: 0, count: Self.bulkBuffer)
            }
            guard try fill() else { return nil }
        }
        let slice = input[start..<min(end, start + limit)]
        start = slice.endIndex
        return slice
    }

    /// Discards at most `limit` bytes and at least one; returns 0 at the client's FIN.
    func discard(upTo limit: Int) throws(Failure) -> Int {
        if start < end {
            let count = min(limit, end - start)
            start += count
            return count
        }
        let socket = socket
        let count: Int
        do {
            count = try unsafe input.withUnsafeMutableBytes { bytes in
                try unsafe System.discard(socket, scratch: bytes, limit: limit)
            }
        } catch { throw error as? Failure ?? .connection("receiving failed") }
        countReceived(count)
        return count
    }

    /// Returns a line without its end; nil at the client's FIN.
    func takeLine(limit: Int = 16 << 10) throws(Failure) -> ArraySlice<UInt8>? {
        while true {
            if let newline = input[start..<end].firstIndex(of: 10) {
                let line = input[start..<newline]
                start = newline + 1
                return line.last == 13 ? line.dropLast() : line
            }
            if end - start > limit { throw Failure("a line of the body's framing is too long") }
            guard try fill() else { return nil }
        }
    }

    func shrinkBuffer() {
        if input.count > Self.smallBuffer, start == end { input = [UInt8](repeating: 0, count: Self.smallBuffer) }
    }

    private func setIdle(_ isIdle: Bool) {
        guard link.isIdle.exchange(isIdle, ordering: .sequentiallyConsistent) != isIdle else { return }
        core.counters.idle.wrappingAdd(isIdle ? 1 : -1, ordering: .sequentiallyConsistent)
        core.countsChanged()
    }
}
