import Testing

@testable import TernEngine

@Suite struct HTTP2FrameGuardTests {
    private func header(_ type: UInt8, flags: UInt8 = 0, length: Int = 0) -> [UInt8] {
        [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags, 0, 0, 0, 1]
            + [UInt8](repeating: 0, count: length)
    }

    /// The number of frames that pass before one is refused.
    private func passing(_ frame: [UInt8], in guardian: inout HTTP2FrameGuard, at now: UInt64 = 0) -> Int {
        for count in 0..<20_000 {
            let verdict = unsafe frame.withUnsafeBytes { unsafe guardian.scan($0, at: now) }
            if verdict.refusal != nil { return count }
        }
        return .max
    }

    @Test(arguments: [
        (UInt8(0x0), "empty DATA"), (0x1, "HEADERS"), (0x2, "PING"), (0x3, "RST_STREAM"), (0x4, "SETTINGS"),
        (0x6, "PING"), (0x7, "control"), (0x8, "WINDOW_UPDATE"), (0xA, "control"), (0xFF, "control"),
    ])
    func aFloodIsRefused(_ type: UInt8, name: String) throws {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        #expect(passing(header(type), in: &guardian) == 1_000)
        let verdict = unsafe header(type).withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
        let refusal = try #require(verdict.refusal)
        #expect(refusal.code == .enhanceYourCalm)
        #expect(refusal.error.kind == .malformedResponse)
        #expect(refusal.error.reason.contains(name))
    }

    /// RFC 9113 §6.3 and RFC 9218 §7.1. The highest bit of a stream's number is reserved.
    @Test(arguments: [
        (UInt8(0x2), UInt32(0), true), (0x2, 0x8000_0000, true), (0x2, 1, false), (0x2, 0x100, false),
        (0x10, 0, true), (0x10, 1, true), (0x6, 0, false),
    ])
    func aPriorityThatNoServerMaySendIsRefused(_ type: UInt8, stream: UInt32, isRefused: Bool) {
        let number = [24, 16, 8, 0].map { UInt8(stream >> $0 & 0xFF) }
        let frame = [0, 0, 5, type, 0] + number + [0, 0, 0, 1, 15]
        // The frame before it has another stream.
        let bytes = header(3, length: 4) + frame
        for split in 0...bytes.count {
            var guardian = HTTP2FrameGuard(headLimit: 1_000)
            let verdicts = [bytes.prefix(split), bytes.dropFirst(split)].map { part in
                unsafe Array(part).withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
            }
            let refusals = verdicts.compactMap(\.refusal)
            #expect(refusals.isEmpty == !isRefused)
            #expect(refusals.allSatisfy { $0.code == .protocolError && $0.error.kind == .malformedResponse })
        }
    }

    @Test func timeAddsTokensUpToTheBurst() {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        #expect(passing(header(6), in: &guardian) == 1_000)
        // The refused frame took a token too, and its header is not read to the end.
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        for _ in 0..<1_000 { _ = unsafe header(6).withUnsafeBytes { unsafe guardian.scan($0, at: 0) } }
        #expect(passing(header(6), in: &guardian, at: 1_000_000_000) == 100)
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        #expect(passing(header(6), in: &guardian, at: .max) == 1_000)
    }

    @Test func workAddsTokens() {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        for _ in 0..<10 { guardian.requestSubmitted() }
        #expect(passing(header(3), in: &guardian) == 1_010)
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        for _ in 0..<10 { guardian.dataSent() }
        #expect(passing(header(8), in: &guardian) == 1_340)
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        for _ in 0..<500 { _ = unsafe header(0, length: 1).withUnsafeBytes { unsafe guardian.scan($0, at: 0) } }
        #expect(passing(header(0, flags: 8, length: 256), in: &guardian) == 1_500)
    }

    /// Go's server updates both windows for each 4 KiB that its handler reads.
    @Test func windowsOfAServerThatReadsSmallPiecesAreNoFlood() {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        for frame in 0..<2_000 {
            guardian.dataSent()
            for _ in 0..<8 {
                let verdict = unsafe header(8).withUnsafeBytes {
                    unsafe guardian.scan($0, at: UInt64(frame) * 1_000_000)
                }
                guard verdict.refusal == nil else {
                    Issue.record("frame \(frame) is refused: \(verdict)")
                    return
                }
            }
        }
    }

    @Test func aLongHeaderBlockIsRefused() {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        #expect(passing(header(1, length: 16_384), in: &guardian) == 1_000)
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        _ = unsafe header(1).withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
        #expect(passing(header(9), in: &guardian) == 64)
        guardian = HTTP2FrameGuard(headLimit: 1_000)
        _ = unsafe header(1, length: 16_384).withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
        // 2,000 + 65,536 bytes, of which the first frame has 16,384.
        #expect(passing(header(9, length: 16_384), in: &guardian) == 3)
    }

    @Test func aPushIsRefused() {
        var guardian = HTTP2FrameGuard(headLimit: 1_000)
        let verdict = unsafe header(5).withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
        #expect(verdict.refusal?.code == .protocolError)
        #expect(verdict.accepted == 4)
    }

    @Test func everySplitGivesTheSameVerdict() {
        let input = header(4, length: 12) + header(0, length: 3) + header(1, length: 7) + header(5, length: 2)
        for split in 0...input.count {
            var guardian = HTTP2FrameGuard(headLimit: 1_000)
            var accepted = 0
            var refusal: HTTP2FrameGuard.Refusal?
            for piece in [input[..<split], input[split...]] where refusal == nil {
                let verdict = unsafe piece.withUnsafeBytes { unsafe guardian.scan($0, at: 0) }
                accepted += verdict.accepted
                refusal = verdict.refusal
            }
            #expect(accepted == input.count - 2 - 5)
            #expect(refusal?.code == .protocolError)
        }
    }

    @Test func extremeLimitsDoNotOverflow() {
        for limit in [Int.min, -1, 0, .max] {
            var guardian = HTTP2FrameGuard(headLimit: limit)
            #expect(passing(header(1, length: 10), in: &guardian) == 1_000)
        }
    }
}
