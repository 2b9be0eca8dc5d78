package import Tern

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Splits a multipart body into its parts (RFC 2046 §5.1.1), independent of the boundaries of its chunks. Pure.
///
/// The preamble before the first delimiter, of at most 64 KiB, and the epilogue after the last are ignored. Lines can
/// end in LF alone, as those of some cameras do. Holds at most one part.
///
/// Cameras and gateways disagree with their own `boundary`. The first delimiter of the body shows the form of all:
///
/// | `boundary` | Delimiters that are accepted |
/// |---|---|
/// | `b` | `--b` (RFC 2046); any other number of dashes, also none on the first line; `--"b"` and `--'b'` |
/// | `--b` | `----b` (RFC 2046) and `--b`, which is the most frequent error, and the forms above |
/// | `'b'`, `"\"b\""` | `--'b'` or `--"b"` (RFC 2046), and the forms above |
///
/// A body can begin with the fields of its first part, in place of a delimiter, if the first of them is a `Content-…`
/// field.
package struct MultipartParser {
    /// The reason why a body cannot be read further.
    package enum Failure: Error, Hashable {
        /// A part has more bytes than this limit, with its fields.
        case partTooLarge(limit: Int)
        /// The fields of a part are malformed, or have more than 64 KiB.
        case malformedFields
        /// The body ended before its last delimiter.
        case truncated
        /// The body, or its first 64 KiB, has no delimiter. With the delimiter of RFC 2046, and the start of the first
        /// line that is not empty, in printable characters of ASCII.
        case noDelimiter(expected: String, found: String)
    }

    /// A part: its fields and its content.
    package struct Part: Sendable, Hashable {
        /// The fields.
        package var headers: Headers
        /// The content.
        package var body: Data
    }

    private enum Place {
        case preamble, part, epilogue
    }

    /// The delimiter of RFC 2046.
    private let standardDelimiter: [UInt8]
    /// The boundary without dashes before it and quotes around it; empty for one that has nothing else.
    private let core: [UInt8]
    /// The delimiter of the body; nil before the first one.
    private var delimiter: [UInt8]?
    private let limit: Int
    private var place = Place.preamble
    /// The number of bytes of the preamble so far.
    private var preambleCount = 0
    /// The start of the first line that is not empty, if that is no delimiter.
    private var firstLine: [UInt8]?
    /// The bytes of the part so far, whole lines and the start of one. In the preamble only a line.
    private var bytes: [UInt8] = []
    /// The start of the line that is not complete.
    private var lineStart = 0
    private var failure: Failure?

    /// The maximum size in bytes of the fields of a part.
    private static let fieldLimit = 64 << 10
    /// The maximum size in bytes of the preamble.
    private static let preambleLimit = 64 << 10
    /// The number of bytes of the first line that the failure shows.
    private static let shownCount = 80
    /// The number of bytes of a delimiter besides its boundary.
    private static let paddingLimit = 200
    private static let lineFeed: UInt8 = 0x0A
    private static let carriageReturn: UInt8 = 0x0D

    /// Creates a parser.
    ///
    /// - Parameters:
    ///   - boundary: The parameter `boundary` of the content type.
    ///   - maximumPartSize: The maximum number of bytes of a part, with its fields.
    package init(boundary: String, maximumPartSize: Int) {
        standardDelimiter = Array("--\(boundary)".utf8)
        var core = boundary.utf8.drop { $0 == Self.dash }
        while let first = core.first, core.count > 1, Self.isQuote(first), core.last == first {
            core = core.dropFirst().dropLast()
        }
        self.core = Array(core.drop { $0 == Self.dash })
        limit = min(maximumPartSize, .max / 2)
    }

    /// Returns the boundary of a content type: of one to 70 characters (RFC 2046 §5.1.1). Returns nil for a type that
    /// is not multipart, or without a boundary.
    package static func boundary(ofContentType value: String) -> String? {
        guard let type = MediaType(value), type.type == "multipart",
            let boundary = type.parameters.first(where: { $0.name == "boundary" })?.value,
            (1...70).contains(boundary.utf8.count)
        else { return nil }
        return boundary
    }

    /// Adds the parts that the next chunk completes.
    ///
    /// - Throws: The failure of the body, also at each later call. The parts before it were added.
    package mutating func parse(_ chunk: Data, into parts: inout [Part]) throws(Failure) {
        if failure == nil, place != .epilogue {
            unsafe chunk.withUnsafeBytes { bytes in
                unsafe bytes.withMemoryRebound(to: UInt8.self) { unsafe parse($0, &parts) }
            }
        }
        if let failure { throw failure }
    }

    /// Checks that the body has ended with its last delimiter. The last line can end with the body.
    package mutating func finish(into parts: inout [Part]) throws(Failure) {
        if failure == nil, place != .epilogue { takeLine(endingAt: bytes.count, next: bytes.count, &parts) }
        if failure == nil, place != .epilogue {
            failure = delimiter == nil && firstLine != nil ? noDelimiter : .truncated
        }
        if let failure { throw failure }
    }

    private var noDelimiter: Failure {
        let line = (firstLine ?? bytes).prefix(Self.shownCount)
        let found = line.map { byte in
            let isShown = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\\")
            let digits = String(byte, radix: 16)
            return isShown ? String(UnicodeScalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + digits
        }
        return .noDelimiter(
            expected: String(decoding: standardDelimiter, as: UTF8.self), found: found.joined())
    }

    private mutating func parse(_ chunk: UnsafeBufferPointer<UInt8>, _ parts: inout [Part]) {
        var position = 0
        while position < chunk.count, failure == nil, place != .epilogue {
            let found = unsafe chunk.firstIndex(of: Self.lineFeed, from: position, to: chunk.count)
            let end = found.map { $0 + 1 } ?? chunk.count
            let piece = unsafe UnsafeBufferPointer(rebasing: chunk[position..<end])
            unsafe append(piece)
            position = end
            if found != nil, failure == nil { takeLine(endingAt: bytes.count - 1, next: bytes.count, &parts) }
        }
    }

    private mutating func append(_ piece: UnsafeBufferPointer<UInt8>) {
        if place == .preamble {
            preambleCount += piece.count
            if preambleCount > Self.preambleLimit {
                unsafe bytes.append(contentsOf: piece.prefix(Self.shownCount))
                return fail(noDelimiter)
            }
        } else if bytes.count + piece.count > limit + standardDelimiter.count + Self.paddingLimit {
            // The line of the delimiter, and the line end before it, are not content.
            return fail(delimiter == nil ? noDelimiter : .partTooLarge(limit: limit))
        }
        unsafe bytes.append(contentsOf: piece)
    }

    private mutating func fail(_ failure: Failure) {
        self.failure = failure
        bytes = []
    }

    /// Takes a line, which is the last one in `bytes`.
    private mutating func takeLine(endingAt end: Int, next: Int, _ parts: inout [Part]) {
        let line = bytes[lineStart..<max(end, lineStart)]
        guard let isLast = isDelimiter(line) else {
            lineStart = next
            if place == .preamble, !beginsPart(line) {
                bytes.removeAll(keepingCapacity: true)
                lineStart = 0
            }
            return
        }
        if place == .part { completePart(&parts) }
        bytes = []
        lineStart = 0
        place = isLast ? .epilogue : .part
    }

    /// Returns whether a line of the preamble is the first field of a part without a delimiter before it.
    private mutating func beginsPart(_ line: ArraySlice<UInt8>) -> Bool {
        guard firstLine == nil, line.contains(where: { $0 != Self.carriageReturn }) else { return false }
        firstLine = Array((line.last == Self.carriageReturn ? line.dropLast() : line).prefix(Self.shownCount))
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
        guard name.hasPrefix("content-"), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
        place = .part
        return true
    }

    /// Returns whether a delimiter is the last one; nil for another line. The first delimiter shows the form of all.
    private mutating func isDelimiter(_ line: ArraySlice<UInt8>) -> Bool? {
        if let delimiter { return Self.isDelimiter(line, delimiter) }
        for form in [standardDelimiter, otherForm(of: line)] {
            if let form, let isLast = Self.isDelimiter(line, form) {
                delimiter = form
                return isLast
            }
        }
        return nil
    }

    /// Returns the start of a line if it is a delimiter but for its dashes and quotes; nil for another line.
    private func otherForm(of line: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = line.drop { $0 == Self.dash }
        // A text can have a line of the boundary alone.
        guard !core.isEmpty, rest.startIndex > line.startIndex || firstLine == nil || place == .part else { return nil }
        var quote: UInt8?
        if let first = rest.first, Self.isQuote(first) {
            quote = first
            rest = rest.dropFirst()
        }
        guard rest.starts(with: core) else { return nil }
        rest = rest.dropFirst(core.count)
        if let quote {
            guard rest.first == quote else { return nil }
            rest = rest.dropFirst()
        }
        return Array(line[..<rest.startIndex])
    }

    private static let dash = UInt8(ascii: "-")

    private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }

    private static func isDelimiter(_ line: ArraySlice<UInt8>, _ delimiter: [UInt8]) -> Bool? {
        guard line.starts(with: delimiter) else { return nil }
        var rest = line.dropFirst(delimiter.count)
        let isLast = rest.starts(with: [0x2D, 0x2D])
        if isLast { rest = rest.dropFirst(2) }
        // Padding, and the carriage return before the line feed.
        if rest.last == Self.carriageReturn { rest.removeLast() }
        return rest.allSatisfy { $0 == 0x20 || $0 == 0x09 } ? isLast : nil
    }

    private mutating func completePart(_ parts: inout [Part]) {
        // The line end before a delimiter belongs to it.
        var end = lineStart
        if end > 0 { end -= 1 }
        if end > 0, bytes[end - 1] == Self.carriageReturn { end -= 1 }
        guard end <= limit else {
            failure = .partTooLarge(limit: limit)
            return
        }
        var headers: [Headers.Field] = []
        var start = 0
        while true {
            guard let feed = bytes[start..<lineStart].firstIndex(of: Self.lineFeed), feed <= Self.fieldLimit else {
                // A part of fields alone has no empty line.
                if start >= lineStart, !headers.isEmpty { break }
                failure = .malformedFields
                return
            }
            var line = bytes[start..<feed]
            if line.last == Self.carriageReturn { line.removeLast() }
            start = feed + 1
            if line.isEmpty { break }
            guard add(line, to: &headers) else {
                failure = .malformedFields
                return
            }
        }
        parts.append(Part(headers: Headers(headers), body: start < end ? Data(bytes[start..<end]) : Data()))
    }

    /// Adds a field, or the continuation of one (RFC 5322 §2.2.3). Returns false for a malformed line.
    private func add(_ line: ArraySlice<UInt8>, to headers: inout [Headers.Field]) -> Bool {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        func text(_ bytes: ArraySlice<UInt8>) -> String {
            var bytes = bytes.drop(while: isSpace)
            while let last = bytes.last, isSpace(last) { bytes.removeLast() }
            return String(decoding: bytes, as: UTF8.self)
        }
        guard line.allSatisfy({ $0 != 0 && $0 != Self.carriageReturn }) else { return false }
        if let first = line.first, isSpace(first) {
            guard !headers.isEmpty else { return false }
            // In place: a copy for each of many short lines would take quadratic time.
            headers[headers.count - 1].value += " \(text(line))"
            return true
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return false }
        headers.append(Headers.Field(name: text(line[..<colon]), value: text(line[(colon + 1)...])))
        return true
    }
}
