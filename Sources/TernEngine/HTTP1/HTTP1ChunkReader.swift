/// Takes the framing off a chunked body (RFC 9112 §7.1), from any split of the input.
///
/// Sizes are hexadecimal digits alone. Blanks may follow them, because some servers fill the size up with blanks. Chunk
/// extensions are ignored, within limits. Lines end in CRLF: unlike in a head, LF alone is refused, because two
/// recipients that disagree about it see different bodies.
@safe struct HTTP1ChunkReader: Sendable {
    /// The maximum number of bytes of a line with a chunk size, without its end.
    static let lineLimit = 4 << 10
    /// The maximum number of bytes of all chunk extensions of a body.
    static let extensionLimit = 64 << 10
    /// 15 digits fit into 60 bits.
    private static let digitLimit = 15

    enum Step: Sendable, Equatable {
        case needsInput
        /// A part of the body, as a range of the input.
        case data(Range<Int>)
        /// The last chunk has come; the trailers follow.
        case trailers
    }

    private enum State {
        /// Before or within the digits.
        case size
        /// Blanks after the digits.
        case blanks
        case extensions
        case sizeLineFeed
        case data
        case dataReturn
        case dataLineFeed
        case trailers
    }

    private var state = State.size
    private var digits = 0
    private var lineLength = 0
    private var extensionLength = 0
    private var remaining: Int64 = 0

    /// Reads the next part of the body, and moves `position` behind it.
    @unsafe
    mutating func next(
        _ input: UnsafeRawBufferPointer, from position: inout Int
    ) throws(HTTP1Violation) -> Step {
        while position < input.count {
            if state == .data {
                let count = Int(min(remaining, Int64(input.count - position)))
                let range = position..<(position + count)
                remaining -= Int64(count)
                position += count
                if remaining == 0 { state = .dataReturn }
                return .data(range)
            }
            try take(unsafe input[position])
            position += 1
            if state == .trailers { return .trailers }
        }
        return .needsInput
    }

    private mutating func take(_ byte: UInt8) throws(HTTP1Violation) {
        switch state {
        case .size, .blanks, .extensions: try takeOfSizeLine(byte)
        case .sizeLineFeed:
            guard byte == HTTPBytes.lineFeed else { throw .chunkLineEnd }
            state = remaining == 0 ? .trailers : .data
        case .dataReturn:
            guard byte == HTTPBytes.carriageReturn else { throw .chunkDataEnd }
            state = .dataLineFeed
        case .dataLineFeed:
            guard byte == HTTPBytes.lineFeed else { throw .chunkDataEnd }
            state = .size
            digits = 0
            lineLength = 0
        case .data, .trailers: break
        }
    }

    private mutating func takeOfSizeLine(_ byte: UInt8) throws(HTTP1Violation) {
        if byte == HTTPBytes.carriageReturn, digits > 0 {
            state = .sizeLineFeed
            return
        }
        if state == .size {
            if let digit = HTTPBytes.hexValue(byte) {
                digits += 1
                guard digits <= Self.digitLimit else { throw .chunkSize }
                remaining = remaining << 4 | digit
                return
            }
            guard digits > 0 else { throw .chunkSize }
        }
        lineLength += 1
        guard digits + lineLength <= Self.lineLimit else { throw .chunkLineTooLong }
        extensionLength += 1
        guard extensionLength <= Self.extensionLimit else { throw .chunkExtensionsTooLong }
        if state == .extensions {
            guard HTTPBytes.isText(byte) else { throw byte == HTTPBytes.lineFeed ? .chunkLineEnd : .chunkExtension }
        } else if byte == UInt8(ascii: ";") {
            state = .extensions
        } else if HTTPBytes.isBlank(byte) {
            state = .blanks
        } else {
            throw byte == HTTPBytes.lineFeed ? .chunkLineEnd : .chunkSize
        }
    }
}
