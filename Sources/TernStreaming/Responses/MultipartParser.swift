package import Tern

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Splits a multipart body into its parts (RFC 2046 §5.1.1), independent of the boundaries of its chunks. Pure.
///
/// The preamble before the first delimiter and the epilogue after the last are ignored. Lines can end in LF alone, as those
/// of some cameras do. Holds at most one part.
package struct MultipartParser {
    /// The reason why a body cannot be read further.
    package enum Failure: Error, Hashable {
        /// A part has more bytes than this limit, with its fields.
        case partTooLarge(limit: Int)
        /// The fields of a part are malformed, or have more than 64 KiB.
        case malformedFields
        /// The body ended before its last delimiter.
        case truncated
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

    private let delimiter: [UInt8]
    private let limit: Int
    private var place = Place.preamble
    /// The bytes of the part so far, whole lines and the start of one. In the preamble only the start of a line.
    private var bytes: [UInt8] = []
    /// The start of the line that is not complete.
    private var lineStart = 0
    private var failure: Failure?

    /// The maximum size in bytes of the fields of a part.
    private static let fieldLimit = 64 << 10
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
        delimiter = Array("--\(boundary)".utf8)
        limit = min(maximumPartSize, .max / 2)
    }

    /// Returns the boundary of a content type: of one to 70 characters (RFC 2046 §5.1.1). Returns nil for a type that is not
    /// multipart, or without a boundary.
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
        if failure == nil, place != .epilogue { failure = .truncated }
        if let failure { throw failure }
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
            // A line that is longer than a delimiter with its padding is none. Its start is enough.
            unsafe bytes.append(contentsOf: piece.prefix(max(0, delimiter.count + Self.paddingLimit - bytes.count)))
            if unsafe piece.last == Self.lineFeed, bytes.last != Self.lineFeed { bytes.append(Self.lineFeed) }
            return
        }
        // The line of the delimiter, and the line end before it, are not content.
        guard bytes.count + piece.count <= limit + delimiter.count + Self.paddingLimit else {
            failure = .partTooLarge(limit: limit)
            bytes = []
            return
        }
        unsafe bytes.append(contentsOf: piece)
    }

    /// Takes a line, which is the last one in `bytes`.
    private mutating func takeLine(endingAt end: Int, next: Int, _ parts: inout [Part]) {
        guard let isLast = isDelimiter(bytes[lineStart..<max(end, lineStart)]) else {
            lineStart = next
            if place == .preamble {
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

    /// Returns whether a delimiter is the last one; nil for another line.
    private func isDelimiter(_ line: ArraySlice<UInt8>) -> Bool? {
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
