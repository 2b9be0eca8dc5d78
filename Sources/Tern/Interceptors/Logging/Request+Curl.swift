#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Request {
    /// The request as a `curl` command that can be pasted into a shell, without secrets: values of `Authorization`,
    /// `Cookie` and the like, user information and the values of the query are replaced by `<redacted>`, and bodies are
    /// named, not shown. The session's own headers are not in it.
    public var curlDescription: String {
        var words = ["curl"]
        if method == .head {
            words.append("--head")
        } else if method != .get {
            words += ["--request", Self.quoted(method.rawValue)]
        }
        for field in headers {
            words += ["--header", Self.quoted("\(field.name): \(field.printableValue)")]
        }
        if let contentType = body.contentType, !headers.contains("Content-Type") {
            words += ["--header", Self.quoted("Content-Type: \(contentType)")]
        }
        switch body.content {
        case .none: break
        case .file(let url): words += ["--data-binary", Self.quoted("@\(url.path)")]
        default: words += ["--data-binary", "@-"]
        }
        if let unixSocketPath { words += ["--unix-socket", Self.quoted(unixSocketPath)] }
        words.append(Self.quoted("\(target)"))
        return words.joined(separator: " ")
    }

    /// For a POSIX shell: nothing is special within single quotes but the quote itself.
    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
