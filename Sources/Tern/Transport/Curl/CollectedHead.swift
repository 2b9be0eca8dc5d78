#if os(Linux)
/// The bytes of a response's head, line by line as libcurl hands them over, and those of its trailers.
struct CollectedHead {
    /// What a line was.
    enum Line {
        case inside
        /// The empty line: the head, or that of an interim response, is whole.
        case end
        case tooLarge
    }

    /// Bytes of head that most responses do not exceed.
    private static let usualSize = 512

    private let limit: Int
    private(set) var bytes: [UInt8] = []
    private var trailerBytes: [UInt8] = []
    /// Whether the head has a Content-Encoding.
    private(set) var isEncoded = false
    /// Lines that come now are trailers.
    private var isComplete = false

    init(limit: Int) {
        self.limit = limit
        bytes.reserveCapacity(Self.usualSize)
    }

    var trailers: Headers { trailerBytes.isEmpty ? [:] : ResponseHeadParser.fields(trailerBytes) }

    mutating func add(_ line: UnsafeRawBufferPointer) -> Line {
        if isComplete {
            unsafe trailerBytes.append(contentsOf: line)
            return trailerBytes.count <= limit ? .inside : .tooLarge
        }
        unsafe bytes.append(contentsOf: line)
        guard bytes.count <= limit else { return .tooLarge }
        if unsafe line.count <= 2 && line.allSatisfy({ $0 == 13 || $0 == 10 }) { return .end }
        if unsafe Self.isContentEncoding(line) { isEncoded = true }
        return .inside
    }

    /// The head was an interim one: the final one follows (RFC 9110 §15.2).
    mutating func startOver() {
        bytes.removeAll(keepingCapacity: true)
        isEncoded = false
    }

    mutating func complete() { isComplete = true }

    private static func isContentEncoding(_ line: UnsafeRawBufferPointer) -> Bool {
        let name: StaticString = "content-encoding:"
        guard line.count > name.utf8CodeUnitCount, unsafe line[0] | 0x20 == 0x63 else { return false }
        return (0..<name.utf8CodeUnitCount).allSatisfy { unsafe line[$0] | 0x20 == name.utf8Start[$0] | 0x20 }
    }
}
#endif
