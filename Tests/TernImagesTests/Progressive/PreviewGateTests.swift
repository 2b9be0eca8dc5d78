import Testing

@testable import TernImages

@Suite struct PreviewGateTests {
    @Test func newBytesWhileItWorksOnlyMarkItDirty() {
        var gate = PreviewGate(policy: .scans)
        #expect(gate.received() == .work)
        for _ in 0..<100 { #expect(gate.received() == .leave) }
        #expect(gate.isDirty)
        #expect(gate.settled() == .work)
        #expect(gate.settled() == .rest)
        #expect(gate.received() == .work)
    }

    @Test func theEndIsReachedOnceAndAfterAllBytes() {
        var gate = PreviewGate(policy: .scans)
        #expect(gate.received() == .work)
        #expect(gate.received() == .leave)
        #expect(gate.ended() == .leave)
        #expect(gate.settled() == .work)
        #expect(gate.settled() == .finish)
        #expect(gate.settled() == .rest)
        #expect(gate.received() == .leave)
        #expect(gate.ended() == .leave)
    }

    @Test func theEndWakesAnIdleDecoder() {
        var gate = PreviewGate(policy: .scans)
        #expect(gate.ended() == .work)
        #expect(gate.settled() == .finish)
    }

    @Test func stoppedItDoesNothing() {
        var gate = PreviewGate(policy: .scans)
        #expect(gate.received() == .work)
        gate.stop()
        #expect(gate.boundary(at: .zero) == .pass)
        #expect(gate.settled() == .rest)
        #expect(gate.received() == .leave)
        #expect(gate.ended() == .leave)
    }

    @Test(arguments: [(0, 0), (1, 10), (2, 5), (3, 3), (11, 0)]) func everyNthBoundaryIsShown(every: Int, shown: Int) {
        var gate = PreviewGate(policy: ProgressivePolicy(every: every))
        let rendered = (0..<10).filter { gate.boundary(at: .seconds($0)) == .render }
        #expect(rendered.count == shown)
        #expect(gate.previews == shown)
    }

    @Test func anIntervalAndANumberBoundThem() {
        var gate = PreviewGate(policy: ProgressivePolicy(minimumInterval: .milliseconds(150), maxPreviews: 3))
        let rendered = (0..<20).filter { gate.boundary(at: .milliseconds($0 * 100)) == .render }
        #expect(rendered == [0, 2, 4])
    }

    @Test func slowDecoderSkipsPreviewsIfThePolicyAllows() {
        var gate = PreviewGate(policy: .paced)
        #expect(gate.received() == .work)
        #expect(gate.received() == .leave)
        #expect(gate.boundary(at: .zero) == .pass)
        #expect(gate.settled() == .work)
        #expect(gate.boundary(at: .zero) == .render)
        #expect(gate.ended() == .leave)
        #expect(gate.boundary(at: .seconds(9)) == .pass)
        var eager = PreviewGate(policy: .scans)
        #expect(eager.received() == .work)
        #expect(eager.received() == .leave)
        #expect(eager.boundary(at: .zero) == .render)
    }
}
