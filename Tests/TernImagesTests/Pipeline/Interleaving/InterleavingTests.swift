import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(10))) struct InterleavingTests {
    /// More of them, or one that failed, by `TERN_SEEDS=1...500`.
    private static let seeds: ClosedRange<UInt64> = {
        let ends = ProcessInfo.processInfo.environment["TERN_SEEDS"]?.split(separator: ".").compactMap { UInt64($0) }
        guard let ends, let first = ends.first, let last = ends.last, first <= last else { return 1...24 }
        return first...last
    }()

    @Test(arguments: seeds)
    func everyTaskEndsOnceWithItsOwnPictureAndNothingIsLeft(seed: UInt64) async throws {
        let run = try InterleavingRun(seed: seed)
        for _ in 0..<250 { try await run.step() }
        #expect(await run.finish() == [])
        await run.kit.expectNothingLeft()
    }
}
