#if TERN_URLSESSION || !os(Linux)
import Foundation

/// What is measured of an attempt where the system measures nothing: by our own clock, at the delegate.
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
    /// What the system measured of the last request of a task; nil when it never got to one.
    init?(_ metrics: URLSessionTaskMetrics) {
        guard let last = metrics.transactionMetrics.last, let start = last.fetchStartDate else { return nil }
        func microseconds(_ date: Date?) -> Int64 {
            date.map { Int64(max(0, $0.timeIntervalSince(start)) * 1_000_000) } ?? -1
        }
        self.init()
        isReusedConnection = last.isReusedConnection
        if !last.isReusedConnection {
            nameLookupEnd = microseconds(last.domainLookupEndDate ?? last.connectStartDate)
            // The system counts TLS into the connection; we do not.
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

    /// Whether the request was on a connection.
    var wasConnected: Bool { isReusedConnection || connectEnd >= 0 || firstByteTime >= 0 }
}
#endif

extension HTTPVersion {
    /// By the name that ALPN has for it (RFC 7301).
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
