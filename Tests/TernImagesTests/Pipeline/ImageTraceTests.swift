import Testing

@testable import TernImages

@Suite struct ImageTraceTests {
    private static let stages: [ImageTrace.Stage] = [
        .memory, .variant, .processed, .originals, .secondLevel, .network, .decoding, .processing,
    ]
    private static let outcomes: [ImageTrace.Outcome] = [
        .hit, .miss, .stale, .skipped, .stored, .notStored, .failed,
    ]

    @Test func everyStepComesBackAsItWasAdded() {
        for stage in Self.stages {
            for outcome in Self.outcomes {
                var trace = ImageTrace()
                trace.add(stage, outcome)
                trace.add(stage, outcome, detail: "because")
                #expect(trace.steps.map(\.stage) == [stage, stage])
                #expect(trace.steps.map(\.outcome) == [outcome, outcome])
                #expect(trace.steps.map(\.detail) == ["", "because"])
                #expect(trace[stage] == outcome)
            }
        }
    }

    /// Traces of one to twenty steps, of which every third has a detail.
    private static func trace(of count: Int, from start: Int = 0) -> ImageTrace {
        var trace = ImageTrace()
        for index in start..<start + count {
            trace.add(stages[index % 8], outcomes[index % 7], detail: index.isMultiple(of: 3) ? "\(index)" : "")
        }
        return trace
    }

    @Test func aPrependedTraceComesFirstWhateverTheLengths() {
        for first in 0..<20 {
            for second in 0..<20 {
                var joined = Self.trace(of: second, from: first)
                joined.prepend(Self.trace(of: first))
                let whole = Self.trace(of: first + second)
                #expect(joined == whole)
                #expect(joined.steps.count == first + second)
                #expect(joined.description == whole.description)
            }
        }
    }

    @Test func tracesDifferInTheirOrderAndTheirDetails() {
        var (one, other) = (ImageTrace(), ImageTrace())
        one.add(.memory, .miss)
        one.add(.network, .hit, detail: .bytes(3, before: 0))
        other.add(.network, .hit, detail: .bytes(3, before: 0))
        other.add(.memory, .miss)
        #expect(one != other)
        var third = ImageTrace()
        third.add(.memory, .miss)
        third.add(.network, .hit, detail: .bytes(4, before: 0))
        #expect(one != third)
        #expect(third.steps[1].detail == "4 bytes")
    }
}
