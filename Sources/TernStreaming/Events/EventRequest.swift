import Tern
import TernConcurrency

/// The time of one clock, from an arbitrary zero.
struct StreamTime: Sendable {
    let elapsed: @Sendable () -> Duration
    let sleep: @Sendable (Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        sleep = { try await clock.sleepWithoutDescriptor(for: $0) }
    }
}

extension Request {
    /// Returns the request of an event stream: never cached or repeated by others, without limits on the whole
    /// response, and for a response of the type `text/event-stream`.
    func forEvents(defaults: Session.Configuration) -> Request {
        var request = self
        if !request.headers.contains("Accept") { request.headers["Accept"] = "text/event-stream" }
        if !request.headers.contains("Cache-Control") { request.headers["Cache-Control"] = "no-cache" }
        request.cache = .noStore
        request.isLive = true
        request.isRetriedByCaller = true
        request.timeouts.idle = nil
        request.timeouts.attempt = nil
        request.timeouts.total = nil
        var validation = validation ?? defaults.validation
        if validation.contentTypes == .automatic { validation.contentTypes = .only(["text/event-stream"]) }
        if validation.statuses == nil { validation.statuses = { $0 == 200 || $0 == 204 } }
        request.validation = validation
        return request
    }
}

extension ResponseStream {
    /// The head of the response, or the error of the request.
    var head: Result<ResponseHead, NetworkError> {
        get async {
            do throws(NetworkError) { return .success(try await response) } catch { return .failure(error) }
        }
    }
}
