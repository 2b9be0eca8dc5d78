#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An order, said in URLSession's words.
enum URLSessionRequest {
    /// Our own clocks tell idle from total, and stand still in a pause: the system's only limit must never be first. A
    /// week, as the system's own for a whole resource; FoundationNetworking cannot take an infinite one.
    static let noTimeout: TimeInterval = 604_800

    /// nil when the system cannot read the URL.
    static func make(_ order: TransferOrder) -> URLRequest? {
        guard let url = order.target.url else { return nil }
        var request = URLRequest(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: noTimeout)
        request.httpMethod = order.method.rawValue
        request.httpShouldHandleCookies = false
        for field in fields(order) { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }

    /// The fields to set. URLSession holds one value a name: several are joined, as RFC 9110 §5.3 allows, and RFC 9113
    /// §8.2.3 for cookies.
    static func fields(_ order: TransferOrder) -> [Headers.Field] {
        var joined: [Headers.Field] = []
        for field in order.headers {
            // The system authenticates to its proxies itself. A server must not receive credentials for a proxy.
            if Headers.namesMatch(field.name, "Proxy-Authorization") { continue }
            if let place = joined.firstIndex(where: { $0.name.lowercased() == field.name.lowercased() }) {
                let separator = field.name.lowercased() == "cookie" ? "; " : ", "
                joined[place].value += separator + field.value
            } else {
                joined.append(field)
            }
        }
        // Values are texts here: each byte of such cookies becomes the Unicode scalar with its number.
        if let cookies = order.rawCookie {
            joined.append(Headers.Field(name: "Cookie", value: TextDecoding.latin1(cookies.span)))
        }
        // URLSession decompresses whatever comes compressed: the server must not be asked to.
        if !order.decompresses, !order.headers.contains("Accept-Encoding") {
            joined.append(Headers.Field(name: "Accept-Encoding", value: "identity"))
        }
        // Without it a streamed body goes out chunked.
        if case .pipe(_, let length?) = order.source {
            joined.append(Headers.Field(name: "Content-Length", value: "\(length)"))
        }
        return joined
    }

    /// The system's scale is 0 to 1.
    static func priority(_ priority: Request.Priority) -> Float {
        switch priority {
        case .veryLow: 0
        case .low: URLSessionTask.lowPriority
        case .normal: URLSessionTask.defaultPriority
        case .high: URLSessionTask.highPriority
        case .veryHigh: 1
        }
    }

    static func priority(_ value: Float) -> Request.Priority {
        switch value {
        case ..<0.125: .veryLow
        case ..<0.375: .low
        case ..<0.625: .normal
        case ..<0.875: .high
        default: .veryHigh
        }
    }
}
#endif
