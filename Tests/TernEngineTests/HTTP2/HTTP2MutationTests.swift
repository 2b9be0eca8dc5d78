#if os(Linux)
import Testing
@testable import TernEngine

/// A generator of numbers with a fixed seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

@Suite(.timeLimit(.minutes(1))) struct HTTP2MutationTests {
    private static let ok = [(":status", "200")]

    private static let samples: [[TestFrame]] = [
        [.headers(1, ok + [("content-length", "5")]), .data(1, "hello", end: true)],
        [.headers(1, [(":status", "100")]), .headers(1, ok), .data(1, "a"), .headers(1, [("x", "y")], end: true)],
        [.headers(3, ok, end: true), .reset(1, 7), .goAway(3), .window(0, 100), .window(5, 100)],
        [
            .settings([(3, 1), (4, 100), (1, 0)]), .headers(5, ok), .data(5, "x"),
            TestFrame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8]), .reset(5, 2), .goAway(1, 2),
        ],
        [
            TestFrame(type: 1, stream: 1, payload: TestFrame.block(ok)),
            TestFrame(type: 9, flags: 4, stream: 1, payload: TestFrame.block([("a", "b")])),
            TestFrame(type: 0, flags: 9, stream: 1, payload: [1, 65, 0]),
        ],
    ]

    /// Feeds the input in pieces, ends the connection, and checks that each stream has exactly one end.
    private func events(of input: [UInt8], pieces: [Int]) throws -> [TestEvent] {
        let peer = try HTTP2Peer()
        for _ in 0..<2 { _ = try peer.session.submit(HTTP2Peer.get()) }
        let upload = try peer.session.submit(HTTP2Peer.post())
        peer.parts[upload] = [.bytes(20), .wait, .bytes(20), .last(5)]
        peer.flush()
        var position = 0
        for end in pieces.sorted() + [input.count] where end > position {
            peer.send(Array(input[position..<end]))
            position = end
        }
        peer.session.resumeBody(upload)
        peer.flush()
        peer.session.connectionClosed(EngineError(.connectionLost, "gone"))
        for stream: Int32 in [1, 3, upload] {
            let ends = peer.events.filter { event in
                switch event {
                case .ended(stream), .failed(stream, _): true
                default: false
                }
            }
            #expect(ends.count == 1)
        }
        #expect(peer.session.activeStreams == 0)
        return peer.events
    }

    @Test func mutatedInputEndsEachStreamOnceInEverySplit() throws {
        var generator = SeededGenerator(state: 7)
        for round in 0..<4_000 {
            var input = TestFrame.settings([(3, 100)]).bytes + Self.samples[round % Self.samples.count].flatMap(\.bytes)
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                let index = Int.random(in: 0..<input.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: input[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: input[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                case 2: input.remove(at: index)
                default: input.insert(UInt8.random(in: 0...255, using: &generator), at: index)
                }
            }
            let whole = try events(of: input, pieces: [])
            let pieces = (0..<3).map { _ in Int.random(in: 0..<input.count, using: &generator) }
            #expect(try events(of: input, pieces: pieces) == whole, "round \(round), pieces \(pieces)")
        }
    }

    @Test func randomBytesEndTheConnectionOrWait() throws {
        var generator = SeededGenerator(state: 8)
        for _ in 0..<1_000 {
            let noise = (0..<Int.random(in: 1..<300, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            _ = try events(of: TestFrame.settings().bytes + noise, pieces: [10])
        }
    }
}
#endif
