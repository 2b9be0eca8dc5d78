#if TERN_URLSESSION || !os(Linux)
import Foundation
import TernConcurrency
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends requests over the system's URLSession. It is the transport of Apple's systems, and for tests on Linux under
/// the build condition `TERN_URLSESSION`.
///
/// The system provides connections and HTTP only. Its redirects, cookies, caches and credentials are switched off,
/// because Tern handles them above the transport. Compared with the engine for Linux, URLSession
/// - adds `Accept`, `Accept-Language` and `Accept-Encoding` if the request has none;
/// - joins several values of a name into one, in both directions, and loses the order of the names;
/// - decompresses every compressed body, even if none was requested, and reports the HTTP version only at the end;
/// - does not report the connection: until the first sign of the server, `Timeouts.idle` applies, or `Timeouts.connect`
///   if that is longer, including the time in the system's own queue; on Apple's systems, the error is
///   `.connectTimedOut` if there was no connection;
/// - has no limit for all connections, idle connections, or the size of a head, cannot switch HTTP/2 off, delivers no
///   trailers, and cannot connect to a Unix socket;
/// - opens WebSockets without compression, with fragments of its own, and reports the body of a refused handshake as
///   empty.
///
/// FoundationNetworking, on Linux, also cannot
/// - suspend a running task: a pause holds back the bytes that arrive, and up to 256 MiB can wait for a paused task or
///   a slow reader; beyond that, the attempt fails with `.unsupported`;
/// - stream a request's body: it is collected, up to 64 MiB, and sent with its length;
/// - trust other authorities than the system's, use proxies as configured, or keep a POST from being sent twice when a
///   pooled connection has died;
/// - measure more than the times of the first byte and of the end, and the numbers of bytes;
/// - deliver the body of a redirect without `Location`, or keep tasks beyond the process;
/// - open WebSockets with a libcurl that was built without them, which is the case on Debian 12: the error is
///   `.unsupported`.
final class URLSessionTransport: Transport {
    private let hub: URLSessionHub

    init(_ configuration: Session.Configuration) {
        hub = URLSessionHub(URLSessionSettings(configuration))
    }

    deinit {
        hub.post { $0.close() }
    }

    var executor: any MessageExecutor { QueueExecutor.shared }

    func refusal(of attempt: Attempt) -> FailureCause? { hub.settings.refusal(of: attempt.request) }

    func start(_ attempt: Attempt) {
        hub.post { $0.start(attempt) }
    }

    func control(_ attempt: Attempt, _ command: AttemptCommand) {
        let id = attempt.id
        hub.post { $0.control(id, command) }
    }
}

/// Sends the requests of a background session, which the system continues without the process.
///
/// Bodies of responses go through files of the system and are delivered when they are complete. Bodies of requests are
/// written to files before they are sent. The system follows redirects without asking, and has its own time limits.
final class BackgroundTransport: Transport {
    /// A restored task that waits for its attempt.
    struct Adoption: Sendable {
        let task: any SystemTask
        let onFile: @Sendable (String) -> Void
    }

    private let hub: URLSessionHub
    private let adoptions = Lock<[UInt64: Adoption]>([:])

    init(_ hub: URLSessionHub) { self.hub = hub }

    deinit {
        hub.post { $0.close() }
    }

    var executor: any MessageExecutor { QueueExecutor.shared }

    func refusal(of attempt: Attempt) -> FailureCause? {
        guard attempt.request.upgrade == nil else {
            return FailureCause(.unsupported, "the system continues no WebSocket without the process")
        }
        return hub.settings.refusal(of: attempt.request)
    }

    /// Connects an attempt that is not started yet with a restored task.
    func bind(_ attempt: Attempt, to adoption: Adoption) {
        adoptions.withLock { $0[attempt.id] = adoption }
    }

    /// Removes the connection of an attempt that is not started after all.
    func unbind(_ attempt: Attempt) {
        adoptions.withLock { $0[attempt.id] = nil }
    }

    func start(_ attempt: Attempt) {
        let adoption = adoptions.withLock { $0.removeValue(forKey: attempt.id) }
        hub.post { hub in
            if let adoption {
                hub.adopt(adoption.task, for: attempt, onFile: adoption.onFile)
            } else {
                hub.start(attempt)
            }
        }
    }

    func control(_ attempt: Attempt, _ command: AttemptCommand) {
        let id = attempt.id
        hub.post { $0.control(id, command) }
    }
}
#endif
