import Synchronization

/// A limit on the speed of an exchange: the pieces it comes in and the pauses between them.
struct Pace {
    private let bytesPerSecond: Int
    private let start = ContinuousClock.now
    private var bytes = 0

    init(bytesPerSecond: Int) { self.bytesPerSecond = max(1, bytesPerSecond) }

    /// A fiftieth of a second's bytes, so that a progress bar moves evenly.
    var piece: Int { max(1, min(256 << 10, bytesPerSecond / 50)) }

    /// Milliseconds to wait after `count` more bytes; nil when the time for them is over already.
    mutating func delay(after count: Int) -> Int? {
        bytes += count
        let due = start + .seconds(Double(bytes) / Double(bytesPerSecond))
        let left = due - ContinuousClock.now
        return left > .zero ? left.wholeMilliseconds : nil
    }
}

extension LoopbackServer.Exchange {
    /// Sends bytes exactly as given, in one call to the system: a head of any shape, an interim response, a part of a
    /// chunk. After an answer made of these the connection stays open; `close()` or `closeAfterResponse()` ends it.
    public func write(_ bytes: some Collection<UInt8>) throws {
        hasWritten = true
        guard pace != nil else { return try connection.send(bytes) }
        var rest = bytes[...]
        while let piece = pace?.piece, !rest.isEmpty {
            let part = rest.prefix(piece)
            try connection.send(part)
            rest = rest.dropFirst(part.count)
            if let delay = pace?.delay(after: part.count) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Sends a text exactly as given, in one call to the system; line ends are the caller's.
    public func write(_ text: String) throws { try write(Array(text.utf8)) }

    /// Sends bytes in pieces, each only when the client has taken the one before out of its socket: the client's parser
    /// really sees every split (see `waitUntilReceived()`).
    public func write(_ bytes: some Collection<UInt8>, inPiecesOf size: Int) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, size))
            try write(piece)
            rest = rest.dropFirst(piece.count)
            try waitUntilReceived()
        }
    }

    /// Sends a head with exactly these fields: without a `Content-Length`, unless it stands among them.
    public func writeHead(status: Int = 200, headers: LoopbackServer.Fields = []) throws {
        try write(head(status: status, headers: headers))
    }

    /// Sends the head of an answer in chunks; `writeChunk(_:)` and `endChunks(trailers:)` follow.
    public func writeChunkedHead(status: Int = 200, headers: LoopbackServer.Fields = []) throws {
        try writeHead(status: status, headers: withConnection(headers + [("Transfer-Encoding", "chunked")]))
    }

    /// Sends one chunk with its framing, in one call to the system. An empty one is not sent: it would be the last.
    public func writeChunk(_ bytes: some Collection<UInt8>) throws {
        if bytes.isEmpty { return }
        try write(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10])
    }

    /// Sends the last, empty chunk, and trailer fields.
    public func endChunks(trailers: LoopbackServer.Fields = []) throws {
        try write("0\r\n" + trailers.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
    }

    /// Answers with these chunks, each sent on its own.
    public func writeChunked(
        status: Int = 200, headers: LoopbackServer.Fields = [], chunks: [[UInt8]],
        trailers: LoopbackServer.Fields = []
    ) throws {
        try writeChunkedHead(status: status, headers: headers)
        for chunk in chunks { try writeChunk(chunk) }
        try endChunks(trailers: trailers)
    }

    /// Sends `count` zero bytes of a body whose head is written; they are never held in memory.
    public func streamZeros(count: Int) throws {
        try stream(Self.zeros, from: 0, count: count, wrapsAt: Self.zeros.count)
    }

    /// Sends the bytes of a pattern, or of a range of it, as a body whose head is written; memory never holds them.
    public func streamPattern(_ pattern: LoopbackServer.Pattern, in range: Range<Int>? = nil) throws {
        let range = (range ?? 0..<pattern.count).clamped(to: 0..<pattern.count)
        let period = LoopbackServer.Pattern.period
        let start = pattern.position(of: range.lowerBound)
        try stream(LoopbackServer.Pattern.block, from: start, count: range.count, wrapsAt: period)
    }

    private static let zeros = [UInt8](repeating: 0, count: 256 << 10)

    /// Sends `count` bytes out of `block`, which repeats itself every `period` bytes.
    private func stream(_ block: [UInt8], from start: Int, count: Int, wrapsAt period: Int) throws {
        hasWritten = true
        var (position, left) = (start, count)
        while left > 0 {
            let length = min(left, block.count - position, pace?.piece ?? .max)
            try unsafe block.withUnsafeBytes { bytes in
                try unsafe connection.send(raw: .init(rebasing: bytes[position..<(position + length)]))
            }
            position = (position + length) % period
            left -= length
            if let delay = pace?.delay(after: length) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Limits the speed of everything sent from here on, and of `drainBody()`; nil lifts the limit.
    public func throttle(bytesPerSecond: Int?) { pace = bytesPerSecond.map { Pace(bytesPerSecond: $0) } }

    /// Ends the connection after this exchange; a complete answer says so by `Connection: close`.
    public func closeAfterResponse() { connection.isLast = true }

    /// Sends FIN now: the client sees the end of the stream after what was written. Writing on throws.
    public func close() { connection.finish() }

    /// Sends RST now: the client sees its connection reset, maybe before what was written last.
    public func reset() { connection.abort() }

    /// Blocks until the gate is open.
    /// - Throws: `Failure` when the client resets the connection or the server stops meanwhile.
    public func wait(for gate: LoopbackServer.Gate) throws {
        if gate.isOpen { return }
        let bell = try Bell()
        guard let place = gate.add(bell) else { return }
        defer { gate.remove(bell: place) }
        _ = try connection.wait(for: [bell], milliseconds: -1)
    }

    /// Blocks for a while, in real time: for demonstrations; tests use a gate.
    /// - Throws: `Failure` when the client resets the connection or the server stops meanwhile.
    public func pause(for duration: Duration) throws {
        _ = try connection.wait(milliseconds: duration.wholeMilliseconds)
    }

    /// Blocks until the client has ended the connection, and forgets what it sends until then.
    public func waitForClientToClose() throws {
        connection.isLast = true
        while try connection.discard(upTo: 256 << 10) > 0 {}
    }
}
