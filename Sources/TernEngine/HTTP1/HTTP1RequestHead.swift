/// The head of one request over HTTP/1, without the fields that many requests share.
package struct HTTP1RequestHead: Sendable {
    /// The framing of the body.
    package enum Framing: Sendable, Equatable {
        /// The request has no body.
        case none
        case length(Int64)
        /// The length is not known.
        case chunked

        /// The body that is framed so.
        var body: RequestBody {
            switch self {
            case .none: .none
            case .length(let count): .length(count)
            case .chunked: .stream
            }
        }
    }

    /// A token, such as `GET`.
    package var method: String
    /// The target in origin form (`/path?query`), in absolute form for a proxy, or `host:port` for CONNECT
    /// (RFC 9112 §3.2).
    package var target: String
    /// The number of bytes of `target` before the target itself.
    var targetStart = 0
    /// The value of Host, used if the fields have none.
    package var authority: String
    package var framing: Framing
    /// Whether Proxy-Authorization is left out, because the recipient is not a proxy.
    package var dropsProxyAuthorization = true
    /// The protocol that the request asks for with Upgrade (RFC 9110 §7.8); nil for none.
    package var upgrade: String?
}

extension HTTP1RequestHead {
    package init(method: String, target: String, authority: String, framing: Framing) {
        self.init(method: method, target: target, targetStart: 0, authority: authority, framing: framing)
    }

    /// Appends the head, with the empty line at its end. Throws `.invalidRequest`, and appends nothing, if a part
    /// cannot be sent or the fields contradict the framing.
    package func write(_ fields: RequestFields, into buffer: inout [UInt8]) throws(EngineError) {
        try fields.check(against: framing.body)
        if let upgrade { try check(upgrade) }
        let start = buffer.count
        var isValid = Self.append(method, to: &buffer) { HTTPBytes.isToken($0) }
        buffer.append(0x20)
        isValid = Self.append(target, from: targetStart, to: &buffer) { $0 > 0x20 && $0 < 0x7F } && isValid
        if fields.summary.contains(.host) {
            Self.append(" HTTP/1.1\r\n", to: &buffer)
        } else {
            Self.append(" HTTP/1.1\r\nHost: ", to: &buffer)
            let isHost = Self.append(authority, to: &buffer) { HTTPBytes.isAuthority($0) }
            isValid = isHost && isValid
            Self.append("\r\n", to: &buffer)
        }
        guard isValid else {
            buffer.removeLast(buffer.count - start)
            throw EngineError(
                .invalidRequest, "the method, the target or the host has a character that cannot be sent (RFC 9112 §3)")
        }
        appendLines(of: fields, to: &buffer)
        if let upgrade {
            buffer.append(contentsOf: "Upgrade: \(upgrade)\r\n".utf8)
            if !fields.summary.contains(.namesUpgrade) { Self.append("Connection: upgrade\r\n", to: &buffer) }
        }
        appendFraming(to: &buffer)
        Self.append("\r\n", to: &buffer)
    }

    /// Writes the head to the start of memory, if it is that of a usual request: one without a body and without fields
    /// that are changed on the way, so that the head is the method, the target, Host and the fields as they are.
    /// Returns the number of bytes; nil for any other head, and for one with a part that cannot be sent, for which
    /// `write(_:into:)` is called.
    @unsafe
    package func writeUsual(_ fields: RequestFields, into memory: UnsafeMutableRawBufferPointer) -> Int? {
        guard framing == .none, upgrade == nil else { return nil }
        return unsafe Self.writeUsual(
            method: method, target: target, from: targetStart, authority: authority,
            isSendable: HTTPBytes.isAuthority(authority), fields, into: memory)
    }

    /// Does the same with the parts of a request that has no body and asks for no other protocol, which the caller
    /// checks.
    ///
    /// - Parameters:
    ///   - targetStart: The number of bytes of `target` before the target itself.
    ///   - isSendable: Whether a head can contain the authority.
    @unsafe
    static func writeUsual(
        method: String, target: String, from targetStart: Int, authority: String, isSendable: Bool,
        _ fields: RequestFields, into memory: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let unusual: RequestFields.Summary = [.host, .expectsContinue, .proxyAuthorization, .te, .chunked]
        guard isSendable, !needsLength(method), fields.summary.isDisjoint(with: unusual), fields.statedLength == nil,
            // At most that many bytes are written.
            method.utf8.count + target.utf8.count + authority.utf8.count + fields.bytes.count + 32 <= memory.count
        else { return nil }
        var count = 0
        guard unsafe copy(method, to: memory, at: &count, where: { HTTPBytes.isToken($0) }) else { return nil }
        unsafe copy(" ", to: memory, at: &count)
        let isTarget = unsafe copy(target, from: targetStart, to: memory, at: &count) { $0 > 0x20 && $0 < 0x7F }
        unsafe copy(" HTTP/1.1\r\nHost: ", to: memory, at: &count)
        guard isTarget, unsafe copy(authority, to: memory, at: &count, where: { _ in true }) else { return nil }
        unsafe copy("\r\n", to: memory, at: &count)
        unsafe fields.bytes.withUnsafeBytes { bytes in
            unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        }
        count += fields.bytes.count
        unsafe copy("\r\n", to: memory, at: &count)
        return count
    }

    @inline(__always)
    private static func copy(_ text: StaticString, to memory: UnsafeMutableRawBufferPointer, at count: inout Int) {
        let bytes = unsafe UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Copies a text from an offset on. Returns false if it is empty or a byte is not valid, and for a text that is not
    /// stored as UTF-8.
    @inline(__always)
    private static func copy(
        _ text: String, from offset: Int = 0, to memory: UnsafeMutableRawBufferPointer, at count: inout Int,
        where isValid: (UInt8) -> Bool
    ) -> Bool {
        unsafe text.utf8.withContiguousStorageIfAvailable { bytes in
            guard offset < bytes.count else { return false }
            for index in offset..<bytes.count {
                let byte = unsafe bytes[index]
                guard isValid(byte) else { return false }
                unsafe memory[count] = byte
                count += 1
            }
            return true
        } ?? false
    }

    /// Whether the length of a body is stated although there is none: these methods always have a meaning for content
    /// (RFC 9110 §8.6).
    private static func needsLength(_ method: String) -> Bool {
        // GET first: two equal short strings are compared as integers.
        method != "GET" && (method == "POST" || method == "PUT" || method == "PATCH")
    }

    /// Refuses a protocol that the request cannot ask for. A body would have to end before the server switches, and
    /// HTTP/2 is not reached in this way (RFC 9113 §3.1).
    private func check(_ upgrade: String) throws(EngineError) {
        let isName = !upgrade.isEmpty && upgrade.utf8.allSatisfy { HTTPBytes.isToken($0) || $0 == UInt8(ascii: "/") }
        guard isName, framing == .none, method != "CONNECT", !["h2", "h2c"].contains(upgrade.lowercased()) else {
            throw EngineError(.invalidRequest, "the request cannot ask for another protocol (RFC 9110 §7.8)")
        }
    }

    private func appendLines(of fields: RequestFields, to buffer: inout [UInt8]) {
        let dropsExpect = framing == .none || framing == .length(0)
        let summary = fields.summary
        let drops =
            (dropsProxyAuthorization && summary.contains(.proxyAuthorization))
            || (dropsExpect && summary.contains(.expectsContinue))
        if drops {
            for field in fields.fields {
                if dropsProxyAuthorization, field.role == .proxyAuthorization { continue }
                if dropsExpect, field.role == .expect { continue }
                buffer.append(contentsOf: fields.bytes[field.line])
            }
        } else {
            buffer.append(contentsOf: fields.bytes)
        }
        // A field of one hop is named in Connection, in which fields are a list.
        let addsTE = summary.contains(.te) && !summary.contains(.namesTE)
        if addsTE { Self.append("Connection: TE\r\n", to: &buffer) }
    }

    private func appendFraming(to buffer: inout [UInt8]) {
        switch framing {
        case .none:
            guard Self.needsLength(method) else { return }
            Self.append("Content-Length: 0\r\n", to: &buffer)
        case .length(let length):
            Self.append("Content-Length: ", to: &buffer)
            HTTP1ChunkFraming.append(decimal: length, to: &buffer)
            Self.append("\r\n", to: &buffer)
        case .chunked:
            Self.append("Transfer-Encoding: chunked\r\n", to: &buffer)
        }
    }

    private static func append(_ text: StaticString, to buffer: inout [UInt8]) {
        unsafe buffer.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends a text from an offset on. Returns false if it is empty or a byte is not valid.
    @inline(__always)
    private static func append(
        _ text: String, from offset: Int = 0, to buffer: inout [UInt8], where isValid: (UInt8) -> Bool
    ) -> Bool {
        let start = buffer.count
        let isCopied: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { bytes in
            unsafe buffer.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[offset...]))
        }
        if isCopied == nil { buffer.append(contentsOf: text.utf8.dropFirst(offset)) }
        for index in start..<buffer.count where !isValid(buffer[index]) { return false }
        return buffer.count > start
    }
}

/// Writes the framing of a chunked request body (RFC 9112 §7.1).
package enum HTTP1ChunkFraming {
    /// The bytes after the data of a chunk.
    package static var dataEnd: [UInt8] { [HTTPBytes.carriageReturn, HTTPBytes.lineFeed] }

    /// Appends the line before the data of a chunk. A chunk has at least one byte, because the size 0 ends the body.
    package static func appendSizeLine(of count: Int, to buffer: inout [UInt8]) {
        precondition(count > 0, "a chunk has at least one byte")
        var shift = Int.bitWidth - count.leadingZeroBitCount
        shift = (shift + 3) / 4 * 4
        while shift > 0 {
            shift -= 4
            let digit = UInt8(truncatingIfNeeded: count >> shift & 0xF)
            buffer.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
        buffer.append(HTTPBytes.carriageReturn)
        buffer.append(HTTPBytes.lineFeed)
    }

    /// Appends the last chunk, the trailers and the end of the body. Throws `.invalidRequest`, and appends nothing, if
    /// a field cannot be a trailer (RFC 9110 §6.5.1).
    package static func appendEnd(
        trailers: RequestFields = RequestFields(), to buffer: inout [UInt8]
    ) throws(EngineError) {
        appendEnd(trailerLines: try trailers.trailerLines(), to: &buffer)
    }

    /// Appends the last chunk, the trailers and the end of the body.
    static func appendEnd(trailerLines: [UInt8], to buffer: inout [UInt8]) {
        buffer.append(UInt8(ascii: "0"))
        buffer.append(contentsOf: dataEnd)
        buffer.append(contentsOf: trailerLines)
        buffer.append(contentsOf: dataEnd)
    }

    static func append(decimal number: Int64, to buffer: inout [UInt8]) {
        precondition(number >= 0, "a length is not negative")
        let start = buffer.count
        var rest = number
        repeat {
            buffer.append(0x30 + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        buffer[start...].reverse()
    }
}
