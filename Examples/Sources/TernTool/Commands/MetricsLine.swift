import Tern

/// What was measured of a task, in one line.
enum MetricsLine {
    static func text(_ metrics: TaskMetrics) -> String {
        var parts: [String] = []
        if let version = metrics.httpVersion { parts.append(version.rawValue) }
        if let address = metrics.remoteAddress {
            let host = address.contains(":") ? "[\(address)]" : address
            let connection = metrics.isReusedConnection ? "reused" : "new"
            parts.append("\(host)\(metrics.remotePort.map { ":\($0)" } ?? "") (\(connection) connection)")
        }
        let times: [(String, Duration?)] = [
            ("dns", metrics.nameLookup), ("connect", metrics.connect), ("tls", metrics.tls),
            ("first byte", metrics.firstByte), ("total", metrics.total),
        ]
        for case (let name, let time?) in times { parts.append("\(name) \(DurationText.span(time))") }
        parts.append("sent \(ByteText.size(metrics.sentBytes))")
        parts.append("received \(ByteText.size(metrics.receivedBytes))")
        if metrics.attempts > 1 { parts.append("\(metrics.attempts) attempts") }
        return parts.joined(separator: " · ")
    }
}
