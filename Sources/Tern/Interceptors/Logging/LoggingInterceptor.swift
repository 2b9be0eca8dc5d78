import TernConcurrency

/// Writes one line when a request is sent and one when its reply or its failure arrives. The lines hold no secrets and
/// no control characters.
///
/// ```
/// → session 1 #12 GET https://api.example.com/users?page=…
/// ← session 1 #12 200 in 31 ms, 4,096 bytes
/// ```
///
/// Put it last to see every attempt of the interceptors before it, and first to see what the caller sees.
public struct LoggingInterceptor: Interceptor {
    /// How much is written.
    public enum Level: Int, Sendable, Comparable {
        /// Failures alone.
        case failures
        /// A line per request and per reply.
        case lines
        /// The header fields too, those with secrets redacted.
        case headers

        /// Orders by how much is written.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    private let level: Level
    private let redacted: Set<String>
    private let write: @Sendable (String) -> Void

    /// - Parameters:
    ///   - level: How much is written. `.lines` by default.
    ///   - redacting: Names of header fields whose values are secrets, besides `Authorization`, `Cookie` and their kin.
    ///   - write: Takes one entry, without a line break at its end. Called from any thread.
    public init(
        _ level: Level = .lines, redacting: Set<String> = [], write: @escaping @Sendable (_ entry: String) -> Void
    ) {
        self.level = level
        redacted = Set(redacting.map { $0.lowercased() })
        self.write = write
    }

    /// Sends the request and writes what became of it.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        let name = "\(next.plan.context.id) \(next.task.id)" + (next.task.label.map { " [\($0.printable())]" } ?? "")
        let start = MonotonicClock.nanoseconds()
        if level >= .lines { write("→ \(name) \("\(request)".printable(limit: 600))" + fields(request.headers)) }
        do {
            let reply = try await next(request)
            if level >= .lines {
                let size = reply.body.map { ", \($0.count) bytes" } ?? ""
                write(
                    "← \(name) \(reply.status) in \(Self.milliseconds(since: start)) ms\(size)" + fields(reply.headers))
            }
            return reply
        } catch {
            let reason = "\(error)".printable(limit: 8_192)
            write("✗ \(name) failed in \(Self.milliseconds(since: start)) ms: \(reason)")
            throw error
        }
    }

    private static func milliseconds(since start: UInt64) -> UInt64 {
        (MonotonicClock.nanoseconds() &- start) / 1_000_000
    }

    private func fields(_ headers: Headers) -> String {
        guard level >= .headers else { return "" }
        return headers.map { field in
            let isHidden = redacted.contains(field.name.lowercased())
            let value = isHidden ? "<redacted>" : field.printableValue.printable(limit: 8_192)
            return "\n    \(field.name.printable()): \(value)"
        }.joined()
    }
}
