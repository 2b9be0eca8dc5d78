import Tern
import TernStreaming
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Event parser")
struct EventParserTests {
    private func events(_ text: String, limits: (line: Int, event: Int) = (.max, .max)) throws -> [ServerSentEvent] {
        try parse(Array(text.utf8), limits: limits).events
    }

    private func parse(
        _ bytes: [UInt8], limits: (line: Int, event: Int) = (.max, .max), lastEventID: String = ""
    ) throws -> (events: [ServerSentEvent], parser: EventParser) {
        var parser = EventParser(
            lastEventID: lastEventID, maximumLineSize: limits.line, maximumEventSize: limits.event)
        var events: [ServerSentEvent] = []
        try parser.parse(Data(bytes), into: &events)
        return (events, parser)
    }

    // MARK: The examples of the standard, §9.2.6

    @Test func stockExampleGivesOneEventOfThreeLines() throws {
        #expect(try events("data: YHOO\ndata: +2\ndata: 10\n\n") == [ServerSentEvent(data: "YHOO\n+2\n10")])
    }

    @Test func exampleWithCommentAndIDsGivesThreeEvents() throws {
        let (events, parser) = try parse(
            Array(
                """
                : test stream

                data: first event
                id: 1

                data:second event
                id

                data:  third event


                """.utf8))
        #expect(
            events == [
                ServerSentEvent(data: "first event", id: "1"), ServerSentEvent(data: "second event"),
                ServerSentEvent(data: " third event"),
            ])
        #expect(parser.lastEventID == "")
    }

    @Test func exampleWithEmptyDataGivesTwoEventsAndDropsTheUnfinishedOne() throws {
        #expect(try events("data\n\ndata\ndata\n\ndata:") == [ServerSentEvent(data: ""), ServerSentEvent(data: "\n")])
    }

    @Test func exampleWithAndWithoutSpaceGivesIdenticalEvents() throws {
        #expect(try events("data:test\n\ndata: test\n\n") == Array(repeating: ServerSentEvent(data: "test"), count: 2))
    }

    @Test func introductoryExamplesGiveTheirTypes() throws {
        #expect(
            try events(
                "data: This is the first message.\n\ndata: This is the second message, it\ndata: has two lines.\n\n")
                == [
                    ServerSentEvent(data: "This is the first message."),
                    ServerSentEvent(data: "This is the second message, it\nhas two lines."),
                ])
        #expect(
            try events("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n") == [
                ServerSentEvent(type: "add", data: "73857293"), ServerSentEvent(type: "remove", data: "2153"),
                ServerSentEvent(type: "add", data: "113411"),
            ])
    }

    // MARK: Rules

    @Test(arguments: ["\n", "\r", "\r\n"]) func everyLineEndSeparatesLines(end: String) throws {
        let text = ["event: a", "data: b", "data: c", "", "data: d", "", ""].joined(separator: end)
        #expect(try events(text) == [ServerSentEvent(type: "a", data: "b\nc"), ServerSentEvent(data: "d")])
    }

    @Test func byteOrderMarkIsSkippedOnceAtTheStart() throws {
        #expect(try events("\u{FEFF}data: a\n\n") == [ServerSentEvent(data: "a")])
        #expect(try events("\u{FEFF}\u{FEFF}data: a\n\n") == [])
        #expect(try events("data: a\n\n\u{FEFF}data: b\n\n") == [ServerSentEvent(data: "a")])
        #expect(try events("\u{FEFF}\n\ndata: a\n\n") == [ServerSentEvent(data: "a")])
    }

    @Test func unknownFieldsAndOtherCasesAreIgnored() throws {
        #expect(try events("Data: a\ndatax: b\n data: c\nfoo\n:data: d\ndata : e\nid x: 5\n\n") == [])
    }

    @Test func eventWithoutDataIsNotDispatchedAndLosesItsType() throws {
        #expect(try events("event: a\n\ndata: b\n\n") == [ServerSentEvent(data: "b")])
    }

    @Test func emptyTypeIsAMessage() throws {
        #expect(try events("event: a\nevent:\ndata: b\n\n") == [ServerSentEvent(data: "b")])
        #expect(try events("event: a\nevent: c\ndata: b\n\n") == [ServerSentEvent(type: "c", data: "b")])
    }

    @Test func idHoldsForLaterEvents() throws {
        let (events, parser) = try parse(
            Array("id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid: 3\ndata: d\n".utf8))
        #expect(events.map(\.id) == ["1", "1", "2"])
        #expect(parser.lastEventID == "2", "an ID counts with the end of its block")
    }

    @Test func idWithNULIsIgnored() throws {
        #expect(try events("id: 1\ndata: a\n\nid: 2\u{0}\ndata: b\n\n").map(\.id) == ["1", "1"])
    }

    @Test func idOfAnEarlierConnectionHoldsUntilAnotherComes() throws {
        let (events, parser) = try parse(Array("data: a\n\nid\ndata: b\n\n".utf8), lastEventID: "7")
        #expect(events.map(\.id) == ["7", ""] && parser.lastEventID == "")
    }

    @Test func retryHasDigitsOnly() throws {
        func retry(_ value: String) throws -> Duration? { try parse(Array("retry\(value)\n".utf8)).parser.retry }
        #expect(try retry(": 1500") == .milliseconds(1_500))
        #expect(try retry(":0") == .zero)
        #expect(try retry(": 99999999999999999999999") == .milliseconds(1 << 30))
        for value in [": 1.5", ": -1", ": +1", ":  5", ": 5 ", ": 0x1", ": ٣", ":", ""] {
            #expect(try retry(value) == nil)
        }
        #expect(try parse(Array("retry: 7\nretry: x\n".utf8)).parser.retry == .milliseconds(7))
    }

    @Test func invalidUTF8IsReplaced() throws {
        let bytes = Array("data: a".utf8) + [0xFF, 0xC3] + Array("\nevent: ".utf8) + [0xE2, 0x82] + Array("\n\n".utf8)
        #expect(try parse(bytes).events == [ServerSentEvent(type: "\u{FFFD}", data: "a\u{FFFD}\u{FFFD}")])
    }

    // MARK: Limits

    @Test func lineBeyondItsLimitFails() throws {
        #expect(try events("data: 1234\n\n", limits: (10, .max)) == [ServerSentEvent(data: "1234")])
        for line in ["data: 12345\n\n", "data: 12345", ": 123456789\n", "data: 1\n\ndata: 12345"] {
            #expect(throws: EventParser.Failure.lineTooLong(limit: 10)) { try events(line, limits: (10, .max)) }
        }
    }

    @Test func eventBeyondItsLimitFails() throws {
        #expect(
            try events("data: 12\ndata: 34\n\ndata: 12345\n\n", limits: (.max, 5)).map(\.data) == ["12\n34", "12345"])
        for text in ["data: 123456\n", "data: 12\ndata: 345\n", "data:\ndata:\ndata:\ndata:\ndata:\ndata:\ndata:\n"] {
            #expect(throws: EventParser.Failure.eventTooLarge(limit: 5)) { try events(text, limits: (.max, 5)) }
        }
    }

    @Test func failureDeliversTheEventsBeforeItAndRepeats() throws {
        var parser = EventParser(maximumLineSize: 10)
        var events: [ServerSentEvent] = []
        #expect(throws: EventParser.Failure.lineTooLong(limit: 10)) {
            try parser.parse(Data("data: a\n\ndata: 12345678\n\n".utf8), into: &events)
        }
        #expect(events == [ServerSentEvent(data: "a")])
        #expect(throws: EventParser.Failure.lineTooLong(limit: 10)) {
            try parser.parse(Data("\n\n".utf8), into: &events)
        }
        #expect(events.count == 1)
    }

    // MARK: Splits

    @Test func everySplitOfRandomStreamsGivesTheSameEvents() throws {
        var generator = StreamGenerator(seed: 19)
        var count = 0
        for index in 0..<5_000 {
            let bytes = generator.stream()
            let whole = try parse(bytes)
            let reference = ReferenceParser.parse(bytes)
            try #require(whole.events == reference.events, "stream \(index): \(bytes)")
            try #require(whole.parser.lastEventID == reference.lastEventID && whole.parser.retry == reference.retry)
            count += whole.events.count
            // One chunk for each byte, and two chunks for some of the places between them.
            let places = (0..<4).map { _ in generator.below(bytes.count + 1) }
            for chunks in [bytes.map { [$0] }] + places.map({ [Array(bytes[..<$0]), Array(bytes[$0...])] }) {
                var parser = EventParser()
                var events: [ServerSentEvent] = []
                for chunk in chunks { try parser.parse(Data(chunk), into: &events) }
                try #require(events == whole.events, "stream \(index): \(bytes)")
                try #require(parser.lastEventID == reference.lastEventID && parser.retry == reference.retry)
            }
        }
        #expect(count > 5_000, "the streams have events")
    }
}

/// Generates streams of the tokens that the parser distinguishes.
struct StreamGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func below(_ limit: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(limit))
    }

    private static let tokens: [[UInt8]] =
        [
            "data", "data:", "data: ", "data: x", "event: e", "event:", "id: 1", "id", "id: \u{0}", "retry: 20",
            "retry:",
            ":", ": ping", " ", "é", "\u{1F600}", "\u{FEFF}", "abc", "data: a\ndata: b\n\n", "0", "datab", "x: y",
        ].map { Array($0.utf8) } + [[0xFF], [0xE2, 0x82], [0xF0], [0xEF, 0xBB]]

    mutating func stream() -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<(1 + below(40)) {
            if below(3) > 0 { bytes += Self.tokens[below(Self.tokens.count)] }
            if below(2) > 0 { bytes += [[10], [13], [13, 10], [10, 10], [13, 13], [13, 10, 13, 10]][below(6)] }
        }
        return bytes
    }
}

/// The algorithm of the standard, step by step, on the decoded text of the whole stream.
enum ReferenceParser {
    static func parse(_ bytes: [UInt8]) -> (events: [ServerSentEvent], lastEventID: String, retry: Duration?) {
        var scalars = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
        var lines: [String] = []
        var line = String.UnicodeScalarView()
        var index = 0
        while index < scalars.count {
            if scalars[index] == "\r" || scalars[index] == "\n" {
                lines.append(String(line))
                line = String.UnicodeScalarView()
                if scalars[index] == "\r", index + 1 < scalars.count, scalars[index + 1] == "\n" { index += 1 }
            } else {
                line.append(scalars[index])
            }
            index += 1
        }
        var (data, type, id, lastEventID) = ("", "", "", "")
        var retry: Duration?
        var events: [ServerSentEvent] = []
        for line in lines {
            if line.isEmpty {
                lastEventID = id
                if !data.isEmpty {
                    data.unicodeScalars.removeLast()
                    events.append(ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id))
                }
                (data, type) = ("", "")
                continue
            }
            let scalars = line.unicodeScalars
            let colon = scalars.firstIndex(of: ":") ?? scalars.endIndex
            let field = String(scalars[..<colon])
            var value = String(scalars[colon...].dropFirst())
            if value.unicodeScalars.first == " " { value.unicodeScalars.removeFirst() }
            switch field {
            case "data": data += value + "\n"
            case "event": type = value
            case "id": if !value.unicodeScalars.contains("\u{0}") { id = value }
            case "retry":
                if !value.isEmpty, value.utf8.allSatisfy({ (48...57).contains($0) }) {
                    retry = .milliseconds(Int(value) ?? 1 << 30)
                }
            default: break
            }
        }
        return (events, lastEventID, retry)
    }
}
