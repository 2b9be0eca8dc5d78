import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A limit on the speed of an exchange: the size of the pieces and the pauses between them.
struct Throttle {
    private let bytesPerSecond: Int
    private let start = ContinuousClock.now
    private var bytes = 0

    init(bytesPerSecond: Int) { self.bytesPerSecond = max(1, bytesPerSecond) }

    /// The bytes of a fiftieth of a second, so that a progress bar moves evenly.
    var piece: Int { max(1, min(256 << 10, bytesPerSecond / 50)) }

    /// Returns the milliseconds to wait after `count` more bytes; nil if their time has already passed.
    mutating func delay(after count: Int) -> Int? {
        bytes += count
        let due = start + .seconds(Double(bytes) / Double(bytesPerSecond))
        let left = due - ContinuousClock.now
        return left > .zero ? left.wholeMilliseconds : nil
    }
}

extension LoopbackServer.Exchange {
    /// Sends bytes exactly as given, in one system call: a head of any shape, an interim response, or a part of a
    /// chunk. The connection stays open after the response; `close()` or `closeAfterResponse()` ends it.
    public func write(_ bytes: some Collection<UInt8>) throws {
        hasWritten = true
        guard speedLimit != nil else { return try connection.send(bytes) }
        var rest = bytes[...]
        while let piece = speedLimit?.piece, !rest.isEmpty {
            let part = rest.prefix(piece)
            try connection.send(part)
            rest = rest.dropFirst(part.count)
            if let delay = speedLimit?.delay(after: part.count) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Sends a text exactly as given, including its line ends, in one system call.
    public func write(_ text: String) throws { try write(Array(text.utf8)) }

    /// Sends bytes in pieces, each after the client has read the previous one from its socket, so that the client's
    /// parser sees every split (see `waitUntilReceived()`).
    public func write(_ bytes: some Collection<UInt8>, inPiecesOf size: Int) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, size))
            try write(piece)
            rest = rest.dropFirst(piece.count)
            try waitUntilReceived()
        }
    }

    /// Sends a head with exactly these fields. It has a `Content-Length` only if the fields do.
    public func writeHead(status: Int = 200, headers: LoopbackServer.Fields = []) throws {
        try write(head(status: status, headers: headers))
    }

    /// Sends the head of a chunked response; `writeChunk(_:)` and `endChunks(trailers:)` follow.
    public func writeChunkedHead(status: Int = 200, headers: LoopbackServer.Fields = []) throws {
        try writeHead(status: status, headers: withConnection(headers + [("Transfer-Encoding", "chunked")]))
    }

    /// Sends one chunk with its framing, in one system call. Does not send an empty chunk, which would be the last one.
    public func writeChunk(_ bytes: some Collection<UInt8>) throws {
        if bytes.isEmpty { return }
        try write(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10])
    }

    /// Sends the last, empty chunk and the trailer fields.
    public func endChunks(trailers: LoopbackServer.Fields = []) throws {
        try write("0\r\n" + trailers.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
    }

    /// Answers with chunks, each sent separately.
    public func writeChunked(
        status: Int = 200, headers: LoopbackServer.Fields = [], chunks: [[UInt8]],
        trailers: LoopbackServer.Fields = []
    ) throws {
        try writeChunkedHead(status: status, headers: headers)
        for chunk in chunks { try writeChunk(chunk) }
        try endChunks(trailers: trailers)
    }

    /// Sends `count` zero bytes of a body whose head was sent. They are never held in memory.
    public func streamZeros(count: Int) throws {
        try stream(Self.zeros, from: 0, count: count, wrapsAt: Self.zeros.count)
    }

    /// Sends the bytes of a pattern, or of a range of it, as a body whose head was sent. They are never held in memory.
    public func streamPattern(_ pattern: LoopbackServer.Pattern, in range: Range<Int>? = nil) throws {
        let range = (range ?? 0..<pattern.count).clamped(to: 0..<pattern.count)
        let period = LoopbackServer.Pattern.period
        let start = pattern.position(of: range.lowerBound)
        try stream(LoopbackServer.Pattern.block, from: start, count: range.count, wrapsAt: period)
    }

    private static let zeros = [UInt8](repeating: 0, count: 256 << 10)

    /// Sends `count` bytes from `block`, which repeats every `period` bytes.
    private func stream(_ block: [UInt8], from start: Int, count: Int, wrapsAt period: Int) throws {
        hasWritten = true
        var (position, left) = (start, count)
        while left > 0 {
            let length = min(left, block.count - position, speedLimit?.piece ?? .max)
            try unsafe block.withUnsafeBytes { bytes in
                try unsafe connection.send(raw: .init(rebasing: bytes[position..<(position + length)]))
            }
            position = (position + length) % period
            left -= length
            if let delay = speedLimit?.delay(after: length) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Limits the speed of everything sent from now on, and of `drainBody()`; nil removes the limit.
    public func throttle(bytesPerSecond: Int?) { speedLimit = bytesPerSecond.map { Throttle(bytesPerSecond: $0) } }

    /// Ends the connection after this exchange; a complete response announces it with `Connection: close`.
    public func closeAfterResponse() { connection.isLast = true }

    /// Sends FIN now: the client sees the end of the stream after the bytes sent so far. Later writes throw.
    public func close() { connection.finish() }

    /// Sends RST now: the client sees a reset connection, possibly before the last bytes sent.
    public func reset() { connection.abort() }

    /// Blocks until the gate is open.
    ///
    /// - Throws: `Failure` if the client resets the connection or the server stops.
    public func wait(for gate: LoopbackServer.Gate) throws {
        if gate.isOpen { return }
        let pipe = try WakeupPipe()
        guard let place = gate.add(pipe) else { return }
        defer { gate.remove(pipe: place) }
        _ = try connection.wait(for: [pipe], milliseconds: -1)
    }

    /// Blocks for a duration in real time, for demonstrations; use a gate in tests.
    ///
    /// - Throws: `Failure` if the client resets the connection or the server stops.
    public func pause(for duration: Duration) throws {
        _ = try connection.wait(milliseconds: duration.wholeMilliseconds)
    }

    /// Blocks until the client has closed the connection, and discards the bytes it sends until then.
    public func waitForClientToClose() throws {
        connection.isLast = true
        while try connection.discard(upTo: 256 << 10) > 0 {}
    }
}

extension LoopbackServer.Exchange {
    /// Blocks until the client's program has read every sent byte from its socket, so that the next write is a separate
    /// read for the client.
    ///
    /// Linux reports the unread bytes of the client's socket. On other systems this is a pause of 2 ms, without a
    /// guarantee.
    ///
    /// - Throws: `Failure` if the client resets the connection, the server stops, or nothing is read for 30 seconds.
    public func waitUntilReceived() throws {
        #if os(Linux)
        let socket = connection.socket
        let sent = connection.sentBytes
        guard let reader = PeerSocket(of: socket) else {
            // The queue of a Unix-domain socket holds exactly the bytes that the client has not read.
            return try waitUntil {
                var pending: Int32 = 0
                return unsafe ioctl(socket, UInt(TIOCOUTQ), &pending) != 0 || pending == 0
            }
        }
        try waitUntil {
            guard let counts = reader.receivedBytes else { return true }
            return counts.receivedBytes >= sent && counts.unreadBytes == 0
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
