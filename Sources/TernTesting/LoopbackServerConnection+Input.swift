import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bytes in: from the socket through the buffer to whoever reads heads, lines and bodies.
extension LoopbackConnection {
    /// The next request's head; nil when the client has ended the connection.
    func readRequest() throws(Failure) -> LoopbackServer.Request? {
        setIdle(true)
        defer { setIdle(false) }
        while true {
            // RFC 9112, section 2.2: empty lines before a request line are skipped.
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

    /// Receives more behind what is there; false at the client's FIN.
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
        received(count)
        return count > 0
    }

    private func received(_ count: Int) {
        core.counters.bytesIn.wrappingAdd(count, ordering: .sequentiallyConsistent)
        core.countsChanged()
    }

    /// Up to `limit` bytes, at least one; nil at the client's FIN. The slice shares the buffer's storage: a caller that
    /// lets go of it before the next call costs no copy.
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

    /// Throws away up to `limit` bytes, at least one; 0 at the client's FIN.
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
        received(count)
        return count
    }

    /// A line without its end; nil at the client's FIN.
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

    func shrinkInput() {
        if input.count > Self.smallBuffer, start == end { input = [UInt8](repeating: 0, count: Self.smallBuffer) }
    }

    private func setIdle(_ isIdle: Bool) {
        guard link.isIdle.exchange(isIdle, ordering: .sequentiallyConsistent) != isIdle else { return }
        core.counters.idle.wrappingAdd(isIdle ? 1 : -1, ordering: .sequentiallyConsistent)
        core.countsChanged()
    }
}
