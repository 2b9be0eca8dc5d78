public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Exchanges with a real server, as a file to read, edit and store with the tests.
///
/// ```swift
/// // Once, against the real server:
/// let recorder = Recorder()
/// let live = try Client(baseURL: "https://api.example.com", session: Session(recorder: recorder))
/// _ = try await live.get("users/1", as: User.self)
/// try recorder.recording.write(to: file)
/// // From then on, without one:
/// let replay = StubTransport(replaying: try Recording(contentsOf: file))
/// let client = try Client(baseURL: "https://api.example.com", session: Session(stub: replay))
/// let user = try await client.get("users/1", as: User.self)
/// ```
///
/// The file is JSON with sorted names. Bodies that are UTF-8 text, including JSON, are stored as text, others as
/// Base64. Secrets are removed before anything is written (``Redaction``).
public struct Recording: Sendable, Hashable, Codable {
    /// The exchanges in the order of their responses. Each request on the wire is one exchange, including redirects and
    /// challenges.
    public var exchanges: [Exchange]
    /// The version of the format.
    private var format = 1

    /// Creates a recording of exchanges.
    public init(_ exchanges: [Exchange] = []) { self.exchanges = exchanges }

    private enum CodingKeys: CodingKey {
        case exchanges, format
    }

    /// Reads a recording, or a HAR file as ``init(har:redaction:)`` does by default.
    ///
    /// - Throws: The error of reading the file, or a `DecodingError` that names the invalid part.
    public init(contentsOf file: URL) throws {
        let data = try Data(contentsOf: file)
        if HARFile.isHAR(data) {
            try self.init(har: data)
            return
        }
        self = try TernJSONDecoder().decode(Recording.self, from: data)
        guard format == 1 else {
            let problem = "a recording of format \(format); this version reads format 1"
            throw DecodingError.dataCorrupted(.init(codingPath: [CodingKeys.format], debugDescription: problem))
        }
    }

    /// Writes the recording atomically to a file that only its owner can read (mode 0600). A failure leaves an existing
    /// file unchanged. The ``Details`` of the exchanges are not written (``writeHAR(to:redaction:bodyLimit:)``).
    ///
    /// - Throws: The error of writing the file.
    public func write(to file: URL) throws {
        var encoder = TernJSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        var data = try encoder.encode(self)
        data.append(UInt8(ascii: "\n"))
        try OwnerOnlyFile.write(data, to: file.path)
    }
}

extension Recording {
    /// One request on the wire and its result.
    public struct Exchange: Sendable, Hashable, Codable {
        /// The request.
        public var request: Sent
        /// The response; nil if the exchange failed without one.
        public var response: Received?
        /// The failure; nil if there was none.
        public var failure: Failed?
        /// The times and further facts, if they are known.
        public var details: Details?

        private enum CodingKeys: CodingKey {
            case request, response, failure
        }

        /// Creates an exchange from its parts.
        public init(request: Sent, response: Received? = nil, failure: Failed? = nil) {
            self.request = request
            self.response = response
            self.failure = failure
        }
    }

    /// A request as sent.
    public struct Sent: Sendable, Hashable, Codable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// The header fields in order, each as `Name: value`.
        public var headers: [String]
        /// The body, or its beginning; nil for none.
        public var body: Content?
        /// The part of the body that this recording lacks; nil if `body` is whole. Such a request matches each body.
        public var cut: Cut?

        /// Creates a request from its parts.
        public init(method: String, url: String, headers: [String] = [], body: Content? = nil, cut: Cut? = nil) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
            self.cut = cut
        }
    }

    /// A response as received, with its body decompressed.
    public struct Received: Sendable, Hashable, Codable {
        /// The status code.
        public var status: Int
        /// The header fields in order, each as `Name: value`; without `Content-Encoding`, and with the length of the
        /// body in this recording.
        public var headers: [String]
        /// The body, or its beginning; nil for none.
        public var body: Content?
        /// The part of the body that this recording lacks; nil if `body` is whole. A replay fails behind `body`.
        public var cut: Cut?

        /// Creates a response from its parts.
        public init(status: Int, headers: [String] = [], body: Content? = nil, cut: Cut? = nil) {
            self.status = status
            self.headers = headers
            self.body = body
            self.cut = cut
        }
    }

    /// A failure of an exchange.
    public struct Failed: Sendable, Hashable, Codable {
        /// The name of the kind of the `NetworkError`.
        public var kind: String
        /// The reason of the error.
        public var reason: String

        /// Creates a failure; `kind` is a `NetworkError.Kind.rawValue`.
        public init(kind: String, reason: String) {
            self.kind = kind
            self.reason = reason
        }
    }

    /// A body, stored as text where possible.
    public enum Content: Sendable, Hashable, Codable {
        /// UTF-8 text.
        case text(String)
        /// Other bytes.
        case data(Data)

        init?(_ data: Data) {
            if data.isEmpty { return nil }
            if let text = String(validating: data, as: UTF8.self) { self = .text(text) } else { self = .data(data) }
        }

        /// The bytes.
        public var data: Data {
            switch self {
            case .text(let text): Data(text.utf8)
            case .data(let data): data
            }
        }

        private enum CodingKeys: String, CodingKey {
            case base64
        }

        /// Decodes a string, or an object with Base64 bytes in `base64`.
        public init(from decoder: any Decoder) throws {
            if let container = try? decoder.singleValueContainer(), let text = try? container.decode(String.self) {
                // Both forms are valid, and only decoding shows which one it is.
                self = .text(text)
            } else {
                self = .data(try decoder.container(keyedBy: CodingKeys.self).decode(Data.self, forKey: .base64))
            }
        }

        /// Encodes a string, or an object with Base64 bytes in `base64`.
        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .text(let text):
                var container = encoder.singleValueContainer()
                try container.encode(text)
            case .data(let data):
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(data, forKey: .base64)
            }
        }
    }
}

extension Headers {
    /// The fields, each as `Name: value`.
    package var recorded: [String] { map { "\($0.name): \($0.value)" } }

    /// Creates headers from fields of the form `Name: value`; a line without a colon is a name without a value.
    package init(recorded: [String]) {
        self.init(
            recorded.map { line in
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
                return Field(name: String(parts[0]), value: String(value))
            })
    }
}

extension Recording {
    /// A change that removes information from an exchange before it is recorded.
    public struct Redaction: Sendable {
        package let change: @Sendable (inout Exchange) -> Void

        /// Creates a redaction from a closure. It is applied to recorded exchanges, and to the request of a call before
        /// the look-up, so that both match.
        public init(_ change: @escaping @Sendable (inout Exchange) -> Void) { self.change = change }

        /// Changes nothing.
        public static let none = Redaction { _ in }

        /// Hides the values of secrets in requests and responses. The default.
        ///
        /// Hides the values of headers that carry credentials (`Authorization`, `Cookie`, `X-API-Key` and similar), of
        /// cookies that a response sets, of user information and of the items of URLs (those of requests, `Location`,
        /// `Content-Location`, `Referer`, `Link` and `Refresh`) and of fields in JSON bodies, forms and multipart
        /// forms. An item or a field is secret if its name is `password`, `token`, `access_token`, `refresh_token`,
        /// `id_token`, `secret`, `client_secret`, `api_key`, `signature`, `otp` or similar. In JSON, at any depth, a
        /// string becomes `"<redacted>"` and a number `0`. Other bodies stay unchanged.
        public static let secrets = secrets()

        /// Hides what the default hides, with additional names, with exceptions, or without changes to bodies.
        ///
        /// - Parameters:
        ///   - names: Additional names of headers, items and JSON keys whose values are secrets. Case, `_` and `-` make
        ///     no difference. Empty by default.
        ///   - revealed: The headers, items and JSON keys whose values stay although their names are those of secrets.
        ///     None by default.
        ///   - inBodies: A Boolean value that indicates whether bodies are changed. True by default.
        public static func secrets(
            naming names: Set<String> = [], revealing revealed: RevealedValues = .none, inBodies: Bool = true
        ) -> Redaction {
            if revealed.isAll { return none }
            let redactor = SecretRedactor(names: names, revealed: revealed, coversBodies: inBodies)
            return Redaction { redactor.change(&$0) }
        }

        /// Returns a redaction that applies another change after this one.
        public func then(_ other: @escaping @Sendable (inout Exchange) -> Void) -> Redaction {
            Redaction { exchange in
                change(&exchange)
                other(&exchange)
            }
        }
    }
}
