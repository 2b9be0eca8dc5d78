#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the system tells of one of its tasks.
enum SystemEvent: Sendable {
    case response(SystemResponse)
    case data(Data)
    /// Bytes of the request's body that were sent, in all.
    case sent(Int64)
    /// Bytes of the response's body that are in the system's file, in all, and of how many.
    case wrote(Int64, of: Int64?)
    /// The whole body is in a file, which is ours now.
    case file(String)
    case measured(TaskMetrics?)
    case failed(TransferFailure)
    /// The last word. `response`: in case that it was never told of.
    case completed((any Error)?, SystemResponse?)
}

/// The head of a response as the system has it.
struct SystemResponse: Sendable {
    let status: Int
    let fields: [String: String]

    init(status: Int, fields: [String: String]) {
        self.status = status
        self.fields = fields
    }

    /// nil for what is not HTTP.
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
