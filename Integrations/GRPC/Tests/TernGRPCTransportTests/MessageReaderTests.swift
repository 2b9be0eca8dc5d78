import Foundation
import Testing

@testable import TernGRPCTransport

@Suite("Messages: framing of responses") struct MessageReaderTests {
    private typealias Message = MessageReader.Message

    private static func frame(_ bytes: [UInt8], flag: UInt8 = 0) -> [UInt8] {
        let count = UInt32(bytes.count)
        return [flag] + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * UInt32($0))) } + bytes
    }

    /// Reads pieces to the end.
    private static func read(
        _ pieces: [[UInt8]], limit: Int = 100
    ) throws -> (messages: [Message], isAtBoundary: Bool) {
        var reader = MessageReader(limit: limit)
        var messages: [Message] = []
        for piece in pieces {
            reader.append(Data(piece))
            while let message = try reader.next() { messages.append(message) }
        }
        return (messages, reader.isAtBoundary)
    }

    @Test(arguments: [
        ([UInt8](), [[UInt8]](), true),
        (frame([]), [[]], true),
        (frame([1, 2, 3]), [[1, 2, 3]], true),
        (frame([]) + frame([]) + frame([7]), [[], [], [7]], true),
        ([0], [], false),
        ([0, 0, 0, 0], [], false),
        ([0, 0, 0, 0, 1], [], false),
        (frame([1]) + [0, 0], [[1]], false),
        (Array(frame([1, 2]).dropLast()), [], false),
    ])
    func messagesAreReadInWholeAndByteByByte(bytes: [UInt8], expected: [[UInt8]], isAtBoundary: Bool) throws {
        for pieces in [[bytes], bytes.map { [$0] }] {
            let result = try Self.read(pieces)
            #expect(result.messages.map { Array($0.bytes) } == expected)
            #expect(result.messages.allSatisfy { !$0.isCompressed })
            #expect(result.isAtBoundary == isAtBoundary)
        }
    }

    @Test func theFlagTellsWhetherAMessageIsCompressed() throws {
        let result = try Self.read([Self.frame([1], flag: 1) + Self.frame([2])])
        #expect(
            result.messages == [
                Message(bytes: Data([1]), isCompressed: true), Message(bytes: Data([2]), isCompressed: false),
            ])
    }

    @Test(arguments: [2, 3, 0x80, 0xFF] as [UInt8]) func anotherFlagIsRefused(flag: UInt8) {
        #expect(throws: MessageReader.Failure.invalidFlag(flag)) {
            try Self.read([Self.frame([1]) + Self.frame([], flag: flag)])
        }
    }

    @Test(arguments: [(101, 100, true), (100, 100, false), (1, 0, true), (0, 0, false)])
    func aLengthAboveTheLimitIsRefusedBeforeItsBytesArrive(length: Int, limit: Int, isRefused: Bool) throws {
        var reader = MessageReader(limit: limit)
        reader.append(Data(Self.frame(Array(repeating: 1, count: length)).prefix(5)))
        if isRefused {
            #expect(throws: MessageReader.Failure.tooLarge(UInt32(length))) { try reader.next() }
            // The failure stays, whatever follows.
            reader.append(Data(Self.frame([])))
            #expect(throws: MessageReader.Failure.tooLarge(UInt32(length))) { try reader.next() }
        } else {
            #expect(try reader.next()?.bytes.count == (length == 0 ? 0 : nil))
        }
    }

    @Test func theGreatestLengthReservesNothing() throws {
        var reader = MessageReader(limit: .max)
        reader.append(Data([0, 0xFF, 0xFF, 0xFF, 0xFF, 1]))
        let message = try reader.next()
        #expect(message == nil)
        #expect(!reader.isAtBoundary)
    }

    @Test func aMessageInOnePieceIsASliceOfIt() throws {
        var reader = MessageReader(limit: 1 << 20)
        let piece = Data(Self.frame(Array(repeating: 5, count: 1 << 16)) + Self.frame([6]))
        reader.append(piece)
        let message = try #require(try reader.next())
        let isSame = unsafe piece.withUnsafeBytes { all in
            unsafe message.bytes.withUnsafeBytes { unsafe $0.baseAddress == all.baseAddress.map { unsafe $0 + 5 } }
        }
        #expect(isSame)
    }

    /// Random messages, cut into random pieces, and the same with a damaged byte.
    @Test func messagesDoNotDependOnThePieces() throws {
        var random = Generator(state: 49)
        for round in 0..<300 {
            let messages = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            }
            let bytes = messages.flatMap { Self.frame($0) }
            var damaged = bytes
            if let index = damaged.indices.randomElement(using: &random) {
                damaged[index] ^= UInt8.random(in: 1...255, using: &random)
            }
            for input in [bytes, damaged] {
                var pieces: [[UInt8]] = []
                var rest = input[...]
                while !rest.isEmpty {
                    let count = Int.random(in: 1...max(1, min(rest.count, 30)), using: &random)
                    pieces.append(Array(rest.prefix(count)))
                    rest = rest.dropFirst(count)
                }
                let whole = Result { try Self.read([input]) }
                let cut = Result { try Self.read(pieces) }
                switch (whole, cut) {
                case (.success(let whole), .success(let cut)):
                    #expect(whole == cut, "round \(round)")
                    if input == bytes {
                        #expect(whole.messages.map { Array($0.bytes) } == messages && whole.isAtBoundary)
                    }
                    // No byte is invented.
                    #expect(whole.messages.reduce(0) { $0 + $1.bytes.count + 5 } <= input.count)
                case (.failure(let whole as MessageReader.Failure), .failure(let cut as MessageReader.Failure)):
                    #expect(whole == cut && input != bytes, "round \(round)")
                default:
                    Issue.record("round \(round): \(whole) and \(cut)")
                }
            }
        }
    }
}

/// A generator whose numbers are the same in each run.
struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}
