#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A task of the system's URLSession. A protocol, so that attempts and restored tasks are tested without a network.
protocol SystemTask: AnyObject, Sendable {
    var taskIdentifier: Int { get }
    var taskDescription: String? { get }
    var priority: Float { get set }
    /// Whether the system writes the body of the response to a file.
    var isDownload: Bool { get }
    /// The number of bytes received so far. A restored task received some before this process began.
    var countOfBytesReceived: Int64 { get }
    var countOfBytesExpectedToReceive: Int64 { get }
    /// The URL of the request; nil if it is not known.
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
        // `try?`: the system accepted the URL; one that Tern cannot read counts as unknown.
        return try? Target(url)
    }

    var method: Request.Method { originalRequest?.httpMethod.map { Request.Method(rawValue: $0) } ?? .get }
}

/// The capabilities of a platform's URLSession.
struct URLSessionAbilities: Sendable {
    /// Whether a running task can be suspended. FoundationNetworking starts it over, or ends the process.
    var suspends: Bool
    /// Whether the time of the connection is reported.
    var measures: Bool
    /// Whether a body that is produced piece by piece is sent as it is produced.
    var streamsBodies: Bool
    /// Whether Tern's time limits apply. A background session has its own limits, which run while the process does not.
    var limitsTime = true

    #if canImport(FoundationNetworking)
    static let platform = URLSessionAbilities(suspends: false, measures: false, streamsBodies: false)
    #else
    static let platform = URLSessionAbilities(suspends: true, measures: true, streamsBodies: true)
    #endif
}

/// An event of one of the system's tasks.
enum SystemEvent: Sendable {
    case response(SystemResponse)
    case data(Data)
    /// The total number of bytes of the request's body that were sent.
    case sent(Int64)
    /// The total number of bytes of the response's body in the system's file, and the expected number.
    case wrote(Int64, of: Int64?)
    /// The file with the whole body, which the receiver now owns.
    case file(String)
    case measured(TaskMetrics?)
    case failed(FailureCause)
    /// The end of the task. The response is there in case it was never reported.
    case completed((any Error)?, SystemResponse?)
}

/// The head of a response as the system reports it.
struct SystemResponse: Sendable {
    let status: Int
    let fields: [String: String]

    init(status: Int, fields: [String: String]) {
        self.status = status
        self.fields = fields
    }

    /// Creates a head; nil if the response is not HTTP.
    init?(_ response: URLResponse?) {
        guard let response = response as? HTTPURLResponse else { return nil }
        status = response.statusCode
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String { fields[name] = value as? String ?? "\(value)" }
        }
        self.fields = fields
    }
}
#endif
