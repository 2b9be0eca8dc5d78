import Foundation
import Tern
import TernStreaming

extension FuzzTarget {
    /// The bodies that are read while they arrive: event streams and multipart responses.
    static let streaming = [
        FuzzTarget(
            name: "events", seeds: { _ in EventFuzzing.seeds.map { Array($0.utf8) } }, tokens: EventFuzzing.tokens,
            run: { input, choice in try EventFuzzing.check(Array(input), choice) }),
        FuzzTarget(
            name: "parts", seeds: { _ in PartFuzzing.seeds.map { Array($0.utf8) } }, tokens: PartFuzzing.tokens,
            run: { input, choice in try PartFuzzing.check(Array(input), choice) }),
    ]
}

/// The places at which an input is split into chunks: none, one, or each byte by itself.
private enum Chunks {
    static func splits(of input: [UInt8], _ choice: UInt64) -> [[Data]] {
        let place = input.isEmpty ? 0 : Int(choice >> 8) % (input.count + 1)
        return [[Data(input[..<place]), Data(input[place...])], input.map { Data([$0]) }]
    }
}

/// One event stream, whole and in pieces.
private enum EventFuzzing {
    static let seeds = [
        "data: YHOO\ndata: +2\ndata: 10\n\n",
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        "data\n\ndata\ndata\n\ndata:", "\u{FEFF}event: a\r\ndata: b\r\n\r\nretry: 1500\r\rid: 7\rdata\r\r",
        "id: 1\u{0}\ndata: \u{1F600}\n\nretry: 99999999999999999999\ndatax: y\n:\n\n",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "\n\n", ":", " ", "data", "data:", "data: ", "event: ", "id: ", "id", "retry: ", "\0",
        "\u{FEFF}",
        "data: a\n\n",
    ]

    private struct Result: Equatable {
        var events: [ServerSentEvent] = []
        var lastEventID = ""
        var retry: Duration?
        var failure: EventParser.Failure?
    }

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        // Small limits for some inputs, so that both are met.
        let limit = choice & 3 == 0 ? 12 : Int.max
        let whole = parse([Data(input)], limit)
        for chunks in Chunks.splits(of: input, choice) {
            let other = parse(chunks, limit)
            try require(other == whole, "in pieces: \(other), whole: \(whole)")
        }
        for event in whole.events {
            try require(!event.type.isEmpty && !event.type.utf8.contains(10), "the type \(event.type)")
            try require(!event.id.utf8.contains(0) && !event.id.utf8.contains(10), "the ID \(event.id)")
            try require(event.data.unicodeScalars.count <= input.count, "more data than bytes")
        }
        let end = whole.failure.map { "rejected \($0)" } ?? "accepted"
        return "\(end) \(min(whole.events.count, 20)) \(whole.retry != nil) \(whole.lastEventID.isEmpty)"
    }

    private static func parse(_ chunks: [Data], _ limit: Int) -> Result {
        var parser = EventParser(lastEventID: "0", maximumLineSize: limit, maximumEventSize: limit)
        var result = Result()
        for chunk in chunks {
            do throws(EventParser.Failure) {
                try parser.parse(chunk, into: &result.events)
            } catch {
                result.failure = error
                break
            }
        }
        result.lastEventID = parser.lastEventID
        result.retry = parser.retry
        return result
    }
}

/// One multipart body, whole and in pieces.
private enum PartFuzzing {
    static let seeds = [
        "preamble\r\n--b\r\nContent-Type: text/plain\r\nX: a\r\n b\r\n\r\none\r\n--b \r\n\r\ntwo\r\n--b--\r\nepilogue",
        "--b\nA: 1\n\none\n--b\n\n\ntwo\n--b--", "--b\r\n\r\n--bx\r\n--b--", "--b\r\nX: y\r\n--b--\r\n",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "\r\n\r\n", "--b", "--b--", "--b\r\n", "\r\n--b\r\n", "--", "X: y\r\n", ":", " ", "\t",
        "\0",
    ]

    private struct Result: Equatable {
        var parts: [MultipartParser.Part] = []
        var failure: MultipartParser.Failure?
    }

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let limit = choice & 3 == 0 ? 12 : Int.max
        let whole = parse([Data(input)], limit)
        for chunks in Chunks.splits(of: input, choice) {
            let other = parse(chunks, limit)
            try require(other == whole, "in pieces: \(other), whole: \(whole)")
        }
        for part in whole.parts {
            try require(part.body.count <= min(input.count, limit), "a part of \(part.body.count) bytes")
            let values = part.headers.map { $0.name + $0.value }.joined()
            try require(!values.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }, "a field with a line end")
        }
        let end = whole.failure.map { "rejected \($0)" } ?? "accepted"
        return "\(end) \(min(whole.parts.count, 20))"
    }

    private static func parse(_ chunks: [Data], _ limit: Int) -> Result {
        var parser = MultipartParser(boundary: "b", maximumPartSize: limit)
        var result = Result()
        do throws(MultipartParser.Failure) {
            for chunk in chunks { try parser.parse(chunk, into: &result.parts) }
            try parser.finish(into: &result.parts)
        } catch {
            result.failure = error
        }
        return result
    }
}
