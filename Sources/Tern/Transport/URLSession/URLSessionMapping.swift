#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Maps a wire request to URLSession's types.
enum URLSessionRequest {
    /// The system's time limit, which must never be the first: Tern's own clocks distinguish idle from total and stop
    /// in a pause. One week, as the system's limit for a resource; FoundationNetworking accepts no infinite one.
    static let noTimeout: TimeInterval = 604_800

    /// Returns the request; nil if the system cannot read the URL.
    ///
    /// - Parameter assumesHTTP3: Whether the server is known to speak HTTP/3.
    static func make(_ request: WireRequest, assumesHTTP3: Bool = false) -> URLRequest? {
        guard var url = request.target.url else { return nil }
        if request.upgrade != nil, let socketURL = socketURL(url) { url = socketURL }
        var result = URLRequest(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: noTimeout)
        result.httpMethod = request.method.rawValue
        result.httpShouldHandleCookies = false
        #if canImport(Darwin)
        result.assumesHTTP3Capable = assumesHTTP3
        #endif
        for field in fields(request) { result.setValue(field.value, forHTTPHeaderField: field.name) }
        return result
    }

    /// Returns the URL with the scheme of WebSockets, which the system's socket tasks require.
    private static func socketURL(_ url: URL) -> URL? {
        var components = URLComponents(url: url, resolvingAgainstBaseURL: false)
        components?.scheme = url.scheme?.lowercased() == "https" ? "wss" : "ws"
        return components?.url
    }

    /// Returns the fields to set. URLSession holds one value for each name, so several are joined, as RFC 9110 §5.3
    /// allows, and RFC 9113 §8.2.3 for cookies.
    static func fields(_ request: WireRequest) -> [Headers.Field] {
        var joined: [Headers.Field] = []
        for field in request.headers {
            // The system authenticates to its proxies itself, and a server must not receive credentials for a proxy.
            if Headers.namesMatch(field.name, "Proxy-Authorization") { continue }
            // The system has a key of its own, and offers no extension that the session's side could use.
            if request.upgrade != nil, field.name.lowercased().hasPrefix("sec-websocket-"),
                !Headers.namesMatch(field.name, "Sec-WebSocket-Protocol")
            {
                continue
            }
            if let place = joined.firstIndex(where: { $0.name.lowercased() == field.name.lowercased() }) {
                let separator = field.name.lowercased() == "cookie" ? "; " : ", "
                joined[place].value += separator + field.value
            } else {
                joined.append(field)
            }
        }
        // Values are text here: each byte of such cookies becomes the Unicode scalar with its number.
        if let cookies = request.rawCookie {
            joined.append(Headers.Field(name: "Cookie", value: TextDecoding.latin1(cookies.span)))
        }
        // URLSession decompresses every compressed body, so the server is asked for an uncompressed one.
        if !request.decompresses, !request.headers.contains("Accept-Encoding") {
            joined.append(Headers.Field(name: "Accept-Encoding", value: "identity"))
        }
        // Without Content-Length, a streamed body is sent chunked.
        if case .pipe(_, let length?) = request.source {
            joined.append(Headers.Field(name: "Content-Length", value: "\(length)"))
        }
        return joined
    }

    /// Returns the priority on the system's scale from 0 to 1.
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

/// The head of a response, with the expected length of the body.
struct URLSessionResponse {
    let head: ResponseHead
    /// The number of bytes of the body after decompression; nil if it is not known.
    let expected: Int64?
    let isCompressed: Bool

    init(_ response: SystemResponse, to request: WireRequest) {
        self.init(response, target: request.target, method: request.method)
    }

    init(_ response: SystemResponse, target: Target, method: Request.Method) {
        // URLSession joins the values of a name and loses the order of names. They are sorted, so that equal heads are
        // equal.
        let headers = Headers(response.fields)
        // The version is known only at the end, from the metrics.
        head = ResponseHead(status: response.status, version: .http11, target: target, headers: headers)
        let coding = headers["Content-Encoding"]?.lowercased()
        isCompressed = coding != nil && coding != "identity"
        let hasNoBody = method == .head || response.status == 204 || response.status == 304
        let length = headers["Content-Length"].flatMap { Int64($0) }
        expected = isCompressed || hasNoBody ? nil : length.flatMap { $0 >= 0 ? $0 : nil }
    }
}

extension ResponseHead {
    /// Returns the same head with another version of HTTP.
    func over(_ version: HTTPVersion?) -> ResponseHead {
        guard let version, version != self.version else { return self }
        return ResponseHead(status: status, version: version, target: target, headers: headers)
    }
}

/// Measures an attempt with Tern's own clock, at the delegate, where the system measures nothing.
struct URLSessionStopwatch {
    let startedAt: UInt64
    var firstByteAt: UInt64?

    func metrics(now: UInt64, sent: Int64, received: Int64) -> TaskMetrics {
        var metrics = TaskMetrics()
        metrics.totalTime = microseconds(until: now)
        if let firstByteAt { metrics.firstByteTime = microseconds(until: firstByteAt) }
        metrics.sentBytes = sent
        metrics.receivedBytes = received
        metrics.decodedBodyBytes = received
        return metrics
    }

    private func microseconds(until instant: UInt64) -> Int64 {
        Int64(clamping: (instant - min(instant, startedAt)) / 1_000)
    }
}

#if !canImport(FoundationNetworking)
extension TaskMetrics {
    /// Creates metrics from those of the last request of a system task; nil if there was none.
    init?(_ metrics: URLSessionTaskMetrics) {
        guard let last = metrics.transactionMetrics.last, let start = last.fetchStartDate else { return nil }
        func microseconds(_ date: Date?) -> Int64 {
            date.map { Int64(max(0, $0.timeIntervalSince(start)) * 1_000_000) } ?? -1
        }
        self.init()
        isReusedConnection = last.isReusedConnection
        if !last.isReusedConnection {
            nameLookupEnd = microseconds(last.domainLookupEndDate ?? last.connectStartDate)
            // The system includes TLS in the time of the connection; Tern does not.
            connectEnd = microseconds(last.secureConnectionStartDate ?? last.connectEndDate)
            tlsEnd = microseconds(last.secureConnectionEndDate)
        }
        firstByteTime = microseconds(last.responseStartDate)
        totalTime = microseconds(last.responseEndDate ?? metrics.taskInterval.end)
        sentBytes = last.countOfRequestHeaderBytesSent + last.countOfRequestBodyBytesSent
        receivedBytes = last.countOfResponseHeaderBytesReceived + last.countOfResponseBodyBytesReceived
        decodedBodyBytes = last.countOfResponseBodyBytesAfterDecoding
        remoteAddress = last.remoteAddress
        remotePort = last.remotePort
        httpVersion = last.networkProtocolName.flatMap { HTTPVersion(alpn: $0) }
    }

    /// Whether the request had a connection.
    var wasConnected: Bool { isReusedConnection || connectEnd >= 0 || firstByteTime >= 0 }
}
#endif

extension HTTPVersion {
    /// Creates a version from its ALPN name (RFC 7301).
    init?(alpn name: String) {
        switch name.lowercased() {
        case "http/1.0": self = .http10
        case "http/1.1": self = .http11
        case "h2", "h2c": self = .http2
        case let name where name.hasPrefix("h3"): self = .http3
        default: return nil
        }
    }
}
#endif
