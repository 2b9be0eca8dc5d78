import Testing

@testable import TernImages

@Suite(.timeLimit(.minutes(1))) struct InterleavingTests {
    @Test(arguments: 1...24 as ClosedRange<UInt64>)
    func everyTaskEndsOnceWithItsOwnPictureAndNothingIsLeft(seed: UInt64) async throws {
        let run = try InterleavingRun(seed: seed)
        for _ in 0..<250 { try await run.step() }
        #expect(await run.finish() == [])
        await run.kit.expectNothingLeft()
    }
}
