import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The head of a response: status and header fields.
///
/// The raw bytes are kept, and parsed when the fields are first asked for; copies share the result.
public struct ResponseHead: Sendable {
    /// What all copies share: a head goes through many hands, and each reference in it is counted at each of them.
    private final class Shared: Sendable {
        let target: Target
        let bytes: [UInt8]
        let maySetCookies: Bool
        private let parsed: Lock<(reason: String, headers: Headers)?>

        init(_ target: Target, _ bytes: [UInt8], maySetCookies: Bool) {
            self.target = target
            self.bytes = bytes
            self.maySetCookies = maySetCookies
            parsed = Lock(nil)
        }

        init(_ target: Target, reason: String, headers: Headers) {
            self.target = target
            bytes = []
            maySetCookies = headers.contains("Set-Cookie")
            parsed = Lock((reason, headers))
        }

        var content: (reason: String, headers: Headers) {
            if let known = parsed.withLock({ $0 }) { return known }
            // A head that does not parse never gets here: the wire engine has refused it.
            let head = try? ResponseHeadParser.parse(bytes)
            let content = (head?.reason ?? "", head?.headers ?? [:])
            parsed.withLock { $0 = content }
            return content
        }
    }

    /// The status code.
    public let status: Int
    /// The version of HTTP that carried the response.
    public let version: HTTPVersion
    /// The URL that answered, as it was sent.
    public var urlString: String { target.string }
    /// The redirects that led here, oldest first.
    public package(set) var redirects: [ResponseHead] = []
    package var target: Target { shared.target }
    private let shared: Shared

    /// `maySetCookies`: the raw bytes have a Set-Cookie field, as far as whoever read them can tell.
    package init(
        status: Int, version: HTTPVersion, target: Target, rawHead: [UInt8], maySetCookies: Bool = true
    ) {
        self.status = status
        self.version = version
        shared = Shared(target, rawHead, maySetCookies: maySetCookies)
    }

    package init(status: Int, version: HTTPVersion, target: Target, reason: String = "", headers: Headers) {
        self.status = status
        self.version = version
        shared = Shared(target, reason: reason, headers: headers)
    }

    /// The `Set-Cookie` fields byte for byte, if the head came from the wire.
    package var setCookies: [[UInt8]] {
        shared.bytes.isEmpty
            ? headers.values(for: "Set-Cookie").map { Array($0.utf8) }
            : ResponseHeadParser.rawValues(of: "Set-Cookie", in: shared.bytes)
    }
    /// Whether there may be a `Set-Cookie`, told without parsing.
    package var maySetCookies: Bool { shared.maySetCookies }
    /// The header fields, in order, several values per name.
    public var headers: Headers { shared.content.headers }
    /// The reason phrase of an HTTP/1 status line; empty over HTTP/2.
    public var reasonPhrase: String { shared.content.reason }
    /// The URL that answered.
    public var url: URL? { target.url }

    /// The fragment that applies to the response: of the URL that was asked for, or of a redirect that named another
    /// (RFC 9110 §10.2.2). Never sent; nil without one.
    public var fragment: String? { target.fragment }

    /// A name for a file with the body: from Content-Disposition (RFC 6266), else the last part of the URL's path, else
    /// `download`. Sanitised: one path component, no separators, no `..`.
    public var suggestedFilename: String {
        SuggestedFilename.name(contentDisposition: headers["Content-Disposition"], target: target)
    }

    /// The codings of the body in the order in which they were applied, in lower case. Empty elements of the list are
    /// ignored (RFC 9110 §5.6.1).
    package var contentCodings: [String] {
        headers.values(for: "Content-Encoding")
            .flatMap { $0.split { $0 == "," || $0 == " " || $0 == "\t" } }.map { $0.lowercased() }
            // "none" is not a coding of RFC 9110; servers send it for a body without a coding.
            .filter { $0 != "identity" && $0 != "none" }
    }

    /// The length of the body that the head states; nil when it states none.
    public var contentLength: Int64? { headers["Content-Length"].flatMap { Int64($0) } }
}

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    /// Status and URL; the values of the query are hidden.
    public var description: String { "\(status) \(target)" }

    /// Status, URL and headers without what is secret in them: `dump` would show the bytes as they came.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "url": target.description, "headers": headers])
    }
}

/// A version of HTTP.
public enum HTTPVersion: String, Sendable, Hashable {
    /// HTTP/1.0.
    case http10 = "HTTP/1.0"
    /// HTTP/1.1.
    case http11 = "HTTP/1.1"
    /// HTTP/2.
    case http2 = "HTTP/2"
    /// HTTP/3.
    case http3 = "HTTP/3"
}
