import Foundation
import Tern
import TernTesting
import Testing

@testable import TernStreaming

@Suite("WebSocket: frames")
struct FrameTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    private static let conversation: [Frame] = [
        .text("hé"), .binary([0, 255]), .text("wo", isFinal: false), .ping([7]), .continuation(Array("rld".utf8)),
        .pong(), .binary([], isFinal: false), .continuation([1], isFinal: false), .continuation([]),
        .text(""), .binary([UInt8](repeating: 9, count: 126)), .text(String(repeating: "x", count: 65_536)),
        .close(1000, "bye"),
    ]
    private static let expected: [MessageAssembler.Event] = [
        .message(.text("hé")), .message(.binary(Data([0, 255]))), .ping([7]), .message(.text("world")), .pong([]),
        .message(.binary(Data([1]))), .message(.text("")), .message(.binary(Data(repeating: 9, count: 126))),
        .message(.text(String(repeating: "x", count: 65_536))), .close(.normalClosure, reason: "bye"),
    ]

    @Test func everySplitGivesTheSameEvents() {
        let bytes = Self.conversation.flatMap(\.bytes)
        for split in 0...300 {
            #expect(ReceivedFrames.events(bytes, pieces: [split, bytes.count]) == Self.expected, "\(split)")
        }
        for size in [1, 2, 3, 7, 1_000] {
            let pieces = Array(stride(from: size, to: bytes.count, by: size)) + [bytes.count]
            #expect(ReceivedFrames.events(bytes, pieces: pieces) == Self.expected, "pieces of \(size)")
        }
    }

    /// Frames that violate RFC 6455, and the section that the reason names.
    private static let violations: [(name: String, bytes: [UInt8], section: String)] = [
        ("RSV1 without an extension", [0xC1, 0], "§5.2"), ("RSV2", [0xA1, 0], "§5.2"), ("RSV3", [0x91, 0], "§5.2"),
        ("reserved bits of a control frame", [0xF9, 0], "§5.2"),
        ("opcode 3", [0x83, 0], "§5.2"), ("opcode 7", [0x87, 0], "§5.2"), ("opcode 11", [0x8B, 0], "§5.2"),
        ("opcode 15", [0x8F, 0], "§5.2"), ("a mask", [0x81, 0x80, 1, 2, 3, 4], "§5.1"),
        ("a Ping in fragments", [0x09, 0], "§5.5"), ("a Close in fragments", [0x08, 0], "§5.5"),
        ("a Ping of 126 bytes", [0x89, 126, 0, 126], "§5.5"), ("a Close of 2^32 bytes", [0x88, 127], "§5.5"),
        ("a continuation of nothing", [0x80, 0], "§5.4"), ("a message in a message", [0x01, 0, 0x81, 0], "§5.4"),
        ("a continuation after the end", [0x01, 0, 0x80, 0, 0x80, 0], "§5.4"),
        ("125 in two bytes", [0x82, 126, 0, 125], "§5.2"),
        ("65,535 in eight", [0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255], "§5.2"),
        ("2^63 bytes", [0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0], "§5.2"),
        ("half a code", [0x88, 1, 3], "§5.5.1"), ("code 999", Frame.close(999).bytes, "§7.4"),
        ("code 1004", Frame.close(1004).bytes, "§7.4"), ("code 1005", Frame.close(1005).bytes, "§7.4"),
        ("code 1006", Frame.close(1006).bytes, "§7.4"), ("code 1015", Frame.close(1015).bytes, "§7.4"),
        ("code 1016", Frame.close(1016).bytes, "§7.4"), ("code 2999", Frame.close(2999).bytes, "§7.4"),
        ("code 5000", Frame.close(5000).bytes, "§7.4"), ("code 0", Frame.close(0).bytes, "§7.4"),
    ]

    @Test(arguments: violations.indices) func aViolationFailsTheConnection(index: Int) throws {
        let violation = Self.violations[index]
        let valid = Frame.text("before").bytes
        for pieces in [nil, Array(1...(valid.count + violation.bytes.count))] {
            let events = ReceivedFrames.events(valid + violation.bytes, pieces: pieces)
            #expect(events.first == .message(.text("before")), "\(violation.name)")
            guard case .failure(let failure)? = events.last else {
                Issue.record("\(violation.name) is accepted: \(events)")
                return
            }
            #expect(failure.code == .protocolError, "\(violation.name)")
            #expect(failure.reason.contains("\(violation.section))"), "\(violation.name): \(failure.reason)")
        }
    }

    @Test func aFailureIsReturnedAgain() throws {
        var assembler = MessageAssembler(maximumFrameSize: 10, maximumMessageSize: 10)
        let bytes: [UInt8] = [0x83, 0, 0x81, 0]
        var position = 0
        let first = unsafe bytes.withUnsafeBytes { unsafe assembler.next($0, from: &position) }
        let second = unsafe bytes.withUnsafeBytes { unsafe assembler.next($0, from: &position) }
        #expect(first != nil)
        #expect(first == second)
    }

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1011, 1012, 1014, 3000, 3999, 4000, 4999] as [UInt16])
    func aCodeForFramesIsAccepted(code: UInt16) {
        let events = ReceivedFrames.events([.close(code)])
        #expect(events == [.close(WebSocket.CloseCode(rawValue: code), reason: "")])
    }

    @Test func sizesAreLimitedBeforeTheBytesArrive() {
        let tooLong: [[UInt8]] = [
            // The head of a frame alone: 101 bytes, and the largest length.
            [0x82, 101], [0x82, 127, 127, 255, 255, 255, 255, 255, 255, 255],
            // Fragments whose sum is too large.
            Frame.binary([UInt8](repeating: 0, count: 60), isFinal: false).bytes + [0x80, 41],
        ]
        for bytes in tooLong {
            let events = ReceivedFrames.events(bytes, frameSize: 100, messageSize: 100)
            guard case .failure(let failure)? = events.last else {
                Issue.record("\(bytes) is accepted")
                continue
            }
            #expect(failure.code == .messageTooBig)
        }
        let exact = Frame.binary([UInt8](repeating: 0, count: 100)).bytes
        #expect(ReceivedFrames.events(exact, frameSize: 100, messageSize: 100).count == 1)
        // Control frames have a limit of their own.
        let ping = Frame.ping([UInt8](repeating: 0, count: 125))
        #expect(ReceivedFrames.events(ping.bytes, frameSize: 10, messageSize: 10) == [.ping(ping.payload)])
    }

    // MARK: Frames of the client

    @Test(arguments: [0, 1, 7, 8, 9, 125, 126, 127, 65_535, 65_536, 70_000]) func aFrameIsMasked(count: Int) throws {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var writer = FrameWriter()
        let frame = Array(writer.frame(.binary, payload))
        let headSize = count < 126 ? 2 : count < 65_536 ? 4 : 10
        #expect(frame[0] == 0x82)
        #expect(frame[1] & 0x80 == 0x80)
        #expect(frame.count == headSize + 4 + count)
        let key = Array(frame[headSize..<(headSize + 4)])
        let unmasked = frame[(headSize + 4)...].enumerated().map { $1 ^ key[$0 % 4] }
        #expect(unmasked == payload)
        // The length is the one that a server reads.
        var header = frame
        header[1] &= 0x7F
        header.removeSubrange(headSize..<(headSize + 4))
        header.replaceSubrange(headSize..., with: payload)
        #expect(ReceivedFrames.events(header) == [.message(.binary(Data(payload)))])
    }

    @Test func keysDoNotRepeat() {
        var keys = MaskingKeys()
        let count = 10_000
        let distinct = Set((0..<count).map { _ in keys.next() }).count
        // Two equal keys among so many are expected once in 86 runs; ten never are.
        #expect(distinct > count - 10)
    }

    /// No fragment is kept: an endless message of empty ones costs no memory.
    @Test func aMillionEmptyFragmentsAreOneMessage() {
        let count = 1_000_000
        let fragments = [UInt8](repeating: 0, count: 2 * count)
        let bytes = Frame.text("a", isFinal: false).bytes + fragments + Frame.continuation([98]).bytes
        #expect(ReceivedFrames.events(bytes, frameSize: 1, messageSize: 2) == [.message(.text("ab"))])
    }
}
