import Tern
import TernConcurrency

/// The attempts of a durable download.
typealias DownloadAttempts = DurableAttempts<DurableDownloadEvent, DurableDownloadResult>

/// The requests of one durable download, in one stream or in segments, and the errors that their responses lead to.
final class DownloadRequests: Sendable {
    let attempts: DownloadAttempts
    let options: DurableDownloadOptions
    let throttle: DownloadThrottle
    /// The head of the newest response that was accepted; nil before the first one.
    let latestResponse = Lock<ResponseHead?>(nil)

    /// The largest number of bytes that are read at once.
    static let chunkLimit = 64 << 10
    /// The limits of the pipe through which a body is moved: a killed process loses what is in it. Without a window of
    /// its own, the system would give a reader of small portions a small one.
    static let pipe = BodyPipe.Limits(capacity: 512 << 10, portion: 256 << 10, window: 4 << 20)
    /// The limits with a throttle, under which a server must not send far ahead.
    static let throttledPipe = BodyPipe.Limits(capacity: 256 << 10, portion: 256 << 10)
    /// The number of bytes that may wait in memory before the connection is read no further. With a chunk, that is 128
    /// KiB, and as many bytes are being written at the same time: a killed process loses at most 256 KiB.
    static let bufferLimit = (64 << 10) + 1

    init(_ attempts: DownloadAttempts, _ options: DurableDownloadOptions) {
        self.attempts = attempts
        self.options = options
        throttle = DownloadThrottle(
            rate: options.throttle, time: attempts.time, shared: options.hooks?.throttles ?? [])
    }

    /// Begins an attempt, with credentials of the queue.
    func begin() async throws(NetworkError) {
        attempts.begin()
        guard let hooks = options.hooks else { return }
        attempts.setRequest(try await hooks.request(try attempts.firstRequest.get()))
    }

    /// Returns a request for the file.
    ///
    /// - Parameters:
    ///   - rule: The part to ask for; nil for the whole file.
    ///   - bufferLimit: The number of bytes that may wait in memory; nil for that of one stream.
    func request(_ rule: ContinuationRule?, bufferLimit: Int? = nil) throws(NetworkError) -> Request {
        var request = try attempts.prepared(try attempts.request.get())
        if let fields = rule?.fields { request.headers = request.headers.overriding(with: fields) }
        if !request.headers.contains("Accept-Encoding") { request.headers["Accept-Encoding"] = "identity" }
        request.bufferLimit = bufferLimit ?? Self.bufferLimit
        if bufferLimit == nil { request.chunkLimit = Self.chunkLimit }
        return request
    }

    /// Sends a request. Returns the response with its head if it was accepted, or the error of the request.
    func send(_ request: Request) async -> (stream: ResponseStream, answer: Result<ResponseHead, NetworkError>) {
        let stream = attempts.session.stream(request)
        let task = stream.task
        let answer = await withTaskCancellationHandler {
            await Result { () async throws(NetworkError) in try await stream.response }
        } onCancel: {
            task.cancel()
        }
        if case .success(let head) = answer { latestResponse.withLock { $0 = head } }
        return (stream, answer)
    }

    // MARK: Errors

    /// Returns the error of a response to the request for the rest that was accepted, and brings no file.
    func refusal(_ head: ResponseHead) -> NetworkError {
        let kind = head.status < 300 ? NetworkError.Kind.malformedResponse : .status
        let reason = "the server answers the request for the rest of the file with status \(head.status)"
        return attempts.error(kind, reason, response: head, underlying: PartProblem.refused)
    }

    /// Returns the error of a body that ended early.
    func error(_ failure: BodyCopy.Failure) -> NetworkError {
        switch failure {
        case .network(let error): error
        case .file(let failure): attempts.fileError(failure, "the download cannot be written")
        case .tooLong:
            attempts.error(
                .malformedResponse, "the body has more bytes than the response says",
                underlying: PartProblem.otherLength)
        case .cancelled: attempts.cancellation
        case .deadline:
            attempts.error(
                .totalTimedOut, "the time was over while the download waited because of its limit on the rate")
        }
    }
}
