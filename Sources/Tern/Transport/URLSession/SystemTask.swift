#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What is asked of one of the system's tasks: a seam, so that attempts and kept tasks are tested without a network.
protocol SystemTask: AnyObject, Sendable {
    var taskIdentifier: Int { get }
    var taskDescription: String? { get }
    var priority: Float { get set }
    /// Whether the system puts the body of the response into a file.
    var isDownload: Bool { get }
    /// Bytes moved so far; a kept task has moved some before this process began.
    var countOfBytesReceived: Int64 { get }
    var countOfBytesExpectedToReceive: Int64 { get }
    /// The URL and the method, where they are known.
    var target: Target? { get }
    var method: Request.Method { get }

    func resume()
    func suspend()
    func cancel()
}

extension URLSessionTask: SystemTask {
    var isDownload: Bool { self is URLSessionDownloadTask }

    var target: Target? {
        guard let url = originalRequest?.url else { return nil }
        // The system has accepted the URL; what we cannot read is shown as unknown.
        return try? Target(url)
    }

    var method: Request.Method { originalRequest?.httpMethod.map { Request.Method(rawValue: $0) } ?? .get }
}

/// What a platform's URLSession can do.
struct URLSessionAbilities: Sendable {
    /// A running task may be suspended. FoundationNetworking starts it over, or ends the process.
    var suspends: Bool
    /// Says when a connection was there.
    var measures: Bool
    /// Gives a body that is produced piece by piece to the socket as it comes.
    var streamsBodies: Bool
    /// Whether our time limits hold: a background session has its own, that run while the process does not.
    var limitsTime = true

    #if canImport(FoundationNetworking)
    static let platform = URLSessionAbilities(suspends: false, measures: false, streamsBodies: false)
    #else
    static let platform = URLSessionAbilities(suspends: true, measures: true, streamsBodies: true)
    #endif
}
#endif
