#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Reads the lines of a response's head, and those of its trailers, from any split of the input.
///
/// Each line is examined once, when its end has arrived. A head that arrives whole in its regular form is copied once.
/// Lines may end in LF alone (RFC 9112 §2.2); they are written with CRLF. A folded line is joined to the line before by
/// one blank (RFC 9112 §5.2).
@safe struct HTTP1HeadReader: Sendable {
    /// The kind of a line.
    private enum LineKind {
        /// No line is complete.
        case statusLine
        /// The line before is the status line, or no trailer has come.
        case start
        case field
        /// A field that determines the use of the connection.
        case options
        /// A field that determines the end of the body.
        case framing
        /// A trailer field that is not kept.
        case dropped
    }

    private enum Effect {
        case kept, folded, dropped, end
    }

    private let limits: HeadLimits
    /// Whether the request asks for a tunnel.
    private let isConnect: Bool
    private(set) var summary = HTTP1HeadSummary()
    /// The lines so far, in the form that `ReceivedHead` has.
    private var output: [UInt8] = []
    /// The start of a line whose end has not arrived.
    private var partial: [UInt8] = []
    /// The number of bytes received, including those of interim heads.
    private var received = 0
    private var fields = 0
    /// The kind of the line before.
    private var previousLine = LineKind.statusLine
    private var isTrailer = false

    init(limits: HeadLimits, isConnect: Bool = false) {
        self.limits = limits
        self.isConnect = isConnect
    }

    /// Takes the lines of the head, with the empty line after them.
    mutating func takeOutput() -> [UInt8] {
        let bytes = output
        output = []
        return bytes
    }

    /// Prepares for the head after that of an interim response. The bytes of all heads count together.
    mutating func startOver() {
        summary = HTTP1HeadSummary()
        output = []
        fields = 0
        previousLine = .statusLine
    }

    /// Prepares for the trailers. Their fields and those of the head count together.
    mutating func beginTrailers() {
        output = []
        received = 0
        previousLine = .start
        isTrailer = true
    }

    /// Reads lines, and moves `position` behind them. Returns true when the empty line has come.
    @unsafe
    mutating func read(
        _ input: UnsafeRawBufferPointer, from position: inout Int
    ) throws(HTTP1Violation) -> Bool {
        let end = input.count
        guard position < end, let base = input.baseAddress else { return false }
        if previousLine == .statusLine, partial.count < 5 { try unsafe checkStart(base, position..<end) }
        if !partial.isEmpty {
            guard let next = unsafe Self.endOfLine(base, position..<end) else {
                try unsafe keepPartial(base, from: &position, to: end)
                return false
            }
            var line = partial
            partial = []
            unsafe Self.append(base, position..<next, to: &line)
            received += next - position
            position = next
            if try takeWhole(line) { return true }
        }
        // The lines from here to `position` are to be kept as they are.
        var copied = position
        while let next = unsafe Self.endOfLine(base, position..<end) {
            received &+= next &- position
            guard received <= limits.bytes else { throw tooLarge }
            let hasReturn =
                unsafe next &- position >= 2
                && base.load(fromByteOffset: next &- 2, as: UInt8.self) == HTTPBytes.carriageReturn
            let content = position..<(hasReturn ? next &- 2 : next &- 1)
            let effect = try unsafe take(base, content)
            position = next
            if effect == .kept, hasReturn { continue }
            // A head in its regular form is copied here, whole.
            let isKept = isKept(effect)
            let keptEnd = isKept ? (hasReturn ? next : content.upperBound) : content.lowerBound
            unsafe Self.append(base, copied..<keptEnd, to: &output)
            copied = next
            if isKept, !hasReturn { endLine() }
            if effect == .folded { unsafe join(base, content) }
            if effect == .end { return true }
        }
        unsafe Self.append(base, copied..<position, to: &output)
        try unsafe keepPartial(base, from: &position, to: end)
        return false
    }

    // MARK: Lines

    /// Refuses a first line that cannot become a status line, before its end has come.
    private func checkStart(_ base: UnsafeRawPointer, _ range: Range<Int>) throws(HTTP1Violation) {
        let name: StaticString = "HTTP/"
        for (offset, index) in zip(partial.count..<5, range) {
            let byte = unsafe base.load(fromByteOffset: index, as: UInt8.self)
            if unsafe byte == name.utf8Start[offset] { continue }
            // The limit comes first if the bytes before this one exceed it.
            guard received + (index - range.lowerBound) <= limits.bytes else { throw tooLarge }
            let isLineEnd = byte == HTTPBytes.carriageReturn || byte == HTTPBytes.lineFeed
            throw offset == 0 && isLineEnd ? .blankFirstLine : .statusLine
        }
    }

    /// Returns the index behind the next LF; nil if there is none.
    @inline(__always)
    private static func endOfLine(_ base: UnsafeRawPointer, _ range: Range<Int>) -> Int? {
        guard range.lowerBound < range.upperBound,
            let hit = unsafe memchr(base + range.lowerBound, 0x0A, range.count)
        else { return nil }
        return unsafe UnsafeRawPointer(hit) - base + 1
    }

    private static func append(_ base: UnsafeRawPointer, _ range: Range<Int>, to bytes: inout [UInt8]) {
        if range.isEmpty { return }
        unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count))
    }

    private mutating func keepPartial(
        _ base: UnsafeRawPointer, from position: inout Int, to end: Int
    ) throws(HTTP1Violation) {
        received += end - position
        guard received <= limits.bytes else { throw tooLarge }
        unsafe Self.append(base, position..<end, to: &partial)
        position = end
    }

    /// Takes a line that arrived in parts. Returns true for the empty line.
    private mutating func takeWhole(_ line: [UInt8]) throws(HTTP1Violation) -> Bool {
        guard received <= limits.bytes else { throw tooLarge }
        let hasReturn = line.count >= 2 && line[line.count - 2] == HTTPBytes.carriageReturn
        let count = line.count - (hasReturn ? 2 : 1)
        let buffer = line.span
        return try unsafe buffer.withUnsafeBytes { (bytes) throws(HTTP1Violation) -> Bool in
            guard let base = bytes.baseAddress else { return false }
            let effect = try unsafe take(base, 0..<count)
            if isKept(effect) {
                unsafe Self.append(base, 0..<count, to: &output)
                endLine()
            }
            if effect == .folded { unsafe join(base, 0..<count) }
            return effect == .end
        }
    }

    /// Returns whether a line is written as it is. The empty line belongs to a head, and not to trailers.
    @inline(__always)
    private func isKept(_ effect: Effect) -> Bool { effect == .kept || (effect == .end && !isTrailer) }

    private mutating func endLine() {
        output.append(HTTPBytes.carriageReturn)
        output.append(HTTPBytes.lineFeed)
    }

    /// Joins a folded line to the line before, which ends in CRLF, by one blank. A blank folded line adds nothing.
    private mutating func join(_ base: UnsafeRawPointer, _ content: Range<Int>) {
        output.removeLast(2)
        while let last = output.last, HTTPBytes.isBlank(last) { output.removeLast() }
        let text = unsafe HTTPBytes.trimmed(base, content)
        if !text.isEmpty {
            output.append(0x20)
            unsafe Self.append(base, text, to: &output)
        }
        endLine()
    }

    private var tooLarge: HTTP1Violation {
        isTrailer ? .trailersTooLarge(limits.bytes) : .headTooLarge(limits.bytes)
    }

    // MARK: The contents of a line

    @inline(__always)
    private mutating func take(_ base: UnsafeRawPointer, _ line: Range<Int>) throws(HTTP1Violation) -> Effect {
        if line.isEmpty { return .end }
        if previousLine == .statusLine {
            try unsafe takeStatusLine(base, line)
            return .kept
        }
        fields &+= 1
        guard fields <= limits.fields else { throw .tooManyFields(limits.fields) }
        if unsafe HTTPBytes.isBlank(base.load(fromByteOffset: line.lowerBound, as: UInt8.self)) {
            return try unsafe takeFold(base, line)
        }
        let colon = unsafe HTTPBytes.endOfToken(base, in: line)
        guard colon > line.lowerBound, colon < line.upperBound,
            unsafe base.load(fromByteOffset: colon, as: UInt8.self) == UInt8(ascii: ":")
        else { throw .notAField }
        try unsafe checkText(base, (colon &+ 1)..<line.upperBound)
        previousLine = .field
        if isTrailer {
            if unsafe HTTP1HeadSummary.isForbiddenTrailer(base, line.lowerBound..<colon) { previousLine = .dropped }
            return previousLine == .dropped ? .dropped : .kept
        }
        let value = (colon &+ 1)..<line.upperBound
        switch try unsafe summary.note(base, name: line.lowerBound..<colon, value: value) {
        case .allowed: break
        case .endsConnection: previousLine = .options
        case .refused: previousLine = .framing
        }
        return .kept
    }

    /// Checks the status line. Accepts one or more blanks before the status, and a line without a reason phrase.
    private mutating func takeStatusLine(
        _ base: UnsafeRawPointer, _ line: Range<Int>
    ) throws(HTTP1Violation) {
        previousLine = .start
        func byte(_ index: Int) -> UInt8 {
            let index = line.lowerBound + index
            return index < line.upperBound ? unsafe base.load(fromByteOffset: index, as: UInt8.self) : 0
        }
        // The reader has compared the five bytes before.
        guard byte(5) == UInt8(ascii: "1"), byte(6) == UInt8(ascii: "."), byte(7) | 1 == UInt8(ascii: "1"),
            byte(8) == 0x20
        else { throw .version }
        summary.isHTTP10 = byte(7) == UInt8(ascii: "0")
        var index = 9
        while byte(index) == 0x20 { index += 1 }
        let (first, second, third) = (byte(index), byte(index + 1), byte(index + 2))
        guard HTTPBytes.isDigit(first), HTTPBytes.isDigit(second), HTTPBytes.isDigit(third), first != UInt8(ascii: "0")
        else { throw .statusLine }
        summary.status = Int(first &- 0x30) * 100 + Int(second &- 0x30) * 10 + Int(third &- 0x30)
        summary.beginsTunnel = isConnect && first == UInt8(ascii: "2")
        let reason = line.lowerBound + index + 3
        guard reason == line.upperBound || byte(index + 3) == 0x20 else { throw .statusLine }
        guard unsafe HTTPBytes.firstControl(base, in: reason..<line.upperBound) == nil else { throw .statusLine }
    }

    private mutating func takeFold(_ base: UnsafeRawPointer, _ line: Range<Int>) throws(HTTP1Violation) -> Effect {
        switch previousLine {
        case .statusLine, .start: throw .firstFieldIsFolded
        case .framing: throw .framingFieldIsFolded
        case .field, .options, .dropped: break
        }
        try unsafe checkText(base, line)
        if previousLine == .options { summary.takeFoldedOptions() }
        return previousLine == .dropped ? .dropped : .folded
    }

    @inline(__always)
    private func checkText(_ base: UnsafeRawPointer, _ range: Range<Int>) throws(HTTP1Violation) {
        guard let index = unsafe HTTPBytes.firstControl(base, in: range) else { return }
        let isReturn = unsafe base.load(fromByteOffset: index, as: UInt8.self) == HTTPBytes.carriageReturn
        throw isReturn ? .bareCarriageReturn : .controlInValue
    }
}
