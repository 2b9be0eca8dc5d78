public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a web view is to show: bytes, and all that is needed to read them.
public struct WebContent: Sendable {
    /// The bytes, as they came or as a transform returned them.
    public let data: Data
    /// The media type without parameters, such as `text/html`.
    public let mimeType: String
    /// The IANA name of the charset of the bytes. It fits `data` also where a transform changed it.
    public let textEncoding: String
    /// What relative links refer to: the URL after redirects, with the fragment that applies to it (RFC 9110 §10.2.2), for
    /// the view to scroll to.
    public let baseURL: URL?
    /// The head of the response.
    public let response: ResponseHead
}

/// How a response becomes the content of a web view. A value.
public struct WebOptions: Sendable {
    /// The media type; nil, the default, for that of the response, and `text/html` where it has none.
    public var mimeType: String?
    /// The IANA name of the charset; nil, the default, for that of the response, and where it has none, for what the page
    /// says of itself. A name that the system does not know, and none at all, mean UTF-8. A byte order mark comes before all.
    public var textEncoding: String?
    /// What is made of the content before it is shown. Nothing by default.
    public var transform: WebTransform
    /// Whether the load starts within the call. True by default; otherwise it waits for `resume()`.
    public var startsImmediately: Bool

    /// The defaults, as stated at each property, and what differs from them.
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

/// What is made of a response's content before a web view shows it: what the closure returns is what is shown. Runs off
/// every actor. What it throws fails the load, as the `underlying` of an error of kind `.decoding`.
public struct WebTransform: Sendable {
    /// What is done about bytes that are no text in their charset.
    public enum Undecodable: Sendable, Hashable {
        /// The load fails, with an error of kind `.decoding`.
        case fails
        /// Each is replaced by U+FFFD.
        case isReplaced
    }

    enum Kind: Sendable {
        case none
        case data(@Sendable (Data, ResponseHead) throws -> Data)
        case html(Undecodable, @Sendable (String, ResponseHead) throws -> String)
    }

    let kind: Kind

    /// The content is shown as it came.
    public static let none = WebTransform(kind: .none)

    /// Other bytes, in the same charset.
    public static func data(_ transform: @escaping @Sendable (Data, ResponseHead) throws -> Data) -> Self {
        Self(kind: .data(transform))
    }

    /// Another text. It goes out in the charset it came in, or, where that cannot hold it, in UTF-8, and the encoding that
    /// the view is told changes with it.
    public static func html(
        undecodable: Undecodable = .fails, _ transform: @escaping @Sendable (String, ResponseHead) throws -> String
    ) -> Self {
        Self(kind: .html(undecodable, transform))
    }
}
