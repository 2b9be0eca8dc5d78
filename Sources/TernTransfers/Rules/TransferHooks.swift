import Tern

/// The functions by which a queue takes part in one of its transfers.
struct TransferHooks<Value: Sendable>: Sendable {
    /// Returns the credentials of the next attempt; nil for those of the request.
    var credentials: (@Sendable () async throws -> TransferQueue.Credentials)?
    /// Stores the result, before the files are removed by which a later process finds that the transfer has ended.
    var record: @Sendable (Value) async throws(TransferQueueError) -> Void
    /// The limits on the rate that the transfer shares with others.
    var throttles: [DownloadThrottle] = []

    /// Returns a request with the credentials of its next attempt. Secret fields go to the origin that they were meant
    /// for.
    func request(_ first: Request) async throws(NetworkError) -> Request {
        var request = first
        let (headers, target) = try await newCredentials(for: first)
        if let target { try request.move(to: target) }
        request.headers = request.headers.overriding(with: headers)
        return request
    }

    /// Returns the header fields of the next attempt, and its URL; nil for that of the request.
    func newCredentials(for request: Request) async throws(NetworkError) -> (headers: Headers, target: Target?) {
        guard let credentials else { return ([:], nil) }
        do {
            let given = try await Self.call(credentials)
            return (given.headers, try given.url.map { try Target($0) })
        } catch {
            if error is CancellationError { throw request.cancelled }
            let failure = FailureCause(.authentication, "no credentials could be made: \(error)", underlying: error)
            throw NetworkError(failure, request: request)
        }
    }

    /// Calls the function of the caller, off the thread of the files.
    @concurrent
    private static func call(
        _ credentials: @Sendable () async throws -> TransferQueue.Credentials
    ) async throws -> TransferQueue.Credentials {
        try await credentials()
    }

    /// Stores the result of a transfer.
    func store(_ value: Value, of request: Request) async throws(NetworkError) {
        do throws(TransferQueueError) {
            try await record(value)
        } catch {
            let failure = FailureCause(.fileSystem, "the result cannot be stored: \(error)", underlying: error)
            throw NetworkError(failure, request: request)
        }
    }
}
