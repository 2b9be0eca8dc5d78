/// Decides which source of a request is tried next, and which error remains when all have failed. Pure.
struct SourceTrials: Sendable {
    /// One source with its request, which has no alternatives of its own.
    struct Trial: Sendable {
        let request: ImageRequest
        /// The index among the alternatives of the request; nil for the request's own source.
        let alternative: Int?
        /// Whether an image in memory may be shown without a trial of the sources before it.
        let isShownFromMemory: Bool
        /// Whether only the caches are asked, because the network is to send a smaller image.
        var isLookUp = false
    }

    let trials: [Trial]
    private(set) var index = 0
    private var failures: [ImageError] = []

    /// - Parameter prefersLowData: True while the low data mode is on.
    init(_ request: ImageRequest, prefersLowData: Bool = false) {
        var own = request
        own.alternatives = []
        let others = request.alternatives.enumerated().map { index, alternative in
            var copy = own
            copy.source = alternative.source
            return Trial(
                request: copy, alternative: index, isShownFromMemory: prefersLowData || !alternative.isForLowData)
        }
        let isForLowData = request.alternatives.map(\.isForLowData)
        let first = Trial(request: own, alternative: nil, isShownFromMemory: true)
        let usual = [first] + zip(others, isForLowData).filter { !$1 }.map(\.0)
        let small = zip(others, isForLowData).filter { $1 }.map(\.0)
        // Without the network, the larger image is as good as free.
        guard prefersLowData, request.caching.network, !small.isEmpty else {
            trials = usual + small
            return
        }
        let (local, remote) = (usual.filter(\.isLocal), usual.filter { !$0.isLocal })
        trials = local + remote.map(\.asLookUp) + small + remote
    }

    /// The request with the source that is tried now.
    var request: ImageRequest { trials[index].request }
    /// The index of the alternative that is tried now; nil for the request's own source.
    var alternative: Int? { trials[index].alternative }

    /// Begins with another source, whose image is in memory.
    mutating func begin(at index: Int) { self.index = index }

    /// Goes on to the next source after a failure. Returns the error of the request if there is none, or if none would
    /// help.
    mutating func next(after error: ImageError) -> ImageError? {
        let error = error.from(request.source.description)
        if error.kind == .cancelled { return error }
        // A cache without the image is no failure: the network has not been asked.
        if !trials[index].isLookUp || error.kind != .notCached { failures.append(error) }
        guard error.canBeMendedByAnotherSource, index + 1 < trials.count else { return failure(after: error) }
        index += 1
        return nil
    }

    private func failure(after last: ImageError) -> ImageError {
        var first = failures.first ?? last
        first.alternatives = Array(failures.dropFirst())
        return first
    }

    /// Returns a response of the source that is tried now, with the sources that have failed before.
    func marked(_ response: ImageResponse) -> ImageResponse {
        var response = response
        response.alternative = alternative
        var failed = ImageTrace()
        for failure in failures { failed.add(.source, .failed, detail: "\(failure)") }
        if !failures.isEmpty { response.trace.prepend(failed) }
        return response
    }
}

extension SourceTrials.Trial {
    /// Whether the bytes are on this machine.
    fileprivate var isLocal: Bool {
        if case .file = request.source.content { true } else { false }
    }

    fileprivate var asLookUp: Self {
        var request = request
        request.caching.network = false
        return Self(request: request, alternative: alternative, isShownFromMemory: isShownFromMemory, isLookUp: true)
    }
}

extension ImageError {
    /// Whether another source of the same image may have it.
    var canBeMendedByAnotherSource: Bool {
        if isOfProcessor { return false }
        return switch kind {
        case .cancelled, .processing, .outOfMemory, .invalidArgument: false
        default: true
        }
    }
}
