/// What was decided on the way to a picture, in order: which caches were asked, with what result, and what was stored.
public struct ImageTrace: Sendable, Hashable, CustomStringConvertible {
    /// A cache or stage.
    public enum Stage: String, Sendable, Hashable {
        /// Decoded pictures in memory.
        case memory
        /// Another size or stage of the same picture in memory.
        case ancestor
        /// Processed pictures on the disk.
        case disk
        /// Bytes as fetched, on the disk.
        case originals
        /// Failures of a short while ago.
        case failures
        /// The network, a file, or a closure.
        case network
        /// Bytes to pixels.
        case decoding
        /// A processor.
        case processing
    }

    /// What came of it.
    public enum Outcome: String, Sendable, Hashable {
        /// It was found, or done.
        case hit
        /// It was not there.
        case miss
        /// It was there and stale.
        case stale
        /// The request or the configuration says that it is not to be asked or written.
        case skipped
        /// It was put there.
        case stored
        /// It was not put there; the detail says why.
        case notStored = "not-stored"
        /// It failed, and the load went on without it; the detail says why.
        case failed
    }

    /// One decision.
    public struct Step: Sendable, Hashable, CustomStringConvertible {
        /// Where.
        public let stage: Stage
        /// What came of it.
        public let outcome: Outcome
        /// Why, for people; empty where that goes without saying.
        public let detail: String

        /// The step as `memory miss` or `disk not-stored (no-store)`.
        public var description: String {
            "\(stage.rawValue) \(outcome.rawValue)\(detail.isEmpty ? "" : " (\(detail))")"
        }
    }

    /// The decisions, oldest first.
    public private(set) var steps: [Step] = []

    mutating func add(_ stage: Stage, _ outcome: Outcome, _ detail: String = "") {
        steps.append(Step(stage: stage, outcome: outcome, detail: detail))
    }

    mutating func prepend(_ other: ImageTrace) { steps = other.steps + steps }

    /// The last decision of a stage; nil if it was not reached.
    public subscript(stage: Stage) -> Outcome? { steps.last { $0.stage == stage }?.outcome }

    /// The steps, separated by commas.
    public var description: String { steps.map(\.description).joined(separator: ", ") }
}
