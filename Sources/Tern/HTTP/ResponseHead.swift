import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The head of a response: status and header fields.
///
/// The raw bytes are kept and parsed on first access. Copies share the result.
public struct ResponseHead: Sendable {
    /// The state that all copies share. A head is copied often, and each reference in it would need a count update on
    /// every copy.
    private final class Shared: Sendable {
        let target: Target
        let bytes: [UInt8]
        let maySetCookies: Bool
        /// nil for most heads.
        let additions: Additions?
        /// The content once it is parsed, empty before. A class, because most heads are never parsed and are released
        /// by one count.
        private let parsed = AtomicLazyReference<Parsed>()

        init(_ target: Target, _ bytes: [UInt8], maySetCookies: Bool) {
            self.target = target
            self.bytes = bytes
            self.maySetCookies = maySetCookies
            additions = nil
        }

        init(_ target: Target, reason: String, headers: Headers) {
            self.target = target
            bytes = []
            maySetCookies = headers.contains("Set-Cookie")
            additions = nil
            _ = parsed.storeIfNil(Parsed(reason: reason, headers: headers))
        }

        /// Creates the same state with a trace, a file or redirects.
        init(_ other: Shared, _ additions: Additions) {
            target = other.target
            bytes = other.bytes
            maySetCookies = other.maySetCookies
            self.additions = additions
            if let known = other.parsed.load() { _ = parsed.storeIfNil(known) }
        }

        var content: Parsed {
            if let known = parsed.load() { return known }
            // The engine refuses a head that cannot be parsed, so it never gets here.
            let head = try? ResponseHeadParser.parse(bytes)
            return parsed.storeIfNil(Parsed(reason: head?.reason ?? "", headers: head?.headers ?? [:]))
        }

        /// The first value of a header. One that is asked for before all others is read from the bytes alone.
        func value(of name: String) -> String? {
            if parsed.load() == nil, let value = ResponseHeadParser.value(of: name, in: bytes) { return value }
            return content.headers[name]
        }
    }

    /// The properties that the session adds to a head. One reference, which is nil for most heads.
    private final class Additions: Sendable {
        let trace: (any CacheTraceSource)?
        let file: URL?
        let redirects: [ResponseHead]

        init(trace: (any CacheTraceSource)?, file: URL?, redirects: [ResponseHead]) {
            self.trace = trace
            self.file = file
            self.redirects = redirects
        }
    }

    private final class Parsed: Sendable {
        let reason: String
        let headers: Headers

        init(reason: String, headers: Headers) {
            self.reason = reason
            self.headers = headers
        }
    }

    /// The status code.
    public let status: Int
    /// The version of HTTP of the response.
    public let version: HTTPVersion
    /// The URL of the response, as it was sent.
    public var urlString: String { target.string }
    /// The redirects that led to the response, oldest first.
    public var redirects: [ResponseHead] { shared.additions?.redirects ?? [] }
    /// The record of how the session's cache handled the response; nil for a session without a cache.
    public var cacheTrace: CacheTrace? { shared.additions?.trace?.trace }
    package var target: Target { shared.target }
    private var shared: Shared

    /// `maySetCookies` is false only if the reader of the raw bytes found no Set-Cookie field.
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

    /// Returns the head with the redirects that led to it.
    package func redirected(by redirects: [ResponseHead]) -> ResponseHead {
        var head = self
        head.shared = Shared(shared, Additions(trace: shared.additions?.trace, file: file, redirects: redirects))
        return head
    }

    /// Returns the head with the record of the cache.
    package func traced(by trace: any CacheTraceSource) -> ResponseHead {
        var head = self
        head.shared = Shared(shared, Additions(trace: trace, file: file, redirects: redirects))
        return head
    }

    /// Returns the head without the redirects that led to it, and with at most so many bytes of header fields, for those
    /// who keep many heads.
    package func limited(toBytes limit: Int) -> ResponseHead {
        let isShort = shared.bytes.isEmpty || shared.bytes.count > limit ? nil : true
        let isLimited = isShort ?? headers.areLimited(toBytes: limit)
        if isLimited, redirects.isEmpty { return self }
        guard isLimited else {
            var head = ResponseHead(
                status: status, version: version, target: target, headers: headers.limited(toBytes: limit))
            if let trace = shared.additions?.trace { head = head.traced(by: trace) }
            return head
        }
        return redirected(by: [])
    }

    /// The file of the body, if a policy made a download of the response (`ResponseDisposition.becomeDownload`);
    /// otherwise nil.
    public var file: URL? { shared.additions?.file }

    /// Returns the head of a response whose body was written to a file.
    func saved(as file: URL) -> ResponseHead {
        var head = self
        head.shared = Shared(shared, Additions(trace: shared.additions?.trace, file: file, redirects: redirects))
        return head
    }

    /// The `Set-Cookie` fields byte for byte, if the head came from the network.
    package var setCookies: [[UInt8]] {
        shared.bytes.isEmpty
            ? headers.values(for: "Set-Cookie").map { Array($0.utf8) }
            : ResponseHeadParser.rawValues(of: "Set-Cookie", in: shared.bytes)
    }
    /// Whether there can be a `Set-Cookie` field, known without parsing.
    package var maySetCookies: Bool { shared.maySetCookies }
    /// The header fields in order. A name can have several values.
    public var headers: Headers { shared.content.headers }
    /// The reason phrase of an HTTP/1 status line; empty over HTTP/2.
    public var reasonPhrase: String { shared.content.reason }
    /// The URL of the response.
    public var url: URL? { target.url }

    /// The fragment that applies to the response: that of the requested URL, or of a redirect that named another (RFC
    /// 9110 §10.2.2). It is never sent; nil without one.
    public var fragment: String? { target.fragment }

    /// The type of the body by `Content-Type`; nil without that field, and for a value that is no type. Most typed
    /// calls read no other field.
    package var mediaType: MediaType? { shared.value(of: "Content-Type").flatMap { MediaType($0) } }

    /// A name for a file with the body: from Content-Disposition (RFC 6266), otherwise the last component of the URL's
    /// path, otherwise `download`. It is one path component without separators and `..`.
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

    /// The codings that the session removes from the body; empty if it delivers the body as it came.
    ///
    /// A value that is no content coding, such as the name of a charset, says nothing about the bytes: servers send
    /// such values, and the body is delivered as it came. A registered coding that cannot be decoded is an error
    /// instead, because the bytes are encoded for certain.
    package var removableCodings: [String] {
        let codings = contentCodings
        return codings.allSatisfy { Self.registeredCodings.contains($0) } ? codings : []
    }

    /// The registered content codings (RFC 9110 §18.6), and their names in older messages.
    private static let registeredCodings: Set = [
        "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz", "aes128gcm", "exi",
        "pack200-gzip",
    ]

    /// The length of the body that the head states; nil if it states none.
    public var contentLength: Int64? {
        // Not every transport refuses a sign.
        headers["Content-Length"].flatMap { $0.utf8.first.map { $0.isASCIIDigit } ?? false ? Int64($0) : nil }
    }
}

extension ResponseHead {
    /// Whether the response can lead to another request: a redirect, a challenge, or a refused expectation (417).
    var mayBeFollowed: Bool {
        guard status >= 400 else { return status >= 300 }
        return [401, 407, 417, 421].contains(status)
    }
}

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without query values.
    public var description: String { "\(status) \(target)" }

    /// The status, URL and headers without secrets. Without this mirror, `dump` would show the raw bytes.
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
