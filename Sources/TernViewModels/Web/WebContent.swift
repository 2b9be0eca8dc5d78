public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Content for a web view: the bytes, and the information to interpret them.
public struct WebContent: Sendable {
    /// The bytes as received or as returned by a transform.
    public let data: Data
    /// The media type without parameters, such as `text/html`.
    public let mimeType: String
    /// The IANA name of the charset of `data`, also after a transform changed it.
    public let textEncoding: String
    /// The base of relative links: the URL after redirects, with the fragment that applies to it (RFC 9110 §10.2.2), so
    /// that the view can scroll there.
    public let baseURL: URL?
    /// The head of the response.
    public let response: ResponseHead
}

/// Options for turning a response into the content of a web view.
public struct WebOptions: Sendable {
    /// The media type; nil, the default, for the type of the response, or `text/html` if it has none.
    public var mimeType: String?
    /// The IANA name of the charset; nil, the default, for the charset of the response, or that of the page's own
    /// declaration if the response has none. A missing or unknown name means UTF-8. A byte order mark takes precedence.
    public var textEncoding: String?
    /// The transform to apply before the content is shown; none by default.
    public var transform: WebTransform
    /// A Boolean value that indicates whether the load starts within the call. True by default; otherwise it waits for
    /// `resume()`.
    public var startsImmediately: Bool

    /// Creates options; the default values are stated at each property.
    public init(
        mimeType: String? = nil, textEncoding: String? = nil, transform: WebTransform = .none,
        startsImmediately: Bool = true
    ) {
        self.mimeType = mimeType
        self.textEncoding = textEncoding
        self.transform = transform
        self.startsImmediately = startsImmediately
    }
}

/// A transform of a response's content before a web view shows it.
///
/// The closure runs off every actor, and its result is shown. If it throws, the load fails with an error of kind
/// `.decoding`, whose `underlying` is the thrown error.
public struct WebTransform: Sendable {
    /// The handling of bytes that are invalid in their charset.
    public enum InvalidBytes: Sendable, Hashable {
        /// The load fails with an error of kind `.decoding`.
        case fail
        /// U+FFFD replaces each invalid byte.
        case replace
    }

    enum Kind: Sendable {
        case none
        case data(@Sendable (Data, ResponseHead) throws -> Data)
        case html(InvalidBytes, @Sendable (String, ResponseHead) throws -> String)
    }

    let kind: Kind

    /// Shows the content as received.
    public static let none = WebTransform(kind: .none)

    /// Transforms the bytes, without changing their charset.
    public static func data(_ transform: @escaping @Sendable (Data, ResponseHead) throws -> Data) -> Self {
        Self(kind: .data(transform))
    }

    /// Transforms the text. The result keeps the charset of the page or, if that cannot encode the text, uses UTF-8;
    /// the `textEncoding` of the content changes accordingly.
    public static func html(
        invalidBytes: InvalidBytes = .fail, _ transform: @escaping @Sendable (String, ResponseHead) throws -> String
    ) -> Self {
        Self(kind: .html(invalidBytes, transform))
    }
}

/// Builds the content of a web view from a response. Pure; runs off every actor.
enum WebContentBuilder {
    @concurrent
    static func content(of response: Response<Data>, _ options: WebOptions) async -> Result<WebContent, FailureCause> {
        do {
            return .success(try content(from: response.value, head: response.head, options: options))
        } catch let problem as TextDecoding.Problem {
            return .failure(FailureCause(.decoding, "the page from \(response.head.target): \(problem)"))
        } catch {
            let reason = "the transform of the page from \(response.head.target) failed"
            return .failure(FailureCause(.decoding, reason, underlying: error))
        }
    }

    static func content(from body: Data, head: ResponseHead, options: WebOptions) throws -> WebContent {
        let type = head.mediaType
        let charset = WebCharset(of: body, options.textEncoding ?? type?.charset)
        var (data, textEncoding) = (body, charset.name)
        switch options.transform.kind {
        case .none:
            break
        case .data(let transform):
            data = try transform(body, head)
        case .html(let invalidBytes, let transform):
            let bytes = Array(body.dropFirst(charset.markLength))
            let text =
                switch invalidBytes {
                case .fail: try TextDecoding.string(from: bytes, charset: charset.name)
                case .replace: try TextDecoding.replacing(bytes, charset: charset.name)
                }
            (data, textEncoding) = encoded(try transform(text, head), charset.name)
        }
        return WebContent(
            data: data, mimeType: options.mimeType ?? type?.essence ?? "text/html", textEncoding: textEncoding,
            baseURL: baseURL(of: head), response: head)
    }

    /// Returns the URL with the fragment, to which the view scrolls.
    private static func baseURL(of head: ResponseHead) -> URL? {
        guard let fragment = head.fragment else { return head.url }
        return URL(string: "\(head.urlString)#\(fragment)")
    }

    private static func encoded(_ text: String, _ charset: String) -> (Data, String) {
        // Some views misread UTF-16 without a byte order mark, and UTF-8 can encode the same text.
        if !charset.hasPrefix("utf-"), let bytes = TextDecoding.bytes(of: text, charset: charset) {
            return (Data(bytes), charset)
        }
        return (Data(text.utf8), "utf-8")
    }
}
