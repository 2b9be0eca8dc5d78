import Foundation
import Tern
import TernStreaming

extension FuzzTarget {
    /// The bytes that a server sends on a WebSocket, with and without compression, and the fields of its handshake.
    static let webSocket = [
        FuzzTarget(
            name: "websocket", seeds: { _ in WebSocketFuzzing.seeds },
            run: { try WebSocketFuzzing.check(Array($0), $1) }),
        FuzzTarget(
            name: "websocket-handshake", seeds: { _ in HandshakeFuzzing.seeds.map { Array($0.utf8) } },
            tokens: [
                "permessage-deflate", "server_max_window_bits=", "; ", ", ", "\"", "=", "15",
                "client_no_context_takeover",
            ],
            run: { input, _ in HandshakeFuzzing.check(input) }),
    ]
}

private enum WebSocketFuzzing {
    private static let limit = 4_096

    static let seeds: [[UInt8]] = [
        [0x81, 5] + Array("hello".utf8) + [0x82, 2, 0, 255, 0x89, 1, 7, 0x8A, 0],
        [0x01, 2, 0xCE, 0xBA, 0x89, 0, 0x00, 2, 0xE1, 0xBD, 0x80, 1, 0xB9, 0x88, 5, 3, 232, 98, 121, 101],
        [0x82, 126, 0, 126] + [UInt8](repeating: 9, count: 126) + [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0],
        [0xC1, 7, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xC1, 5, 0xF2, 0x00, 0x11, 0x00, 0x00, 0x88, 0],
        [
            0xC1, 8, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0x41, 3, 0xF2, 0x48, 0xCD, 0x80, 4, 0xC9, 0xC9,
            0x07, 0x00,
        ],
    ]

    /// Reads the input in several splits, which must give the same events, and checks the limits.
    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let isCompressed = choice & 1 == 1
        let whole = events(input, [input.count], isCompressed)
        for split in pieces(of: input.count, choice) {
            let other = events(input, split, isCompressed)
            try require(other == whole, "another split gives other events: \(whole) and \(other)")
        }
        for event in whole {
            guard case .message(let message) = event else { continue }
            try require(message.byteCount <= limit, "a message of \(message.byteCount) bytes exceeds the limit")
        }
        return whole.map(name).reduce(into: []) { if $0.last != $1 { $0.append($1) } }.prefix(6).joined(separator: " ")
    }

    private static func pieces(of count: Int, _ choice: UInt64) -> [[Int]] {
        let step = 1 + Int(choice >> 1 % 61)
        return [Array(stride(from: step, to: count, by: step)) + [count], Array(0...count)]
    }

    private static func events(_ input: [UInt8], _ pieces: [Int], _ isCompressed: Bool) -> [MessageAssembler.Event] {
        var assembler = MessageAssembler(
            maximumFrameSize: limit, maximumMessageSize: limit,
            inflater: isCompressed ? MessageInflater(windowBits: 15, resets: false) : nil)
        var events: [MessageAssembler.Event] = []
        var start = 0
        for end in pieces {
            // Each piece lies in memory of its own size, so that the sanitizer finds a read behind it.
            let piece = Array(input[start..<end])
            start = end
            var position = 0
            let hasFailed = unsafe piece.withUnsafeBytes { bytes in
                while let event = unsafe assembler.next(bytes, from: &position) {
                    events.append(event)
                    if case .failure = event { return true }
                }
                return false
            }
            if hasFailed { break }
        }
        return events
    }

    private static func name(_ event: MessageAssembler.Event) -> String {
        switch event {
        case .message(.text): "text"
        case .message(.binary): "binary"
        case .ping: "ping"
        case .pong: "pong"
        case .close: "close"
        case .failure(let failure): "\(failure.code) \(failure.reason.suffix(18))"
        }
    }
}

private enum HandshakeFuzzing {
    static let seeds = [
        "permessage-deflate", "permessage-deflate; server_no_context_takeover; client_max_window_bits=12",
        "permessage-deflate; server_max_window_bits=\"10\", x-other; a=b", "a;b=\"c d\"",
    ]

    static func check(_ input: Data) -> String {
        let value = String(decoding: input, as: UTF8.self)
        guard let list = HandshakeExtension.list(value) else { return "malformed" }
        guard let first = list.first else { return "none" }
        do throws(ProtocolFailure) {
            let agreed = try PerMessageDeflate(first.parameters, to: WebSocket.Compression())
            return "\(list.count > 3 ? 3 : list.count) \(agreed)"
        } catch {
            return "refused"
        }
    }
}
