import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernStreaming

/// Cases like those of the Autobahn test suite: a server sends frames, a client sends each message back, and the server
/// compares what it receives.
@Suite("WebSocket: cases of a conformance suite", .timeLimit(.minutes(1)))
struct ConformanceTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    struct Case: Sendable {
        let name: String
        var sent: [[UInt8]]
        /// The frames that the client sends, up to its Close frame.
        var expected: [Frame]

        init(_ name: String, _ sent: [Frame], expecting expected: [Frame]) {
            self.name = name
            self.sent = sent.map(\.bytes)
            self.expected = expected
        }

        /// A case that ends with a clean close, started by the server.
        static func clean(_ name: String, _ sent: [Frame], expecting expected: [Frame]) -> Case {
            Case(name, sent + [.close(1000)], expecting: expected + [.close(1000)])
        }

        /// A case in which the client fails the connection.
        static func failing(_ name: String, _ sent: [Frame], after expected: [Frame] = [], code: UInt16 = 1002) -> Case
        {
            Case(name, sent + [.text("never read"), .close(1000)], expecting: expected + [.close(code)])
        }
    }

    private static func text(_ count: Int) -> Frame { .text(String(repeating: "*", count: count)) }
    private static func binary(_ count: Int) -> Frame { .binary([UInt8](repeating: 0xFE, count: count)) }
    private static let sizes = [0, 125, 126, 127, 128, 65_535, 65_536]

    private static let framing: [Case] = sizes.flatMap { size in
        [
            Case.clean("1.1 text of \(size)", [text(size)], expecting: [text(size)]),
            Case.clean("1.2 binary of \(size)", [binary(size)], expecting: [binary(size)]),
        ]
    }
    private static let pings: [Case] = [
        .clean("2.1 empty Ping", [.ping()], expecting: [.pong()]),
        .clean("2.2 Ping with text", [.ping(Array("Hello".utf8))], expecting: [.pong(Array("Hello".utf8))]),
        .clean("2.3 Ping with bytes", [.ping([0, 255, 254])], expecting: [.pong([0, 255, 254])]),
        .clean(
            "2.4 Ping of 125", [.ping([UInt8](repeating: 254, count: 125))],
            expecting: [.pong([UInt8](repeating: 254, count: 125))]),
        .failing("2.5 Ping of 126", [.ping([UInt8](repeating: 254, count: 126))]),
        .clean("2.7 Pong not asked for", [.pong(), .pong([1]), .ping([2])], expecting: [.pong([2])]),
        .clean(
            "2.10 ten Pings", (0..<10).map { .ping([UInt8($0)]) }, expecting: (0..<10).map { .pong([UInt8($0)]) }),
    ]
    private static func reserved(_ bits: UInt8, opcode: UInt8 = 1) -> Frame {
        Frame(opcode: opcode, payload: opcode == 8 ? [3, 232] : [], reservedBits: bits)
    }
    private static let reservedBits: [Case] = [
        .failing("3.1 RSV3", [reserved(1)]),
        .failing("3.2 RSV2 after a message", [text(3), reserved(2), .ping()], after: [text(3)]),
        .failing("3.3 RSV2 and RSV3", [text(3), reserved(3), .ping()], after: [text(3)]),
        .failing("3.4 RSV1", [text(3), reserved(4), .ping()], after: [text(3)]),
        .failing("3.5 RSV1 and RSV3 with bytes", [reserved(5, opcode: 2)]),
        .failing("3.6 RSV1 and RSV2 of a Ping", [reserved(6, opcode: 9)]),
        .failing("3.7 all of a Close", [reserved(7, opcode: 8)]),
    ]
    private static let opcodes: [Case] = ([3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8]).flatMap { opcode in
        [
            Case.failing("4 opcode \(opcode)", [Frame(opcode: opcode)]),
            Case.failing("4 opcode \(opcode) with bytes", [Frame(opcode: opcode, payload: [1])]),
            Case.failing(
                "4 opcode \(opcode) after a message", [text(3), Frame(opcode: opcode), .ping()], after: [text(3)]),
        ]
    }
    private static let fragmentation: [Case] = [
        .failing("5.1 Ping in fragments", [Frame(opcode: 9, payload: [1], isFinal: false), .continuation([2])]),
        .failing("5.2 Pong in fragments", [Frame(opcode: 10, payload: [1], isFinal: false), .continuation([2])]),
        .clean("5.3 text in two", [.text("a", isFinal: false), .continuation([98])], expecting: [.text("ab")]),
        .clean(
            "5.6 Ping in between", [.text("a", isFinal: false), .ping([9]), .continuation([98])],
            expecting: [.pong([9]), .text("ab")]),
        .failing("5.9 continuation first", [.continuation([1]), .text("a")]),
        .failing("5.10 continuation first, not the last", [.continuation([1], isFinal: false), .text("a")]),
        .failing(
            "5.15 continuation after the end",
            [.text("a", isFinal: false), .continuation([98]), .continuation([99]), .text("d")], after: [.text("ab")]),
        .failing("5.18 text in text", [.text("a", isFinal: false), .text("b")]),
        .clean(
            "5.19 five fragments and Pings",
            [
                .text("1", isFinal: false), .continuation([50], isFinal: false), .ping([1]),
                .continuation([51], isFinal: false), .continuation([52], isFinal: false), .ping([2]),
                .continuation([53]),
            ], expecting: [.pong([1]), .pong([2]), .text("12345")]),
        .clean(
            "6.1 empty fragments", [.text("", isFinal: false), .continuation([], isFinal: false), .continuation([])],
            expecting: [.text("")]),
    ]
    private static let validTexts =
        ["Hello-µ@ßöäüàá-UTF-8!!", "κόσμε"]
        + ([
            0, 0x80, 0x800, 0x10000, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFDD0, 0x1FFFE,
        ] as [UInt32]).compactMap { Unicode.Scalar($0).map { String(Character($0)) } }
    private static let invalidTexts: [[UInt8]] = [
        [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xED, 0xA0, 0x80, 0x65], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80],
        [0xF7, 0xBF, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xBF], [0x80, 0xBF], [0xC0], [0xC0, 0x20],
        [0xE0, 0x80], [0xF0, 0x80, 0x80], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF0, 0x80, 0x80, 0xAF], [0xC1, 0xBF],
        [0xE0, 0x9F, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
        [0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80], [0xFE], [0xFF], [0xCE], [0xE1, 0xBD],
    ]
    private static let texts: [Case] =
        validTexts.map { .clean("6 \($0.unicodeScalars.map(\.value))", [.text($0)], expecting: [.text($0)]) }
        + invalidTexts.map { .failing("6 \($0)", [Frame(opcode: 1, payload: $0)], code: 1007) }
        + invalidTexts.map { bytes in
            .failing(
                "6 \(bytes) in fragments",
                bytes.indices.map { index in
                    Frame(opcode: index == 0 ? 1 : 0, payload: [bytes[index]], isFinal: index == bytes.count - 1)
                }, code: 1007)
        }
    private static let closing: [Case] =
        [
            Case("7.1.1 a message before", [.text("Hello"), .close(1000)], expecting: [.text("Hello"), .close(1000)]),
            Case("7.1.2 Close twice", [.close(1000), .close(1000)], expecting: [.close(1000)]),
            Case("7.1.3 Ping after Close", [.close(1000), .ping()], expecting: [.close(1000)]),
            Case("7.1.4 text after Close", [.close(1000), .text("a")], expecting: [.close(1000)]),
            Case(
                "7.1.5 Close within a message", [.text("a", isFinal: false), .close(1000), .continuation([98])],
                expecting: [.close(1000)]),
            Case("7.3.1 no code", [Frame(opcode: 8)], expecting: [Frame(opcode: 8)]),
            Case("7.3.2 half a code", [Frame(opcode: 8, payload: [3])], expecting: [.close(1002)]),
            Case("7.3.4 a reason", [.close(1000, "Hello World!")], expecting: [.close(1000)]),
            Case(
                "7.3.5 a reason of 123", [.close(1000, String(repeating: "*", count: 123))], expecting: [.close(1000)]),
            Case(
                "7.3.6 a reason of 124", [.close(1000, String(repeating: "*", count: 124))], expecting: [.close(1002)]),
            Case(
                "7.5.1 a reason that is not UTF-8",
                [Frame(opcode: 8, payload: [3, 232, 0xCE, 0xBA, 0xED, 0xA0, 0x80])],
                expecting: [.close(1007)]),
        ]
        + ([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] as [UInt16]).map {
            Case("7.7 code \($0)", [.close($0)], expecting: [.close($0)])
        }
        + ([0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] as [UInt16]).map {
            Case("7.9 code \($0)", [.close($0)], expecting: [.close(1002)])
        }

    static let cases = framing + pings + reservedBits + opcodes + fragmentation + texts + closing

    /// Runs a case. The server sends all frames at once, or in pieces.
    private func received(
        _ one: Case, pieces: Int?, options: WebSocket.Options = WebSocket.Options()
    ) async throws -> [Frame] {
        let frames = Recorded()
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket()
            let bytes = one.sent.flatMap { $0 }
            if let pieces {
                // `try?`: the client ends the connection before the end of what is sent, if it fails it.
                try? exchange.write(bytes, inPiecesOf: pieces)
            } else {
                try exchange.write(bytes)
            }
            while let frame = try exchange.readFrame() {
                guard frame.isMasked else { throw NotMasked() }
                var plain = frame
                plain.isMasked = false
                frames.append(plain)
                if frame.opcode == 8 { return }
            }
        }
        defer { server.stop() }
        let socket = try await Session().webSocket(server.url.absoluteString, options: options)
        do {
            for try await message in socket.messages { try await socket.send(message) }
        } catch {
            // The case compares what the server has received.
        }
        for await _ in socket.states {}
        return frames.all
    }

    @Test(arguments: cases.indices) func theServerReceivesWhatItExpects(index: Int) async throws {
        let one = Self.cases[index]
        #expect(try await received(one, pieces: nil) == one.expected, "\(one.name)")
        if one.sent.joined().count < 400 {
            #expect(try await received(one, pieces: 1) == one.expected, "\(one.name), byte by byte")
        }
    }

    @Test(arguments: [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]) func largeMessagesComeBack(
        size: Int
    ) async throws {
        for frame in [Self.text(size), Self.binary(size)] {
            let fragments = stride(from: 0, to: size, by: 1 << 20).map { start in
                Frame(
                    opcode: start == 0 ? frame.opcode : 0,
                    payload: Array(frame.payload[start..<min(size, start + 1 << 20)]),
                    isFinal: start + 1 << 20 >= size)
            }
            for sent in [[frame], fragments] {
                let one = Case.clean("9 \(size)", sent, expecting: [])
                let frames = try await received(one, pieces: nil)
                let payload = frames.dropLast().flatMap(\.payload)
                #expect(payload.count == size)
                #expect(payload == frame.payload)
                #expect(frames.first?.opcode == frame.opcode)
                #expect(frames.dropLast().dropFirst().allSatisfy { $0.opcode == 0 })
                #expect(frames.last == .close(1000))
            }
        }
    }

    @Test func aMessageAboveTheLimitFailsWith1009() async throws {
        var options = WebSocket.Options()
        options.maximumMessageSize = 1_000
        options.maximumFrameSize = 500
        let cases: [Case] = [
            .failing("a frame", [Self.binary(501)], code: 1009),
            .failing(
                "fragments",
                [
                    .binary([UInt8](repeating: 1, count: 500), isFinal: false),
                    .continuation([UInt8](repeating: 1, count: 500), isFinal: false), .continuation([1]),
                ],
                code: 1009),
        ]
        for one in cases {
            #expect(try await received(one, pieces: nil, options: options) == one.expected, "\(one.name)")
        }
    }
}

/// A frame of the client has no mask (RFC 6455 §5.3).
private struct NotMasked: Error {}
