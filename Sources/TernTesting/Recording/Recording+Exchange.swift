import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Recording {
    /// One request on the wire, and what came of it.
    public struct Exchange: Sendable, Hashable, Codable {
        /// What was sent.
        public var request: Sent
        /// What came; nil when the exchange failed without a response.
        public var response: Received?
        /// How it failed; nil when it did not.
        public var failure: Failed?

        /// An exchange of these parts.
        public init(request: Sent, response: Received? = nil, failure: Failed? = nil) {
            self.request = request
            self.response = response
            self.failure = failure
        }
    }

    /// A request as it was sent.
    public struct Sent: Sendable, Hashable, Codable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// The header fields in their order, each as `Name: value`.
        public var headers: [String]
        /// The body; nil for none.
        public var body: Content?

        /// A request of these parts.
        public init(method: String, url: String, headers: [String] = [], body: Content? = nil) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
        }
    }

    /// A response as it came, its body decompressed.
    public struct Received: Sendable, Hashable, Codable {
        /// The status code.
        public var status: Int
        /// The header fields in their order, each as `Name: value`; without `Content-Encoding`, and with the length of the
        /// body that stands here.
        public var headers: [String]
        /// The body; nil for none.
        public var body: Content?

        /// A response of these parts.
        public init(status: Int, headers: [String] = [], body: Content? = nil) {
            self.status = status
            self.headers = headers
            self.body = body
        }
    }

    /// A failure.
    public struct Failed: Sendable, Hashable, Codable {
        /// The kind of the `NetworkError`, by name.
        public var kind: String
        /// Its reason.
        public var reason: String

        /// A failure of this kind, by its name (`NetworkError.Kind.rawValue`).
        public init(kind: String, reason: String) {
            self.kind = kind
            self.reason = reason
        }
    }

    /// Bytes, readable where they are text.
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

        /// A string, or an object whose `base64` holds the bytes.
        public init(from decoder: any Decoder) throws {
            if let container = try? decoder.singleValueContainer(), let text = try? container.decode(String.self) {
                // Either form may stand there: which one is seen by trying.
                self = .text(text)
            } else {
                self = .data(try decoder.container(keyedBy: CodingKeys.self).decode(Data.self, forKey: .base64))
            }
        }

        /// A string, or an object whose `base64` holds the bytes.
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
    /// Each field as `Name: value`.
    var recorded: [String] { map { "\($0.name): \($0.value)" } }

    /// From fields that each are `Name: value`; what has no colon is a name without a value.
    init(recorded: [String]) {
        self.init(
            recorded.map { line in
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
                return Field(name: String(parts[0]), value: String(value))
            })
    }
}
