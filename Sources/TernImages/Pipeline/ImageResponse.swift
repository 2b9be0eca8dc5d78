#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loaded image, its origin, and a trace of the decisions on the way to it.
public struct ImageResponse: Sendable {
    /// The origin of an image.
    public enum Source: String, Sendable, Hashable {
        /// Decoded images in memory.
        case memory
        /// The processed image on the disk.
        case processed
        /// The encoded bytes on the disk, or in the second level.
        case original
        /// The network, a file, or a closure.
        case network
        /// A cache, whose image the server confirmed before the delivery (`Revalidation.beforeDelivery`): by a 304
        /// response, or by a whole response with the same pixels.
        case revalidated
    }

    /// The image; the first frame of an animation.
    public var image: RasterImage
    /// The animation for an `AnimationPlayer`; nil for a still image. One object for all callers, so that their players
    /// share its frames.
    public var animation: AnimatedImage?
    /// The origin of the image.
    public var source: Source
    /// A Boolean value that indicates whether the image comes from a cache and is stale by the headers of its response.
    /// The request's `revalidation` decides whether the pipeline loads it again.
    public var isStale: Bool
    /// The decisions at each cache and stage, in order.
    public var trace: ImageTrace
    /// The encoded bytes; nil unless the request asks for them (`Options.includesData`).
    public var data: Data?

    /// Creates the response to a request with these options.
    init(_ loaded: LoadedImage, isStale: Bool, options: ImageRequest.Options) {
        image = loaded.stored.image
        animation = loaded.stored.animation
        source = loaded.source
        self.isStale = isStale
        trace = loaded.trace
        data = options.includesData ? loaded.stored.data : nil
    }
}

/// The decisions on the way to an image, in order: the caches that were read, with the results, and the caches that
/// were written.
public struct ImageTrace: Sendable, Hashable, CustomStringConvertible {
    /// A cache or stage.
    public enum Stage: String, Sendable, Hashable {
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

    /// The decisions, oldest first. The list is made at each access.
    public var steps: [Step] {
        var index = 0
        return codes.all.map { code in
            let detail = code.hasDetail ? details[index] : .none
            if code.hasDetail { index += 1 }
            return Step(stage: code.stage, outcome: code.outcome, lazyDetail: detail)
        }
    }

    /// The steps without their details, and the details of those that have one. Most steps have none.
    private var codes = StepCodes()
    private var details: [LazyDetail] = []

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

    /// The trace of an image that was in memory.
    static var memoryHit: ImageTrace {
        var trace = ImageTrace()
        trace.add(.memory, .hit)
        return trace
    }

    mutating func add(_ stage: Stage, _ outcome: Outcome) {
        codes.append(StepCode(stage, outcome, hasDetail: false))
    }

    mutating func add(_ stage: Stage, _ outcome: Outcome, detail: String) {
        if detail.isEmpty { add(stage, outcome) } else { add(stage, outcome, detail: .text(detail)) }
    }

    mutating func add(_ stage: Stage, _ outcome: Outcome, detail: LazyDetail) {
        codes.append(StepCode(stage, outcome, hasDetail: true))
        // The number of details of most loads.
        if details.isEmpty { details.reserveCapacity(2) }
        details.append(detail)
    }

    /// Adds a step for an image, with its last processor as the detail.
    mutating func add(_ stage: Stage, _ outcome: Outcome, of key: ImageKey) {
        if let processor = key.processors.last {
            add(stage, outcome, detail: .processor(processor))
        } else {
            add(stage, outcome)
        }
    }

    mutating func prepend(_ other: ImageTrace) {
        codes = other.codes.appending(codes)
        if !other.details.isEmpty { details = other.details + details }
    }

    /// Returns the last result of a stage; nil if the load did not reach it.
    public subscript(stage: Stage) -> Outcome? { steps.last { $0.stage == stage }?.outcome }

    /// The steps in words, such as `image: memory miss; original: disk hit (1234 bytes); decoding: done (JPEG to
    /// 100×80)`. With processors, it begins with the processed image: `processed image: memory miss (corners(12,0,15));
    /// image: memory miss`.
    public var description: String { steps.map(\.description).joined(separator: "; ") }
}

/// A step of a trace in one byte: its stage, its outcome, and whether it has a detail.
struct StepCode: Sendable, Hashable {
    let byte: UInt8

    init(_ stage: ImageTrace.Stage, _ outcome: ImageTrace.Outcome, hasDetail: Bool) {
        byte = stage.number | outcome.number << 3 | (hasDetail ? 0x40 : 0)
    }

    init(byte: UInt8) { self.byte = byte }

    var stage: ImageTrace.Stage { ImageTrace.Stage.numbered[Int(byte & 7)] }
    var outcome: ImageTrace.Outcome { ImageTrace.Outcome.numbered[Int(byte >> 3 & 7)] }
    var hasDetail: Bool { byte & 0x40 != 0 }
}

/// The steps of a trace, oldest first. The steps of most loads need no memory of their own.
struct StepCodes: Sendable, Hashable {
    /// The first eight, a byte each, from the lowest.
    private var first: UInt64 = 0
    private var firstCount = 0
    private var rest: [UInt8] = []

    mutating func append(_ code: StepCode) {
        if firstCount < 8 {
            first |= UInt64(code.byte) << (8 * firstCount)
            firstCount += 1
        } else {
            rest.append(code.byte)
        }
    }

    /// Returns these steps followed by others.
    func appending(_ others: StepCodes) -> StepCodes {
        var codes = self
        for index in 0..<others.firstCount { codes.append(others[first: index]) }
        for byte in others.rest { codes.append(StepCode(byte: byte)) }
        return codes
    }

    var all: [StepCode] { (0..<firstCount).map { self[first: $0] } + rest.map(StepCode.init(byte:)) }

    private subscript(first index: Int) -> StepCode {
        StepCode(byte: UInt8(truncatingIfNeeded: first >> (8 * index)))
    }
}

extension ImageTrace.Stage {
    fileprivate static let numbered: [Self] = [
        .memory, .variant, .processed, .originals, .secondLevel, .network, .decoding, .processing,
    ]

    /// The index in `numbered`.
    fileprivate var number: UInt8 {
        switch self {
        case .memory: 0
        case .variant: 1
        case .processed: 2
        case .originals: 3
        case .secondLevel: 4
        case .network: 5
        case .decoding: 6
        case .processing: 7
        }
    }
}

extension ImageTrace.Outcome {
    fileprivate static let numbered: [Self] = [.hit, .miss, .stale, .skipped, .stored, .notStored, .failed]

    /// The index in `numbered`.
    fileprivate var number: UInt8 {
        switch self {
        case .hit: 0
        case .miss: 1
        case .stale: 2
        case .skipped: 3
        case .stored: 4
        case .notStored: 5
        case .failed: 6
        }
    }
}
