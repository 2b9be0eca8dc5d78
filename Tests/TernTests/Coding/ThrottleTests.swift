import TernConcurrency
import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Throttle", .timeLimit(.minutes(1)))
struct ThrottleTests {
    @Test func aRateIsCutIntoTenthsOfASecond() {
        let throttle = Request.Body.Throttle.bytesPerSecond(1_000)
        #expect(throttle.pieceSize == 100)
        #expect(throttle.delay(after: 100) == .milliseconds(100))
    }

    @Test(arguments: [0, -1, Int.min])
    func zeroRateIsRefusedBeforeATaskExists(rate: Int) throws {
        #expect(Request.Body.Throttle.bytesPerSecond(rate).pieceSize == 1)
        var request = try Request(.post, "https://example.com/a")
        request.body = .text("x").throttled(.bytesPerSecond(rate))
        let session = Session(configuration: Session.Configuration(), transport: StubTransport([:]))
        let error = #expect(throws: NetworkError.self) {
            _ = try PreparedRequest(request, registry: session.tasks, delivery: .collected)
        }
        #expect(error?.kind == .invalidRequest && error?.reason.contains("\(rate) bytes a second") == true)
    }

    @Test func packetSizeDefaultsToThatOfAFNetworking() {
        let throttle = Request.Body.Throttle.packets()
        #expect(throttle.pieceSize == 16_384)
        #expect(throttle.delay(after: 1) == .milliseconds(200))
    }

    @Test func oneWaitReleasesOnePiece() async throws {
        let clock = ManualClock()
        let pipe = UploadPipe(capacity: 4)
        let isDone = Lock(false)
        let pushing = Task {
            var throttle = BodyThrottle(.packets(of: 4, delay: .seconds(1), clock: clock))
            let isTaken = try await throttle.push(Data("abcdefghij".utf8), into: pipe) {}
            isDone.withLock { $0 = true }
            return isTaken
        }
        for expected in ["abcd", "efgh"] {
            try await clock.waitForSleepers(1)
            #expect(read(pipe) == expected)
            #expect(read(pipe).isEmpty && !isDone.withLock { $0 })
            clock.advance(by: .seconds(1))
        }
        #expect(try await pushing.value)
        #expect(read(pipe) == "ij")
    }

    @Test func aCancelledWaitEnds() async throws {
        let clock = ManualClock()
        let pushing = Task {
            var throttle = BodyThrottle(.packets(of: 1, delay: .seconds(1), clock: clock))
            return try await throttle.push(Data("ab".utf8), into: UploadPipe(capacity: 1)) {}
        }
        try await clock.waitForSleepers(1)
        pushing.cancel()
        await #expect(throws: CancellationError.self) { try await pushing.value }
    }

    private func read(_ pipe: UploadPipe) -> String {
        var buffer = [UInt8](repeating: 0, count: 64)
        let (read, wake) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
        unsafe wake?.resume()
        guard case .bytes(let count) = read else { return "" }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}
