/// The decisions on the way to an image, in order: the caches that were read, with the results, and the caches that
/// were written.
public struct ImageTrace: Sendable, Hashable, CustomStringConvertible {
    /// A cache or stage.
    public enum Stage: String, Sendable, Hashable {
        /// One of the sources of a request with alternatives. Its steps are the failures of those before the one that
        /// the image comes from.
        case source
        /// Decoded images in memory.
        case memory
        /// Another size of the same image in memory.
        case variant
        /// Processed images on the disk.
        case processed
        /// Encoded bytes on the disk.
        case originals
        /// Encoded bytes in the second level, which other processes share.
        case secondLevel = "second-level"
        /// The network, a file, or a closure.
        case network
        /// The decoding of bytes.
        case decoding
        /// A processor.
        case processing
    }

    /// The result of a step.
    public enum Outcome: String, Sendable, Hashable {
        /// Found, or done.
        case hit
        /// Not found.
        case miss
        /// Found, but stale.
        case stale
        /// Not read or written, because the request or the configuration says so.
        case skipped
        /// Stored.
        case stored
        /// Not stored; the detail says why.
        case notStored = "not-stored"
        /// Failed, and the load continued without it; the detail says why.
        case failed
    }

    /// One decision.
    public struct Step: Sendable, Hashable, CustomStringConvertible {
        /// The cache or stage.
        public let stage: Stage
        /// The result.
        public let outcome: Outcome
        let lazyDetail: LazyDetail
        /// The reason in plain text; empty if none is needed. The text is made at each access.
        public var detail: String { lazyDetail.text }

        /// The step in words, such as `image: memory miss` or `original: not stored on disk (no-store)`.
        public var description: String {
            let detail = detail
            return "\(words)\(detail.isEmpty ? "" : " (\(detail))")"
        }

        private var words: String {
            let (thing, place) =
                switch stage {
                case .source: ("source", "")
                case .memory: (lazyDetail.isProcessor ? "processed image" : "image", "memory")
                case .variant: ("another size", "memory")
                case .processed: ("processed image", "disk")
                case .originals: ("original", "disk")
                case .secondLevel: ("original", "second level")
                case .network: ("original", "fetch")
                case .decoding: ("decoding", "")
                case .processing: ("processing", "")
                }
            let isWork = place.isEmpty || stage == .network
            let result =
                switch outcome {
                case .hit where isWork: stage == .network ? "fetched" : "done"
                case .stored: "stored in \(place)"
                case .notStored: "not stored in \(place)"
                default: place.isEmpty ? outcome.rawValue : "\(place) \(outcome.rawValue)"
                }
            return "\(thing): \(result.replacing("in disk", with: "on disk"))"
        }
    }

    /// The decisions, oldest first.
    public private(set) var steps: [Step] = []

    /// The detail of a step, not formatted yet, because hardly any trace is read.
    enum LazyDetail: Sendable, Hashable {
        case text(String)
        /// Encoded bytes, and the number of them that a partial download contributed.
        case bytes(Int, before: Int)
        case image(ImageFormat?, PixelSize)
        case processor(ProcessorIdentity)

        static let none = LazyDetail.text("")

        var isProcessor: Bool {
            if case .processor = self { true } else { false }
        }

        var text: String {
            switch self {
            case .text(let text): text
            case .bytes(let count, before: 0): "\(count) bytes"
            case .bytes(let count, let before): "\(count) bytes, \(before) of them from before"
            case .image(let format, let size): "\(format.map(\.description) ?? "") to \(size)"
            case .processor(let identity): identity.description
            }
        }
    }

    /// The trace of an image in memory. One array for all of them.
    static let memoryHit = ImageTrace(steps: [Step(stage: .memory, outcome: .hit, lazyDetail: .none)])
    /// The trace of a stale image in memory.
    static let memoryStale = ImageTrace(steps: [Step(stage: .memory, outcome: .stale, lazyDetail: .none)])

    mutating func add(_ stage: Stage, _ outcome: Outcome, detail: String) {
        add(stage, outcome, detail: .text(detail))
    }

    mutating func add(_ stage: Stage, _ outcome: Outcome, detail: LazyDetail = .none) {
        steps.append(Step(stage: stage, outcome: outcome, lazyDetail: detail))
    }

    /// Adds a step for an image, with its last processor as the detail.
    mutating func add(_ stage: Stage, _ outcome: Outcome, of key: ImageKey) {
        add(stage, outcome, detail: key.processors.last.map { .processor($0) } ?? .none)
    }

    mutating func prepend(_ other: ImageTrace) { steps.insert(contentsOf: other.steps, at: 0) }

    /// Returns the last result of a stage; nil if the load did not reach it.
    public subscript(stage: Stage) -> Outcome? { steps.last { $0.stage == stage }?.outcome }

    /// The steps in words, such as `image: memory miss; original: disk hit (1234 bytes); decoding: done (JPEG to
    /// 100×80)`. With processors, it begins with the processed image: `processed image: memory miss (corners(12,0,15));
    /// image: memory miss`.
    public var description: String { steps.map(\.description).joined(separator: "; ") }
}
