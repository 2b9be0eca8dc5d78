import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The errors of durable transfers, and the results of calls that fail with them.

extension DurableAttempts {
    private var noun: String { Event.isUpload ? "upload" : "download" }

    var cancellation: NetworkError { error(.cancelled, "the \(noun) was cancelled") }

    /// Returns an error of the transfer.
    ///
    /// - Parameters:
    ///   - response: The head of the response that is the reason; nil for none.
    ///   - underlying: The cause; nil for none.
    func error(
        _ kind: NetworkError.Kind, _ reason: String, response: ResponseHead? = nil, underlying: (any Error)? = nil
    ) -> NetworkError {
        switch request {
        case .success(let request):
            NetworkError(FailureCause(kind, reason, underlying: underlying), request: request, response: response)
        case .failure: NetworkError(kind, reason: reason)
        }
    }

    /// Returns the error of a failed call on a file.
    func fileError(
        _ cause: any Error, _ reason: String, kind: NetworkError.Kind = .fileSystem
    ) -> NetworkError {
        switch firstRequest {
        case .success(let request):
            NetworkError(FailureCause(kind, "\(reason): \(cause)", underlying: cause), request: request)
        case .failure(let error): error
        }
    }

    /// Calls the file system. A failure is an error of the transfer with this reason.
    func fileCall<Success: Sendable>(
        _ reason: String, kind: NetworkError.Kind = .fileSystem,
        _ call: @autoclosure () async throws(FileFailure) -> Success
    ) async throws(NetworkError) -> Success {
        do throws(FileFailure) {
            return try await call()
        } catch {
            throw fileError(error, reason, kind: kind)
        }
    }

    /// Returns the path of the file of the transfer, after a check of everything that needs no file.
    ///
    /// - Parameter problem: The reason why no transfer can have its options; nil if they are valid.
    func path(of file: URL, problem: String?) throws(NetworkError) -> String {
        if let problem { throw error(.invalidRequest, problem) }
        do throws(FilePath.NotAFile) {
            return try FilePath.of(file)
        } catch {
            throw self.error(.invalidRequest, "the \(Event.isUpload ? "source" : "destination") \(error)")
        }
    }

    /// Returns the error of the transfer: that of its last attempt, with the number of attempts, the time, and the
    /// bytes.
    ///
    /// - Parameter rest: The bytes that a later transfer need not move again, for people.
    func ending(_ failure: NetworkError, rest: String) -> NetworkError {
        var failure = Task.isCancelled && !failure.isCancelled ? cancellation : failure
        let (count, elapsed) = (count, time.elapsed())
        if count > 1, !failure.isCancelled { failure = failure.ending(attempts: count, in: elapsed) }
        guard count > 0 else { return failure }
        let tried = count > 1 ? "" : "1 attempt in \(elapsed.secondsText), "
        return failure.adding("\(tried)\(movedBytes) bytes \(Event.isUpload ? "sent" : "received"), \(rest)")
    }
}

extension Result where Success: Sendable, Failure == NetworkError {
    /// The end of a call.
    init(_ call: () async throws(NetworkError) -> Success) async {
        do throws(NetworkError) { self = .success(try await call()) } catch { self = .failure(error) }
    }
}

extension SessionTask {
    /// The value of the task, or its error. A cancellation of the caller cancels the task.
    var end: Result<Value, NetworkError> {
        get async {
            await withTaskCancellationHandler {
                await Result { () async throws(NetworkError) in try await value }
            } onCancel: {
                cancel()
            }
        }
    }
}
