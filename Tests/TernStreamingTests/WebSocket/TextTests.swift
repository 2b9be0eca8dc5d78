import Foundation
import TernTesting
import Testing

@testable import TernStreaming

@Suite("WebSocket: UTF-8")
struct TextTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    private func isValid(_ bytes: [UInt8]) -> Bool {
        var checker = UTF8Checker()
        let isValid = unsafe bytes.withUnsafeBytes { unsafe checker.take($0) }
        return isValid && checker.isComplete
    }

    @Test func theCheckAgreesWithTheStandardLibrary() {
        var sequences: [[UInt8]] = []
        for first in 0...255 {
            sequences.append([UInt8(first)])
            for second in 0...255 { sequences.append([UInt8(first), UInt8(second)]) }
        }
        let edges: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
        for first in 0xC0...0xFF {
            for second in edges {
                for third in edges {
                    sequences.append([UInt8(first), second, third])
                    for fourth in edges { sequences.append([UInt8(first), second, third, fourth]) }
                }
            }
        }
        for bytes in sequences {
            let expected = String(validating: bytes, as: UTF8.self) != nil
            if isValid(bytes) != expected { Issue.record("\(bytes): \(!expected)") }
            // Behind and before a run of ASCII, where words are checked at a time.
            let run = [UInt8](repeating: 0x41, count: 9)
            if isValid(run + bytes + run) != expected { Issue.record("\(bytes) in a run: \(!expected)") }
        }
    }

    @Test func aTextIsCheckedAcrossFragments() {
        let bytes = Array("κόσμε 𝄞".utf8)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                let frames: [Frame] = [
                    Frame(opcode: 1, payload: Array(bytes[..<first]), isFinal: false),
                    .continuation(Array(bytes[first..<second]), isFinal: false),
                    .continuation(Array(bytes[second...])),
                ]
                #expect(ReceivedFrames.events(frames) == [.message(.text("κόσμε 𝄞"))])
            }
        }
    }

    @Test func anErrorIsFoundWithItsFirstByte() {
        // A surrogate: the second byte shows it, and the frame has more bytes that have not arrived.
        let start = Frame(opcode: 1, payload: [0x61, 0xED, 0xA0] + [UInt8](repeating: 0x80, count: 50)).bytes
        let events = ReceivedFrames.events(Array(start.prefix(5)), pieces: [3, 4, 5])
        guard case .failure(let failure)? = events.last else {
            Issue.record("nothing is found")
            return
        }
        #expect(failure.code == .invalidPayload)
        #expect(ReceivedFrames.events(Array(start.prefix(4)), pieces: [3, 4]) == [])
    }

    @Test(arguments: [[0xC3], [0xE2, 0x82], [0xF0, 0x9D, 0x84]] as [[UInt8]])
    func aTextThatEndsWithinACharacterIsRefused(bytes: [UInt8]) {
        let whole = ReceivedFrames.events([Frame(opcode: 1, payload: bytes)])
        let parts = ReceivedFrames.events([Frame(opcode: 1, payload: bytes, isFinal: false), .continuation([])])
        for events in [whole, parts] {
            guard case .failure(let failure)? = events.last else {
                Issue.record("\(bytes) is accepted")
                continue
            }
            #expect(failure.code == .invalidPayload)
        }
    }

    @Test func theReasonOfACloseFrameIsText() {
        let events = ReceivedFrames.events([Frame(opcode: 8, payload: [0x03, 0xE8, 0xFF])])
        guard case .failure(let failure)? = events.last else {
            Issue.record("bytes are accepted")
            return
        }
        #expect(failure.code == .invalidPayload)
    }

    @Test func bytesNeedNotBeText() {
        #expect(ReceivedFrames.events([.binary([0xFF, 0xFE])]) == [.message(.binary(Data([0xFF, 0xFE])))])
    }
}
