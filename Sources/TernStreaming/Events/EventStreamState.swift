public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The state of a stream of server-sent events.
public enum EventStreamState: Sendable {
    /// The request is being sent, or nothing has been read yet.
    case connecting
    /// The request waits for a connection: as many event streams and other requests to the host are open as
    /// `maximumConnectionsPerHost` allows. It fails after `Timeouts.queue`, 30 seconds by default.
    case waitingForConnection
    /// The server's response was accepted. Events can arrive.
    case open
    /// The connection has ended, and the next attempt follows at `until`; nil while the machine has no network, whose
    /// return starts the attempt. `after` is the failure of the connection; nil if the server ended it.
    case waiting(until: Date?, after: NetworkError?)
    /// The stream has ended. This state is the last one.
    case closed(EventStreamEnd)
}

/// The reason why a stream of server-sent events has ended.
public enum EventStreamEnd: Sendable {
    /// The event that the caller had named as the last one has arrived.
    case lastEvent
    /// The server ended the response, and the request is not sent again.
    case server
    /// The server answered 204 (No Content), which ends the stream for good.
    case noContent
    /// The caller closed the stream, or released it.
    case closed
    /// The stream failed, or the task that read it was cancelled.
    case failed(NetworkError)
}

extension EventStreamState: CustomStringConvertible {
    /// A short text without secrets.
    public var description: String {
        switch self {
        case .connecting: "connecting"
        case .waitingForConnection: "waiting for a connection"
        case .open: "open"
        case .waiting(nil, _): "waiting for a network"
        case .waiting(_?, let failure): failure.map { "waiting after: \($0)" } ?? "waiting"
        case .closed(let end): "closed: \(end)"
        }
    }
}

extension EventStreamEnd: CustomStringConvertible {
    /// A short text without secrets.
    public var description: String {
        switch self {
        case .lastEvent: "the last event arrived"
        case .server: "the server ended the stream"
        case .noContent: "the server has no more content"
        case .closed: "the stream was closed"
        case .failed(let error): error.description
        }
    }
}

extension NetworkError.Kind {
    /// The head of an event stream did not arrive within `EventStreamOptions.firstByteTimeout`.
    public static let firstByteTimedOut = Self(rawValue: "first-byte-timed-out")
    /// An open event stream was silent for longer than `EventStreamOptions.silenceTimeout`.
    public static let silenceTimedOut = Self(rawValue: "silence-timed-out")
    /// An event stream ended before the event that the caller had named as the last one.
    public static let lastEventMissing = Self(rawValue: "last-event-missing")
    /// A server ended its event streams without an event, as often as `EventReconnection.limit` allows.
    public static let noEvents = Self(rawValue: "no-events")
}
