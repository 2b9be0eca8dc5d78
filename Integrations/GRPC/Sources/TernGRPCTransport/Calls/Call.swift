import GRPCCore
import Synchronization
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One call: its messages to the server, its request, and the response.
///
/// A method that sends one message is requested when that message is complete, so that its body has a known length and
/// Tern itself sends it again if the server has not processed it. Every other one is requested with its metadata, and
/// its body is the `Outbox`.
final class Call: Sendable {
    private enum Phase {
        /// The metadata has not been written.
        case idle
        /// The request waits for its only message.
        case collecting
        case requested(ResponseStream)
        case ended(RPCError)
    }

    private struct Shared {
        var phase = Phase.idle
        /// The reader that waits for the request.
        var reader: CheckedContinuation<Void, Never>?
        /// The fields and the only message of the request, for another attempt.
        var fields = Headers()
        var message: Data?
        /// The place of the connection that carries the request.
        var place = 0
    }

    private let settings: CallSettings
    let outbox = Outbox()
    private let shared = Mutex(Shared())

    init(_ settings: CallSettings) { self.settings = settings }

    /// The most bytes of a message of the response.
    var responseLimit: Int { settings.responseLimit }

    /// The codings that the request names.
    var acceptedEncodings: Set<MessageEncoding> { settings.acceptedEncodings }

    private func change(_ change: (inout Shared) throws(RPCError) -> Void) throws(RPCError) {
        let (failure, reader) = shared.withLock { shared -> (RPCError?, CheckedContinuation<Void, Never>?) in
            do throws(RPCError) {
                try change(&shared)
            } catch {
                return (error, nil)
            }
            switch shared.phase {
            case .idle, .collecting: return (nil, nil)
            case .requested, .ended:
                defer { shared.reader = nil }
                return (nil, shared.reader)
            }
        }
        reader?.resume()
        if let failure { throw failure }
    }

    // MARK: The writer's side

    /// Sends the request, or prepares it if its only message is to be its body.
    func write(_ metadata: Metadata) throws(RPCError) {
        var fields = settings.fields
        for field in try MetadataFields.fields(of: metadata) {
            if field.name == "user-agent" { fields.remove("user-agent") }
            fields.append(field)
        }
        try change { shared throws(RPCError) in
            switch shared.phase {
            case .idle: break
            case .collecting, .requested:
                throw RPCError(code: .internalError, message: "the metadata of a call is written once")
            case .ended(let error): throw error
            }
            shared.fields = fields
            if settings.sendsOneMessage {
                shared.phase = .collecting
            } else {
                try request(&shared)
            }
        }
    }

    /// Sends a message, when the connection has taken most of those before.
    func write(_ message: Data) async throws {
        if message.count > settings.requestLimit {
            let reason = "a message has \(message.count) bytes, and at most \(settings.requestLimit) are sent"
            throw RPCError(code: .resourceExhausted, message: reason)
        }
        let pieces = try settings.encoding.frame(message)
        guard settings.sendsOneMessage else { return try await outbox.write(pieces) }
        try change { shared throws(RPCError) in
            switch shared.phase {
            case .collecting where shared.message == nil:
                shared.message = pieces.count == 1 ? pieces[0] : pieces.reduce(Data(), +)
            case .ended(let error): throw error
            case .idle, .collecting, .requested:
                throw RPCError(code: .internalError, message: "\(settings.name) sends one message, after its metadata")
            }
        }
    }

    /// Ends the messages.
    func finish() {
        outbox.end(.finished)
        guard settings.sendsOneMessage else { return }
        do throws(RPCError) {
            try change { shared throws(RPCError) in
                guard case .collecting = shared.phase else { return }
                if shared.message == nil { shared.message = Data() }
                try request(&shared)
            }
        } catch {
            end(error)
        }
    }

    private func request(_ shared: inout Shared) throws(RPCError) {
        let body: Request.Body =
            if let message = shared.message {
                .data(message, contentType: nil)
            } else {
                .stream(outbox.body, contentType: nil)
            }
        let channel = settings.channels.next()
        shared.place = channel.place
        shared.phase = .requested(try settings.stream(shared.fields, body, over: channel.session))
    }

    /// Ends the messages with an error, which resets the stream.
    func finish(throwing error: any Error) {
        let failure = error as? RPCError ?? RPCError(code: .unknown, message: "the request failed", cause: error)
        outbox.end(.failed(failure))
        let isWaiting = shared.withLock { shared in
            switch shared.phase {
            case .idle, .collecting: true
            case .requested, .ended: false
            }
        }
        if isWaiting { end(failure) }
    }

    // MARK: The reader's side

    /// Returns the response when its head has arrived. A call that the server has not processed is made again, and so is
    /// one for which no connection could be made, if it waits for that.
    func response() async throws(RPCError) -> (stream: ResponseStream, head: ResponseHead) {
        var stream = try await requested()
        var retries = CallRetries(settings.reconnectDelay)
        while true {
            do throws(NetworkError) {
                let head = try await stream.response
                outbox.commit()
                settings.channels.succeeded(at: place)
                return (stream, head)
            } catch {
                let failure = endError ?? RPCError(error)
                if error.isConnectFailure, settings.channels.failed(at: place), endError == nil, !Task.isCancelled {
                    // Nothing was sent, and another address is left.
                    stream = try restarted(after: failure)
                    continue
                }
                guard !Task.isCancelled, endError == nil,
                    let delay = retries.delay(after: error, waitsForReady: settings.waitsForReady)
                else { throw failure }
                if delay > .zero {
                    // `try?`: a wait that is cancelled ends the call below.
                    try? await Task.sleep(for: delay)
                    if Task.isCancelled { throw failure }
                }
                stream = try restarted(after: failure)
            }
        }
    }

    private var place: Int { shared.withLock { $0.place } }

    /// The error with which the call was ended from this side; nil if it was not.
    var endError: RPCError? { shared.withLock { if case .ended(let error) = $0.phase { error } else { nil } } }

    private func restarted(after failure: RPCError) throws(RPCError) -> ResponseStream {
        // The only message of a request is in its body.
        guard settings.sendsOneMessage || outbox.restart() else { throw failure }
        var restarted: ResponseStream?
        try change { shared throws(RPCError) in
            guard case .requested = shared.phase else { return }
            try request(&shared)
            if case .requested(let stream) = shared.phase { restarted = stream }
        }
        guard let restarted else { throw endError ?? failure }
        return restarted
    }

    private func requested() async throws(RPCError) -> ResponseStream {
        while true {
            let stream: ResponseStream? = try shared.withLock { shared throws(RPCError) in
                switch shared.phase {
                case .idle, .collecting: return nil
                case .requested(let stream): return stream
                case .ended(let error): throw error
                }
            }
            if let stream { return stream }
            if Task.isCancelled { throw RPCError(code: .cancelled, message: "the call was cancelled") }
            await waitForRequest()
        }
    }

    private func waitForRequest() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let isReady = shared.withLock { shared in
                    switch shared.phase {
                    case .requested, .ended: return true
                    case .idle, .collecting:
                        if Task.isCancelled { return true }
                        shared.reader = reader
                        return false
                    }
                }
                if isReady { reader.resume() }
            }
        } onCancel: {
            let reader = shared.withLock { shared in
                defer { shared.reader = nil }
                return shared.reader
            }
            reader?.resume()
        }
    }

    // MARK: The end

    /// Ends the call, with the error for writers and readers that come. A transfer that goes on is cancelled, which
    /// resets its stream with CANCEL.
    func end(_ error: RPCError) {
        let stream = shared.withLock { shared -> ResponseStream? in
            if case .requested(let stream) = shared.phase { return stream }
            return nil
        }
        // `try?`: the change does not throw.
        try? change { shared in
            if case .ended = shared.phase { return }
            shared.phase = .ended(error)
        }
        outbox.close(error)
        stream?.task.cancel()
    }
}

/// Decides when a call whose request failed is made again. Pure.
struct CallRetries {
    /// The number of times that a call which the server has not processed is made again (gRPC's transparent retries).
    private static let mostUnprocessed = 5

    private let reconnectDelay: ClosedRange<Duration>
    private var unprocessed = 0
    private var failures = 0

    /// - Parameter reconnectDelay: The first and the longest wait before another connection is tried.
    init(_ reconnectDelay: ClosedRange<Duration>) { self.reconnectDelay = reconnectDelay }

    /// Returns the time to wait before the call is made again; nil if it is not.
    mutating func delay(after error: NetworkError, waitsForReady: Bool) -> Duration? {
        delay(
            wasNotProcessed: error.wasNotProcessed, isConnectFailure: error.isConnectFailure,
            waitsForReady: waitsForReady)
    }

    mutating func delay(wasNotProcessed: Bool, isConnectFailure: Bool, waitsForReady: Bool) -> Duration? {
        if isConnectFailure {
            guard waitsForReady else { return nil }
            defer { failures += 1 }
            return spread(of: failures, from: reconnectDelay.lowerBound, factor: 1.6)
        }
        guard wasNotProcessed, unprocessed < Self.mostUnprocessed else { return nil }
        defer { unprocessed += 1 }
        return unprocessed == 0 ? .zero : spread(of: unprocessed - 1, from: .milliseconds(50), factor: 2)
    }

    /// Returns a time from the upper third of a wait that grows with each failure, so that the calls of a burst part.
    private func spread(of failures: Int, from first: Duration, factor: Double) -> Duration {
        var wait = first
        for _ in 0..<min(failures, 40) where wait < reconnectDelay.upperBound { wait = wait * factor }
        return min(wait, reconnectDelay.upperBound) * Double.random(in: 2 / 3...1)
    }
}
