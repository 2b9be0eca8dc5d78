public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A block of an event stream (WHATWG HTML standard §9.2) that a server of a test sends: an event, a comment, or a
/// reconnection time.
///
/// ```swift
/// let server = try LoopbackServer { exchange in
///     try exchange.writeEvents([.event("hello", id: "1"), .comment("ping")])
///     try exchange.waitForClientToClose()
/// }
/// ```
public struct ScriptedEvent: Sendable, Hashable {
    /// The text of the block, with its empty line.
    public let text: String

    /// Creates a block from its text, which is sent as it is.
    public init(text: String) { self.text = text }

    /// Returns an event. Each line of `data` becomes a field.
    ///
    /// - Parameters:
    ///   - data: The data.
    ///   - type: The field `event`; nil, the default, sends none.
    ///   - id: The field `id`; nil, the default, sends none.
    public static func event(_ data: String, type: String? = nil, id: String? = nil) -> Self {
        var text = ""
        if let type { text += "event: \(type)\n" }
        if let id { text += "id: \(id)\n" }
        for line in data.split(separator: "\n", omittingEmptySubsequences: false) { text += "data: \(line)\n" }
        return Self(text: text + "\n")
    }

    /// Returns a comment, which keeps a connection alive.
    public static func comment(_ comment: String = "") -> Self { Self(text: ": \(comment)\n\n") }

    /// Returns a reconnection time.
    public static func retry(milliseconds: Int) -> Self { Self(text: "retry: \(milliseconds)\n\n") }
}

extension LoopbackServer.Exchange {
    /// Sends blocks of an event stream as one chunk. The first call sends the head of a chunked response of the type
    /// `text/event-stream` before it. `endChunks()` ends the stream.
    ///
    /// - Parameters:
    ///   - events: The blocks.
    ///   - headers: Additional fields of the head.
    public func writeEvents(_ events: [ScriptedEvent], headers: LoopbackServer.Fields = []) throws {
        if !hasWritten {
            let fields: LoopbackServer.Fields = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
            try writeChunkedHead(headers: fields + headers)
        }
        try writeChunk(Array(events.map(\.text).joined().utf8))
    }
}

extension StubTransport.Answer {
    /// Returns an event stream that delivers each block as a chunk, with a pause before each except the first. The
    /// stream ends after the last block.
    public static func events(
        _ events: [ScriptedEvent], interval: Duration = .zero, headers: Headers = [:]
    ) -> Self {
        let type: Headers = ["Content-Type": "text/event-stream"]
        return .chunks(
            events.map { Data($0.text.utf8) }, interval: interval, headers: type.overriding(with: headers))
    }
}
