import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of a HAR 1.2 file that Tern reads and writes (http://www.softwareishard.com/blog/har-12-spec/).
///
/// Programs leave fields out, write null for an empty list, and add fields of their own. Required are only a list of
/// entries, and the method and the URL of each; further values are of the right kind where a replay needs them.
struct HARFile: Codable {
    var log: Log

    init(_ entries: [Entry]) { log = Log(entries: entries) }

    struct Log: Encodable {
        var version = "1.2"
        var creator = Creator(name: Creator.tern, version: TernPackage.version)
        var entries: [Entry]
    }

    struct Creator: Encodable {
        static let tern = "Tern"

        var name: String
        var version: String
    }

    struct Entry: Encodable {
        var startedDateTime: Date?
        /// Milliseconds, as all times here.
        var time: Double?
        var request: Request
        var response: Response?
        /// Required, and empty for a program without a cache.
        var cache: [String: String] = [:]
        var timings: Timings
        var serverIPAddress: String?
    }

    struct Request: Encodable {
        var method: String
        var url: String
        var httpVersion: String?
        var cookies: [Cookie] = []
        var headers: [Field]
        var queryString: [Field] = []
        var postData: PostData?
        var headersSize: Int64 = -1
        var bodySize: Int64?
    }

    struct Response: Encodable {
        /// 0 for a request without a response.
        var status: Int
        var statusText: String?
        var httpVersion: String?
        var cookies: [Cookie] = []
        var headers: [Field]
        var content: Content
        var redirectURL = ""
        var headersSize: Int64 = -1
        var bodySize: Int64?
        /// The bytes of head and body on the wire, as in the files of Chrome.
        var transferSize: Int64?
        /// The reason of a failure, as in the files of Chrome.
        var error: String?
        /// The kind of the `NetworkError`. Tern's own.
        var errorKind: String?

        private enum CodingKeys: String, CodingKey {
            case status, statusText, httpVersion, cookies, headers, content, redirectURL, headersSize, bodySize
            case transferSize = "_transferSize"
            case error = "_error"
            case errorKind = "_errorKind"
        }
    }

    /// A header field, or an item of a query or a form.
    struct Field: Encodable {
        var name: String
        var value: String
    }

    struct Cookie: Encodable {
        var name: String
        var value: String
        var path: String?
        var domain: String?
        var expires: Date?
        var httpOnly: Bool?
        var secure: Bool?
        var sameSite: String?
    }

    /// The body of a request.
    struct PostData: Encodable {
        var mimeType: String
        /// Either this or `text`.
        var params: [Field]?
        var text: String?
        /// `base64` for bytes that are no text. HAR 1.2 has no form for them; this is that of several proxies.
        var encoding: String?
        var comment: String?
        /// Whether `text` is the beginning of the body. Tern's own.
        var isCut: Bool?

        private enum CodingKeys: String, CodingKey {
            case mimeType, params, text, encoding, comment
            case isCut = "_cut"
        }
    }

    /// The body of a response, decompressed.
    struct Content: Encodable {
        /// The bytes of the whole body.
        var size: Int64?
        /// The bytes that compression saved.
        var compression: Int64?
        var mimeType = ""
        var text: String?
        var encoding: String?
        var comment: String?
        /// Whether `text` is the beginning of the body. Tern's own.
        var isCut: Bool?

        private enum CodingKeys: String, CodingKey {
            case size, compression, mimeType, text, encoding, comment
            case isCut = "_cut"
        }
    }

    /// Times; −1 where a time is not known or does not apply. `connect` has `ssl` in it.
    struct Timings: Encodable {
        var blocked: Double?
        var dns: Double?
        var connect: Double?
        var ssl: Double?
        var send: Double?
        var wait: Double?
        var receive: Double?
        var comment: String?
    }
}

// MARK: Decoding

extension KeyedDecodingContainer {
    /// Returns a value that a replay can do without; nil if it is missing or of another kind.
    fileprivate func lenient<Value: Decodable>(_ key: Key) -> Value? {
        // Programs differ in these values, and none is a reason to refuse a file.
        try? decodeIfPresent(Value.self, forKey: key)
    }
}

extension HARFile.Log: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        version = container.lenient(.version) ?? ""
        creator = container.lenient(.creator) ?? HARFile.Creator(name: "", version: "")
        entries = try container.decode([HARFile.Entry].self, forKey: .entries)
    }
}

extension HARFile.Creator: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = container.lenient(.name) ?? ""
        version = container.lenient(.version) ?? ""
    }
}

extension HARFile.Entry: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        startedDateTime = container.lenient(.startedDateTime)
        time = container.lenient(.time)
        request = try container.decode(HARFile.Request.self, forKey: .request)
        response = try container.decodeIfPresent(HARFile.Response.self, forKey: .response)
        timings = container.lenient(.timings) ?? HARFile.Timings()
        serverIPAddress = container.lenient(.serverIPAddress)
    }
}

extension HARFile.Request: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        method = try container.decode(String.self, forKey: .method)
        url = try container.decode(String.self, forKey: .url)
        httpVersion = container.lenient(.httpVersion)
        headers = try container.decodeIfPresent([HARFile.Field?].self, forKey: .headers)?.compactMap { $0 } ?? []
        postData = try container.decodeIfPresent(HARFile.PostData.self, forKey: .postData)
        bodySize = container.lenient(.bodySize)
    }
}

extension HARFile.Response: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        status = try container.decodeIfPresent(Int.self, forKey: .status) ?? 0
        statusText = container.lenient(.statusText)
        httpVersion = container.lenient(.httpVersion)
        headers = try container.decodeIfPresent([HARFile.Field?].self, forKey: .headers)?.compactMap { $0 } ?? []
        content = try container.decodeIfPresent(HARFile.Content.self, forKey: .content) ?? HARFile.Content()
        bodySize = container.lenient(.bodySize)
        transferSize = container.lenient(.transferSize)
        error = container.lenient(.error)
        errorKind = container.lenient(.errorKind)
    }
}

extension HARFile.Field: Decodable {
    /// Decodes a field. Some programs write a name without a value, or a number as a value.
    init(from decoder: any Decoder) throws {
        guard let container = try? decoder.container(keyedBy: CodingKeys.self) else {
            // No field: a text, or a number.
            (name, value) = ("", "")
            return
        }
        name = container.lenient(.name) ?? ""
        let number: Int64? = container.lenient(.value)
        value = container.lenient(.value) ?? number.map { String($0) } ?? ""
    }
}

extension HARFile.PostData: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mimeType = container.lenient(.mimeType) ?? ""
        params = container.lenient(.params)
        text = try container.decodeIfPresent(String.self, forKey: .text)
        encoding = container.lenient(.encoding)
        isCut = container.lenient(.isCut)
    }
}

extension HARFile.Content: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        size = container.lenient(.size)
        mimeType = container.lenient(.mimeType) ?? ""
        text = try container.decodeIfPresent(String.self, forKey: .text)
        encoding = container.lenient(.encoding)
        isCut = container.lenient(.isCut)
    }
}

extension HARFile.Timings: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        blocked = container.lenient(.blocked)
        dns = container.lenient(.dns)
        connect = container.lenient(.connect)
        ssl = container.lenient(.ssl)
        send = container.lenient(.send)
        wait = container.lenient(.wait)
        receive = container.lenient(.receive)
    }
}
