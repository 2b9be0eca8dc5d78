#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Splits the bytes of a body into lines that end in LF or CRLF, independent of the boundaries of its chunks. Pure.
struct LineScanner {
    /// A line that is not empty.
    struct Line: Equatable {
        /// The number of the line, from 1. Empty lines count.
        let number: Int
        let bytes: Data
    }

    /// The error of a line that exceeds the limit.
    struct TooLong: Error, Equatable {
        /// The number of the line, from 1.
        let line: Int
    }

    private let limit: Int
    private var partialLine = Data()
    private var count = 0
    private var failure: TooLong?

    private static let lineFeed: UInt8 = 0x0A
    private static let carriageReturn: UInt8 = 0x0D

    init(limit: Int) { self.limit = limit }

    /// Adds the lines that the next chunk completes.
    ///
    /// - Throws: The error of a line that is too long, also at each later call. The lines before it were added.
    mutating func split(_ chunk: Data, into lines: inout [Line]) throws(TooLong) {
        if let failure { throw failure }
        unsafe chunk.withUnsafeBytes { bytes in
            unsafe bytes.withMemoryRebound(to: UInt8.self) { unsafe split($0, &lines) }
        }
        if let failure { throw failure }
    }

    /// Returns the last line, if it has no line end.
    mutating func finish() -> Line? {
        guard failure == nil, !partialLine.isEmpty else { return nil }
        defer { partialLine = Data() }
        return Line(number: count + 1, bytes: partialLine)
    }

    private mutating func split(_ bytes: UnsafeBufferPointer<UInt8>, _ lines: inout [Line]) {
        var position = 0
        while position < bytes.count {
            let end = unsafe bytes.firstIndex(of: Self.lineFeed, from: position, to: bytes.count)
            let piece = unsafe UnsafeBufferPointer(rebasing: bytes[position..<(end ?? bytes.count)])
            // The carriage return of a CRLF can be one byte above the limit.
            guard piece.count - 1 <= limit - partialLine.count else { return fail() }
            unsafe partialLine.append(piece)
            guard let end else { return }
            if partialLine.last == Self.carriageReturn { partialLine.removeLast() }
            guard partialLine.count <= limit else { return fail() }
            count += 1
            if !partialLine.isEmpty { lines.append(Line(number: count, bytes: partialLine)) }
            partialLine = Data()
            position = end + 1
        }
    }

    private mutating func fail() {
        failure = TooLong(line: count + 1)
        partialLine = Data()
    }
}
