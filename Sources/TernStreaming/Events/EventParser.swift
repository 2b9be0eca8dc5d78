#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Parses the bytes of an event stream (WHATWG HTML standard §9.2.6), independent of the boundaries of its chunks.
/// Pure.
///
/// Bytes that are not UTF-8 become U+FFFD. An event whose empty line has not arrived is dropped with the parser. Works
/// in linear time, and holds at most one line and the data of one event.
package struct EventParser {
    /// The reason why a stream cannot be read further.
    package enum Failure: Error, Hashable {
        /// A line has more bytes than this limit.
        case lineTooLong(limit: Int)
        /// The data of an event has more bytes than this limit.
        case eventTooLarge(limit: Int)
    }

    /// The last event ID of the last complete block. A reconnection sends it.
    package private(set) var lastEventID: String
    /// The reconnection time that the server asked for last; nil if it asked for none.
    package private(set) var retry: Duration?

    /// Whether a complete block had an `id` field, with data or without.
    package private(set) var hasCompletedID = false

    private let maximumLineSize: Int
    private let maximumEventSize: Int
    /// The start of a line whose end has not arrived.
    private var partialLine: [UInt8] = []
    private var data: [UInt8] = []
    /// Whether the event has a `data` field. Its data can be empty nevertheless.
    private var hasData = false
    private var type = ""
    /// The ID of the last `id` field. It counts once its block is complete.
    private var id: String
    /// Whether the block has an `id` field.
    private var hasID = false
    /// Whether a line feed that comes first belongs to a carriage return before it.
    private var skipsLineFeed = false
    private var isFirstLine = true
    private var failure: Failure?

    private static let lineFeed: UInt8 = 0x0A
    private static let carriageReturn: UInt8 = 0x0D
    private static let colon = UInt8(ascii: ":")
    /// The buffer of a larger event is released with the event.
    private static let keptCapacity = 64 << 10
    /// The longest reconnection time in milliseconds. Larger numbers count as this one: about 12 days.
    private static let longestRetry: Int64 = 1 << 30

    /// Creates a parser for one connection.
    ///
    /// - Parameters:
    ///   - lastEventID: The last event ID of the connection before, which holds until the server sends another.
    ///   - maximumLineSize: The maximum number of bytes of a line, without its end.
    ///   - maximumEventSize: The maximum number of bytes of the data of an event.
    package init(lastEventID: String = "", maximumLineSize: Int = .max, maximumEventSize: Int = .max) {
        self.lastEventID = lastEventID
        id = lastEventID
        self.maximumLineSize = maximumLineSize
        self.maximumEventSize = maximumEventSize
    }

    /// Parses the next bytes, and adds the events that they complete.
    ///
    /// - Throws: The failure of the stream, also at each later call. The events before it were added.
    package mutating func parse(_ chunk: Data, into events: inout [ServerSentEvent]) throws(Failure) {
        unsafe chunk.withUnsafeBytes { bytes in
            unsafe bytes.withMemoryRebound(to: UInt8.self) { unsafe parse($0, &events) }
        }
        if let failure { throw failure }
    }

    private mutating func parse(_ bytes: UnsafeBufferPointer<UInt8>, _ events: inout [ServerSentEvent]) {
        guard bytes.count > 0, failure == nil else { return }
        var position = 0
        if skipsLineFeed {
            skipsLineFeed = false
            if unsafe bytes[0] == Self.lineFeed { position = 1 }
        }
        // Found once for all lines that end before it in a carriage return, so that the search stays linear.
        var nextLineFeed = -1
        while position < bytes.count {
            if nextLineFeed < position {
                nextLineFeed =
                    unsafe bytes.firstIndex(of: Self.lineFeed, from: position, to: bytes.count) ?? bytes.count
            }
            var end = nextLineFeed
            var next = end + 1
            if let found = unsafe bytes.firstIndex(of: Self.carriageReturn, from: position, to: end) {
                end = found
                next = found + 1
                if next == bytes.count {
                    // The chunk can end between the two bytes of a CRLF.
                    skipsLineFeed = true
                } else if next == nextLineFeed {
                    next += 1
                }
            }
            let piece = unsafe UnsafeBufferPointer(rebasing: bytes[position..<end])
            guard piece.count <= maximumLineSize - partialLine.count else {
                return fail(.lineTooLong(limit: maximumLineSize))
            }
            guard end < bytes.count else {
                unsafe partialLine.append(contentsOf: piece)
                return
            }
            unsafe takeLine(piece, &events)
            if failure != nil { return }
            position = next
        }
    }

    private mutating func fail(_ failure: Failure) {
        self.failure = failure
        partialLine = []
        data = []
    }

    /// Takes the rest of a line.
    private mutating func takeLine(_ piece: UnsafeBufferPointer<UInt8>, _ events: inout [ServerSentEvent]) {
        if partialLine.isEmpty { return unsafe take(piece, &events) }
        unsafe partialLine.append(contentsOf: piece)
        var line: [UInt8] = []
        swap(&line, &partialLine)
        unsafe line.withUnsafeBufferPointer { unsafe take($0, &events) }
        guard failure == nil, line.capacity <= Self.keptCapacity else { return }
        line.removeAll(keepingCapacity: true)
        swap(&line, &partialLine)
    }

    private mutating func take(_ bytes: UnsafeBufferPointer<UInt8>, _ events: inout [ServerSentEvent]) {
        var line = unsafe bytes
        if isFirstLine {
            isFirstLine = false
            if unsafe line.starts(with: [0xEF, 0xBB, 0xBF]) { unsafe line = UnsafeBufferPointer(rebasing: line[3...]) }
        }
        if line.isEmpty { return dispatch(&events) }
        switch unsafe line[0] {
        case UInt8(ascii: "d"):
            if let value = unsafe Self.value(of: "data", in: line) { unsafe addData(value) }
        case UInt8(ascii: "e"):
            if let value = unsafe Self.value(of: "event", in: line) { unsafe type = Self.text(value) }
        case UInt8(ascii: "i"):
            if let value = unsafe Self.value(of: "id", in: line), unsafe !value.contains(0) {
                unsafe id = Self.text(value)
                hasID = true
            }
        case UInt8(ascii: "r"):
            if let value = unsafe Self.value(of: "retry", in: line) { unsafe setRetry(value) }
        default:
            // A comment, or a field that the standard does not know.
            break
        }
    }

    /// Returns the value of a line with this field: empty without a colon, and without one space after the colon.
    /// Returns nil for a line with another field.
    private static func value(
        of name: StaticString, in line: UnsafeBufferPointer<UInt8>
    ) -> UnsafeBufferPointer<UInt8>? {
        let count = name.utf8CodeUnitCount
        guard line.count >= count else { return nil }
        let start = unsafe name.utf8Start
        for index in 0..<count where unsafe line[index] != start[index] { return nil }
        if line.count == count { return unsafe UnsafeBufferPointer(rebasing: line[count...]) }
        guard unsafe line[count] == colon else { return nil }
        let rest = unsafe line.dropFirst(count + 1)
        let hasSpace = unsafe rest.first == UInt8(ascii: " ")
        return unsafe UnsafeBufferPointer(rebasing: line[(count + (hasSpace ? 2 : 1))...])
    }

    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        unsafe String(decoding: bytes, as: UTF8.self)
    }

    private mutating func addData(_ value: UnsafeBufferPointer<UInt8>) {
        // The line feed between two lines counts.
        let separator = hasData ? 1 : 0
        guard value.count <= maximumEventSize - data.count - separator else {
            return fail(.eventTooLarge(limit: maximumEventSize))
        }
        if hasData { data.append(Self.lineFeed) }
        hasData = true
        unsafe data.append(contentsOf: value)
    }

    private mutating func setRetry(_ value: UnsafeBufferPointer<UInt8>) {
        var milliseconds: Int64 = 0
        for index in value.indices {
            let byte = unsafe value[index]
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return }
            milliseconds = min(milliseconds * 10 + Int64(byte - UInt8(ascii: "0")), Self.longestRetry)
        }
        if !value.isEmpty { retry = .milliseconds(milliseconds) }
    }

    /// Completes a block at its empty line.
    private mutating func dispatch(_ events: inout [ServerSentEvent]) {
        lastEventID = id
        if hasID { (hasID, hasCompletedID) = (false, true) }
        if hasData {
            events.append(
                ServerSentEvent(
                    type: type.isEmpty ? "message" : type, data: String(decoding: data, as: UTF8.self), id: id))
            hasData = false
            if data.capacity > Self.keptCapacity { data = [] } else { data.removeAll(keepingCapacity: true) }
        }
        if !type.isEmpty { type = "" }
    }
}
