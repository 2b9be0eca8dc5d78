import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Durable downloads: segments of a file")
struct SegmentPlanTests {
    @Test(arguments: [(10_000, 3), (10_001, 16), (7, 7), (1_000_003, 8)])
    func segmentsCoverTheFile(size: Int64, count: Int) throws {
        let plan = SegmentPlan(size: size, segments: count)
        #expect(plan.ranges.count == count)
        #expect(plan.ranges.first?.lowerBound == 0 && plan.ranges.last?.upperBound == size)
        for (one, next) in zip(plan.ranges, plan.ranges.dropFirst()) { #expect(one.upperBound == next.lowerBound) }
        let lengths = plan.ranges.map { $0.upperBound - $0.lowerBound }
        #expect(try #require(lengths.max()) - #require(lengths.min()) <= 1)
    }

    @Test func shortFileHasOneSegment() {
        #expect(SegmentPlan(size: 2 * SegmentPlan.shortestSegment - 1, count: 8) == nil)
        #expect(SegmentPlan(size: 3 * SegmentPlan.shortestSegment, count: 8)?.ranges.count == 3)
        #expect(SegmentPlan(size: 1 << 40, count: 99)?.ranges.count == 16)
        #expect(SegmentPlan(size: 1 << 40, count: 1) == nil)
        #expect(SegmentPlan(size: 0, count: 2) == nil)
    }

    @Test func tableIsReadBackAndChecked() {
        let plan = SegmentPlan(size: 1_000, segments: 2)
        #expect(plan.lengthWithTable == 1_016 && plan.position(ofEntry: 1) == 1_008)
        #expect(plan.counts(from: SegmentPlan.entry(500) + SegmentPlan.entry(258)) == [500, 258])
        #expect(plan.counts(from: SegmentPlan.entry(501) + SegmentPlan.entry(0)) == nil)
        #expect(plan.counts(from: SegmentPlan.entry(-1) + SegmentPlan.entry(0)) == nil)
        #expect(plan.counts(from: SegmentPlan.entry(1)) == nil)
    }
}
