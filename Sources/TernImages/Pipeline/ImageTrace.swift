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
        let note: Note
        /// Why, for people; empty where that goes without saying. Made when it is asked for.
        public var detail: String { note.text }

        /// The step as `memory miss` or `disk not-stored (no-store)`.
        public var description: String {
            let detail = detail
            return "\(stage.rawValue) \(outcome.rawValue)\(detail.isEmpty ? "" : " (\(detail))")"
        }
    }

    /// The decisions, oldest first.
    public private(set) var steps: [Step] = []

    /// What there is to say of a step, not yet said: hardly any trace is read.
    enum Note: Sendable, Hashable {
        case text(String)
        /// Bytes that were fetched, and how many of them were there before.
        case bytes(Int, before: Int)
        case picture(ImageFormat?, PixelSize)
        case processor(ProcessorIdentity)

        var text: String {
            switch self {
            case .text(let text): text
            case .bytes(let count, before: 0): "\(count) bytes"
            case .bytes(let count, let before): "\(count) bytes, \(before) of them from before"
            case .picture(let format, let size): "\(format.map(\.description) ?? "") to \(size)"
            case .processor(let identity): identity.description
            }
        }
    }

    /// Of a picture that was in memory: made once for all.
    static let memoryHit = ImageTrace(steps: [Step(stage: .memory, outcome: .hit, note: .text(""))])

    mutating func add(_ stage: Stage, _ outcome: Outcome, _ detail: String = "") {
        add(stage, outcome, .text(detail))
    }

    mutating func add(_ stage: Stage, _ outcome: Outcome, _ note: Note) {
        // As many as most loads have.
        if steps.isEmpty { steps.reserveCapacity(6) }
        steps.append(Step(stage: stage, outcome: outcome, note: note))
    }

    mutating func prepend(_ other: ImageTrace) { steps.insert(contentsOf: other.steps, at: 0) }

    /// The last decision of a stage; nil if it was not reached.
    public subscript(stage: Stage) -> Outcome? { steps.last { $0.stage == stage }?.outcome }

    /// The steps, separated by commas.
    public var description: String { steps.map(\.description).joined(separator: ", ") }
}
