import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Requests with several sources, of which one is tried at a time. Each is a load of its own.

extension ImagePipeline {
    /// Returns the sources of a request, in the order of their trials.
    nonisolated func trials(of request: ImageRequest) -> SourceTrials {
        guard request.alternatives.contains(where: \.isForLowData) else { return SourceTrials(request) }
        return SourceTrials(request, prefersLowData: lowDataMode.isOn())
    }

    /// Starts the load of a request with alternatives: with the source whose image is in memory, else with the first.
    nonisolated func taskForAlternatives(of request: ImageRequest) -> ImageTask {
        var trials = trials(of: request)
        if request.caching.memory.contains(.read), let index = indexInMemory(of: trials) { trials.begin(at: index) }
        let key = key(of: trials.request)
        let attempts = SourceAttempts(trials, ImageLoadKey(key, trials.request))
        return task(for: request, sending: trials.request, key: key, attempts: attempts)
    }

    private nonisolated func indexInMemory(of trials: SourceTrials) -> Int? {
        trials.trials.firstIndex { trial in
            let key = key(of: trial.request)
            return trial.isShownFromMemory
                && memory.image(for: key)?.satisfies(trial.request.options, of: key) ?? false
        }
    }

    /// Returns the first value of the sources whose image is shown from memory.
    nonisolated func firstInMemory<Value>(of request: ImageRequest, _ value: (ImageKey) -> Value?) -> Value? {
        if request.alternatives.isEmpty { return value(key(of: request)) }
        for trial in trials(of: request).trials where trial.isShownFromMemory {
            if let found = value(key(of: trial.request)) { return found }
        }
        return nil
    }

    /// Returns whether the disk has one of the sources of a request.
    /// - Parameter inAnySource: True for any source; false for one that is as good as the request's own.
    nonisolated func isOnDisk(_ request: ImageRequest, inAnySource: Bool) async -> Bool {
        for trial in trials(of: request).trials where inAnySource || trial.isShownFromMemory {
            if await disk.contains(key(of: trial.request)) { return true }
        }
        return false
    }
}

/// The sources of a task with alternatives, and the load of the one that is tried now.
final class SourceAttempts: Sendable {
    private struct State {
        var trials: SourceTrials
        var key: ImageLoadKey
    }

    private let state: Lock<State>

    init(_ trials: SourceTrials, _ key: ImageLoadKey) { state = Lock(State(trials: trials, key: key)) }

    /// The load of the source that is tried now.
    var key: ImageLoadKey { state.withLock { $0.key } }
    /// The request of the source that is tried now.
    var request: ImageRequest { state.withLock { $0.trials.request } }

    func marked(_ response: ImageResponse) -> ImageResponse { state.withLock { $0.trials.marked(response) } }

    /// Goes on to the next source after a failure. Called on the pipeline's actor only. Returns the error of the task if there is none.
    func next(after error: ImageError, in pipeline: ImagePipeline) -> ImageError? {
        if let error = state.withLock({ $0.trials.next(after: error) }) { return error }
        // Outside the lock: the program's hook may make the key.
        let request = request
        let key = ImageLoadKey(pipeline.key(of: request), request)
        state.withLock { $0.key = key }
        return nil
    }
}
