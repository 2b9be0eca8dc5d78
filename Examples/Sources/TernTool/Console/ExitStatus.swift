import ArgumentParser
import Tern
import TernStreaming
import TernTransfers

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The exit codes, which tell the kinds of failure apart. Those from 3 to 8 are wget's.
enum ExitStatus {
    static let other: Int32 = 1
    static let file: Int32 = 3
    static let network: Int32 = 4
    static let tls: Int32 = 5
    static let authentication: Int32 = 6
    static let malformedResponse: Int32 = 7
    static let status: Int32 = 8
    static let timeout: Int32 = 9
    static let verification: Int32 = 10
    static let inUse: Int32 = 11
    static let usage: Int32 = 64

    /// Returns the exit code of an error.
    static func code(of error: any Error) -> Int32 {
        switch error {
        case let code as ExitCode: code.rawValue
        case let error as NetworkError: code(of: error.kind, status: error.status)
        case let error as TransferQueueError: code(of: error.kind)
        case is Output.Failure, is FileText.Failure, is ReplayCommand.Failure: file
        case is ValidationError: usage
        case is Deadline.Passed: timeout
        default: other
        }
    }

    /// Returns the exit code of a failed call of a queue.
    static func code(of kind: TransferQueueError.Kind) -> Int32 {
        switch kind {
        case .inUse, .duplicate: inUse
        case .notPermitted, .noSpace, .inputOutput, .damaged, .unsupportedVersion: file
        case .invalidTransfer, .invalidArgument, .cyclicDependency: usage
        default: other
        }
    }

    /// Returns the exit code of a failed request.
    static func code(of kind: NetworkError.Kind, status: Int? = nil) -> Int32 {
        switch kind {
        case .fileSystem, .requestBody: file
        case .dns, .proxy, .connectionRefused, .connectionFailed, .connectionLost, .truncatedBody,
            .lastEventMissing:
            network
        case .tls, .untrustedServer, .pinMismatch: tls
        case .authentication: authentication
        case .status: status == 401 || status == 407 ? authentication : Self.status
        case .malformedResponse, .redirect, .redirectLoop, .tooManyRedirects, .tooLarge, .contentType, .validation,
            .decoding:
            malformedResponse
        case .queueTimedOut, .connectTimedOut, .idleTimedOut, .attemptTimedOut, .totalTimedOut, .firstByteTimedOut,
            .silenceTimedOut:
            timeout
        case .digestMismatch, .unexpectedSize: verification
        case .downloadInProgress, .otherDownload, .uploadInProgress, .unsupportedControlFile: inUse
        case .invalidRequest: usage
        default: other
        }
    }
}

/// Cancels work that takes too long.
struct Deadline {
    /// The error of work that was cancelled by its deadline.
    struct Passed: Error, CustomStringConvertible {
        let limit: Duration
        var description: String { "the time limit of \(DurationText.span(limit)) is reached" }
    }

    /// Performs work, and cancels it after a time; nil for no limit.
    ///
    /// - Throws: `Passed` for any error after that.
    static func run(
        _ limit: Duration?, cancel: @escaping @Sendable () -> Void, _ work: () async throws -> Void
    ) async throws {
        guard let limit else { return try await work() }
        let start = ContinuousClock.now
        // Cancelled below, when the work has ended.
        let timer = Task {
            try await Task.sleep(for: limit)
            cancel()
            // Nothing can cancel a write to a reader that does not read.
            try await Task.sleep(for: .seconds(1))
            guard BlockingCalls.isBlocked else { return }
            // Standard error can be the same pipe.
            if Terminal.takesLine { Terminal().writeLine("tern: \(Passed(limit: limit))") }
            _exit(ExitStatus.timeout)
        }
        defer { timer.cancel() }
        do {
            try await work()
        } catch {
            if ContinuousClock.now - start >= limit { throw Passed(limit: limit) }
            throw error
        }
    }
}
