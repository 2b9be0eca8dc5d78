#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transport over the system's URLSession: the one of Apple's systems, and on Linux, for tests, under the build
/// condition `TERN_URLSESSION`.
///
/// The system is asked for connections and HTTP alone. Redirects, cookies, caches and credentials are switched off;
/// what is not followed, kept or answered here is decided above. Against libcurl's transport, URLSession
/// - adds fields of its own (`Accept`, `Accept-Language`, `Accept-Encoding`) where the request has none;
/// - joins several values of a name into one, in both directions, and forgets the order of the names;
/// - decompresses also what was not to be compressed, and tells the HTTP version only at the end;
/// - does not say when a connection is there: until the first sign of the server `Timeouts.idle` holds, or
///   `Timeouts.connect` if that is longer, with the time in the system's own queue; on Apple's systems the error says
///   `.connectTimedOut` when there was no connection;
/// - knows no limit of connections in all, of idle connections, or of a head's size, cannot leave out HTTP/2, gives no
///   trailers, and connects to no Unix socket.
///
/// FoundationNetworking, on Linux, moreover cannot
/// - suspend a running task: pausing holds back what arrives, and up to 256 MiB may wait for a paused task or a slow
///   reader; beyond that the attempt fails as `.unsupported`;
/// - stream a request's body: it is collected, up to 64 MiB, and sent with its length;
/// - trust other authorities than the system's, use proxies as configured, or keep a POST from being sent twice when a
///   pooled connection has died;
/// - measure: only first byte, total and byte counts are known;
/// - tell a redirect's body where `Location` is missing; or keep tasks beyond the process.
final class URLSessionTransport: Transport {
    private let hub: URLSessionHub

    init(_ configuration: Session.Configuration) {
        hub = URLSessionHub(URLSessionSettings(configuration))
    }

    deinit {
        hub.post { $0.close() }
    }

    var executor: any SerialExecutor { QueueExecutor.shared }

    func refusal(of order: TransferOrder) -> TransferFailure? { hub.settings.refusal(of: order) }

    func start(_ transfer: Transfer) {
        hub.post { $0.start(transfer) }
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        let id = transfer.id
        hub.post { $0.control(id, command) }
    }
}
#endif
