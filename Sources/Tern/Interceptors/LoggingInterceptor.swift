import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes one line when a request is sent, and one when its reply or failure arrives. The lines contain no secrets and
/// no control characters.
///
/// ```
/// → session 1 #12 GET https://api.example.com/users?page=<redacted>
/// ← session 1 #12 200 in 31 ms, 4096 bytes
/// ```
///
/// Place it last to log every attempt of the interceptors before it, or first to log the result that the caller
/// receives.
public struct LoggingInterceptor: Interceptor {
    /// The amount of output.
    public enum Level: Int, Sendable, Comparable {
        /// Failures only.
        case failures
        /// One line for each request and each reply.
        case lines
        /// One line each, with the header fields. Secret values are redacted.
        case headers

        /// Orders levels by the amount of output.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    private let level: Level
    private let redacted: Set<String>
    private let revealed: RevealedValues
    private let write: @Sendable (String) -> Void

    /// - Parameters:
    ///   - level: The amount of output. `.lines` by default.
    ///   - redacting: The names of further header fields with secret values, besides `Authorization`, `Cookie` and
    ///     similar.
    ///   - revealing: The query parameters whose values are shown, such as `page`. None by default: each value is
    ///     replaced by `<redacted>`. Header fields are not revealed.
    ///   - write: Receives one entry without a trailing line break. Called from any thread.
    public init(
        _ level: Level = .lines, redacting: Set<String> = [], revealing: RevealedValues = .none,
        write: @escaping @Sendable (_ entry: String) -> Void
    ) {
        self.level = level
        redacted = Set(redacting.map { $0.lowercased() })
        revealed = revealing
        self.write = write
    }

    /// Returns false.
    public var changesRequests: Bool { false }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }

    /// Sends the request and logs the result.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        let name =
            "\(next.task.sessionID) \(next.task.id)"
            + (next.task.label.map { " [\($0.printable())]" } ?? "")
        let start = MonotonicClock.nanoseconds()
        if level >= .lines { write("→ \(name) \(text(of: request))" + fields(request.headers)) }
        do {
            let reply = try await next(request)
            if level >= .lines {
                let size = reply.body.map { ", \($0.count) bytes" } ?? ""
                write(
                    "← \(name) \(reply.status) in \(Self.milliseconds(since: start)) ms\(size)" + fields(reply.headers))
            }
            return reply
        } catch {
            let reason = error.description(revealing: revealed).printable(limit: 8_192)
            // The fields of a refusal often name the request in the server's own logs.
            let head = error.response.map { fields($0.headers) } ?? ""
            write("✗ \(name) failed in \(Self.milliseconds(since: start)) ms: \(reason)" + head)
            throw error
        }
    }

    private func text(of request: Request) -> String {
        // The name has the label.
        var request = request
        request.label = nil
        return request.description(revealing: revealed).printable(limit: 600)
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

extension Request {
    /// The request as a `curl` command for a shell, without secrets. Values of `Authorization`, `Cookie` and similar
    /// fields, and query values, are replaced by `<redacted>`; user information is left out. A file is named as the
    /// body; any other body is left out, and read from standard input. The session's own headers are not included.
    public var curlDescription: String { curlDescription(revealing: .none) }

    /// Returns the request as a `curl` command for a shell, like ``curlDescription``, with the revealed values of query
    /// parameters and header fields. With `.all`, it can be pasted as it is: it has the body, too, if that is a text in
    /// memory, such as JSON, of at most 64 KiB. Values are encoded with the default settings of ``JSONCoding``; binary
    /// bodies, forms with files and streams are read from standard input.
    ///
    /// ```swift
    /// print(request.curlDescription(revealing: ["page", "sort", "Authorization"]))
    /// ```
    public func curlDescription(revealing revealed: RevealedValues) -> String {
        var words = ["curl"]
        if method == .head {
            words.append("--head")
        } else if method != .get || !body.isNone {
            words += ["--request", Self.quoted(method.rawValue)]
        }
        for field in headers {
            let value = revealed.contains(field.name) ? field.value : field.printableValue
            words += ["--header", Self.quoted("\(field.name): \(value)")]
        }
        if !body.isNone, !headers.contains("Content-Type") {
            // Without a value, curl sends no field in place of its own.
            let contentType = body.contentType.map { " \($0)" } ?? ""
            words += ["--header", Self.quoted("Content-Type:\(contentType)")]
        }
        switch body.content {
        case .none: break
        case .file(let url): words += ["--data-binary", Self.quoted("@\(url.path)")]
        default:
            if revealed.isAll, let text = body.shortText {
                words += ["--data-raw", Self.quoted(text)]
            } else {
                words += ["--data-binary", "@-"]
            }
        }
        if revealed.isAll, case .password(let name, let password)? = Credential(of: target)?.content {
            words += ["--user", Self.quoted("\(name):\(password)")]
        }
        if let unixSocketPath { words += ["--unix-socket", Self.quoted(unixSocketPath)] }
        words.append(Self.quoted(target.description(revealing: revealed, limit: .max)))
        return words.joined(separator: " ")
    }

    /// Quotes a text for a POSIX shell. Within single quotes only the quote itself is special.
    ///
    /// A shell reads bytes. As a character, a quote followed by a combining mark would not be a quote.
    private static func quoted(_ text: String) -> String {
        let quote = UInt8(ascii: "'")
        var result = [quote]
        for byte in text.utf8 {
            if byte == quote { result += "'\\''".utf8 } else { result.append(byte) }
        }
        return String(decoding: result + [quote], as: UTF8.self)
    }
}
