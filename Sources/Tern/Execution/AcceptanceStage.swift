import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Collects the body of the final response if the task wants it in memory, and accepts or refuses the response.
final class AcceptanceStage: Stage {
    private let next: any Stage

    init(next: any Stage) {
        self.next = next
    }

    @inline(__always)
    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        let response = try await next.response(to: request, of: task)
        if !response.isWhole { return try await collectedAndAccepted(response, task) }
        if let refusal = task.refusal(of: response) { throw await task.refused(response, for: refusal) }
        return response
    }

    /// Collects or saves the body if it has not arrived, and then validates the response. Throws the error of one that
    /// is refused.
    @concurrent
    private func collectedAndAccepted(
        _ response: IncomingResponse, _ task: TaskRecord
    ) async throws(NetworkError) -> IncomingResponse {
        if let place = response.downloadPlace { return try await download(response, to: place, task) }
        var response = response
        if response.outcome == nil, response.request.delivery == .collected {
            response.outcome = try await collect(response, task)
        }
        if let refusal = task.refusal(of: response) { throw await task.refused(response, for: refusal) }
        return response
    }

    /// Writes the body of a response to a file, because a policy has made a download of it. Returns the response
    /// without a body.
    private func download(
        _ response: IncomingResponse, to place: DownloadPlace, _ task: TaskRecord
    ) async throws(NetworkError) -> IncomingResponse {
        if let refusal = task.refusal(of: response) { throw await task.refused(response, for: refusal) }
        let path: String
        do throws(FilePath.NotAFile) {
            path = try FilePath.of(place.file)
        } catch {
            let failure = FailureCause(.policy, "the response cannot become a download: the destination \(error)")
            throw await response.error(failure, readsBody: false)
        }
        let execution = DownloadExecution(
            request: response.request, record: task, destination: .file(path), options: place.options)
        let file = try await execution.save(response.unread)
        var saved = response
        saved.head = response.head.saved(as: file)
        saved.outcome = AttemptOutcome(head: saved.head, metrics: task.metrics ?? TaskMetrics())
        task.receive(saved.head)
        return saved
    }

    /// Collects the body of a response whose head has arrived.
    private func collect(
        _ response: IncomingResponse, _ task: TaskRecord
    ) async throws(NetworkError) -> AttemptOutcome {
        let (request, configuration) = (response.request, task.registry.configuration)
        let limit = request.request.maximumBodySize ?? configuration.maximumBodySize
        let isRefused = !response.isStoppedRedirect && !request.accepts(response.head.status)
        let room = isRefused ? min(limit, configuration.errorBodyLimit) : limit
        let outcome =
            response.isDecompressed
            ? await withTaskExecutorPreference(globalConcurrentExecutor) {
                // Decompression must not run on the loop.
                await response.collect(upTo: room)
            } : await response.collect(upTo: room)
        if let failure = outcome.failure, !(isRefused && request.ignoresBodyFailure(failure, of: response.head)) {
            throw task.failed(request.error(failure, outcome))
        }
        return outcome
    }
}

extension TaskRecord {
    /// Returns the reason why a response is refused; nil, and tells the observers, if it is accepted.
    @inline(never)
    func refusal(of response: IncomingResponse) -> FailureCause? {
        if let refusal = response.request.refusal(of: response) { return refusal }
        registry.observe { $0.didValidate(response.head, error: nil, of: AnySessionTask(self)) }
        return nil
    }

    /// Returns the error of a response that is refused, and tells the observers.
    func refused(_ response: IncomingResponse, for refusal: FailureCause) async -> NetworkError {
        let error = await response.error(refusal)
        registry.observe { $0.didValidate(response.head, error: error, of: AnySessionTask(self)) }
        return error
    }

    /// Tells the observers that a request ended without a response, and returns its error.
    func failed(_ error: NetworkError) -> NetworkError {
        registry.observe { $0.didFail(error, of: AnySessionTask(self)) }
        return error
    }
}
