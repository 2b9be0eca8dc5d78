import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns the entries of a HAR file into exchanges, so that a client can read each response as it was decoded.
extension HARFile {
    /// Reads a file.
    ///
    /// - Throws: `DecodingError`, whose text names the entry; `CancellationError` if the current task is cancelled.
    init(reading data: Data) throws {
        var decoder = TernJSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        do {
            self = try decoder.decode(HARFile.self, from: data)
        } catch let error as DecodingError {
            throw Self.naming(error)
        }
        // Values that a replay can do without also hide a cancellation.
        try Task.checkCancellation()
    }

    /// Whether a text is JSON with a `log` at its top, as a HAR file is.
    static func isHAR(_ data: Data) -> Bool {
        struct Outline: Decodable {
            struct Log: Decodable {}
            let log: Log
        }
        // Any other text is none; the decoding of a recording then tells its mistakes.
        return (try? TernJSONDecoder().decode(Outline.self, from: data)) != nil
    }

    /// The exchanges in the order of the entries.
    var exchanges: [Recording.Exchange] {
        get throws {
            let isOwn = log.creator.name == Creator.tern
            return try log.entries.enumerated().map { index, entry in
                do throws(Problem) {
                    return try entry.exchange(isOwn: isOwn)
                } catch {
                    let path: [any CodingKey] = [Key("log"), Key("entries"), Key(index)]
                    let text = "entry \(index + 1): \(error.path) \(error.text)"
                    throw DecodingError.dataCorrupted(.init(codingPath: path, debugDescription: text))
                }
            }
        }
    }

    /// A value with which an entry cannot be replayed.
    struct Problem: Error {
        let path: String
        let text: String
    }

    private struct Key: CodingKey {
        let stringValue: String
        let intValue: Int?

        init(_ name: String) { (stringValue, intValue) = (name, nil) }
        init(_ index: Int) { (stringValue, intValue) = ("Index \(index)", index) }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { self.init(intValue) }
    }

    /// Returns the error with the number of the entry and the name of the value in its text.
    private static func naming(_ error: DecodingError) -> DecodingError {
        let context: DecodingError.Context
        switch error {
        case .typeMismatch(_, let own), .valueNotFound(_, let own), .keyNotFound(_, let own), .dataCorrupted(let own):
            context = own
        @unknown default: return error
        }
        let path = context.codingPath
        guard path.count > 2, let index = path[2].intValue else { return error }
        let name = path[3...].map(\.stringValue).joined(separator: ".")
        let text = "entry \(index + 1): \(name.isEmpty ? "" : name + ": ")\(context.debugDescription)"
        return .dataCorrupted(
            .init(codingPath: path, debugDescription: text, underlyingError: context.underlyingError))
    }

    // MARK: Values

    /// Returns a version of HTTP, which programs write in many ways; nil for an unknown one.
    static func version(_ text: String?) -> HTTPVersion? {
        switch text?.lowercased() {
        case "http/1.0": .http10
        case "http/1.1": .http11
        case "http/2", "http/2.0", "h2", "h2c": .http2
        case "http/3", "http/3.0", "h3", "h3-29": .http3
        default: nil
        }
    }

    /// Returns a time; nil for a negative one, which is not known, and for one of more than 30 years.
    static func duration(_ milliseconds: Double?) -> Duration? {
        guard let milliseconds, milliseconds >= 0, milliseconds < 1e12 else { return nil }
        return .microseconds(Int64((milliseconds * 1_000).rounded()))
    }

    /// Returns fields that can be sent.
    ///
    /// The pseudo-header fields of HTTP/2, such as `:status`, are no fields. Browsers write the values of a field that
    /// came several times as lines of one value. Only those of cookies become several fields, because each field repeats
    /// the name, which can be long.
    ///
    /// - Parameter type: The type of the body, for a file without header fields; nil for none.
    static func headers(_ fields: [Field], type: String?) -> Headers {
        var headers = Self.headers(fields)
        // Chrome has `x-unknown` for a body without a type.
        guard let type, type.utf8.contains(UInt8(ascii: "/")), !headers.contains("Content-Type") else { return headers }
        for field in Self.headers([Field(name: "Content-Type", value: type)]) { headers.append(field) }
        return headers
    }

    private static func headers(_ fields: [Field]) -> Headers {
        var headers = Headers()
        for field in fields where Headers([Headers.Field(name: field.name, value: "")]).firstProblem() == nil {
            let lines = field.value.utf8.split(separator: 0x0A).map { line in
                String(decoding: line.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self).trimmed
            }
            if Headers.namesMatch(field.name, "Set-Cookie") {
                for line in lines { headers.append(name: field.name, value: line) }
            } else {
                headers.append(name: field.name, value: lines.joined(separator: ", "))
            }
        }
        return headers
    }

    /// Returns the bytes of a text in Base64, with or without ends of lines.
    static func bytes(base64 text: String, _ path: String) throws(Problem) -> Data {
        if let data = Data(base64Encoded: text) { return data }
        guard let data = Data(base64Encoded: Data(text.utf8.filter { $0 > 0x20 })) else {
            throw Problem(path: path, text: "is not Base64")
        }
        return data
    }
}

extension String {
    fileprivate var trimmed: String {
        let start = utf8.drop { $0 == 0x20 }
        let count = start.reversed().prefix { $0 == 0x20 }.count
        return String(Substring(start.dropLast(count)))
    }
}

extension HARFile.Entry {
    /// Returns the exchange of the entry.
    ///
    /// - Parameter isOwn: Whether Tern wrote the file.
    func exchange(isOwn: Bool) throws(HARFile.Problem) -> Recording.Exchange {
        var exchange = Recording.Exchange(request: try request.makeSent(isOwn: isOwn))
        exchange.details = details
        let status = response?.status ?? 0
        if let response, status > 0 {
            guard 100...999 ~= status else {
                throw HARFile.Problem(path: "response.status", text: "is \(status), which is no status of HTTP")
            }
            exchange.response = try response.makeReceived(to: request.method)
        } else {
            exchange.failure =
                response?.failed
                ?? Recording.Failed(
                    kind: NetworkError.Kind.connectionFailed.rawValue, reason: "the HAR file has no response")
        }
        return exchange
    }

    private var details: Recording.Details? {
        var details = Recording.Details()
        // Tern writes the beginning of 1970 for a time that it does not know.
        details.started = startedDateTime.flatMap { $0.timeIntervalSince1970 > 0 ? $0 : nil }
        details.httpVersion = HARFile.version(response?.httpVersion) ?? HARFile.version(request.httpVersion)
        details.reasonPhrase = response?.statusText.flatMap { text in
            text.isEmpty || text.utf8.contains { $0 < 0x20 || $0 == 0x7F } ? nil : text
        }
        details.remoteAddress = serverIPAddress.flatMap { $0.isEmpty ? nil : $0 }
        details.receivedBytes = response?.transferSize.flatMap { $0 > 0 ? $0 : nil }
        details.encodedBodyBytes = response?.bodySize.flatMap { $0 >= 0 ? $0 : nil }
        details.total = HARFile.duration(time).flatMap { $0 > .zero ? $0 : nil }
        details.blocked = HARFile.duration(timings.blocked)
        details.nameLookup = HARFile.duration(timings.dns)
        details.tls = HARFile.duration(timings.ssl)
        details.connect = HARFile.duration(timings.connect).map { max(.zero, $0 - (details.tls ?? .zero)) }
        if details.total != nil {
            details.send = HARFile.duration(timings.send)
            details.wait = HARFile.duration(timings.wait)
            details.receive = HARFile.duration(timings.receive)
        }
        return details == Recording.Details() ? nil : details
    }
}

extension HARFile.Request {
    fileprivate func makeSent(isOwn: Bool) throws(HARFile.Problem) -> Recording.Sent {
        if method.isEmpty || url.isEmpty {
            throw HARFile.Problem(path: method.isEmpty ? "request.method" : "request.url", text: "is empty")
        }
        // Browsers keep the fragment, which is not sent.
        let url = String(Substring(url.utf8.prefix { $0 != UInt8(ascii: "#") }))
        let headers = HARFile.headers(headers, type: postData?.mimeType)
        var sent = Recording.Sent(method: method, url: url, headers: headers.recorded)
        let wholeSize = bodySize.flatMap { $0 > 0 ? $0 : nil }
        guard let postData else {
            let isUnknown = ["POST", "PUT", "PATCH"].contains(method) && bodySize != 0
            if isUnknown || wholeSize != nil { sent.cut = Recording.Cut(wholeSize: wholeSize) }
            return sent
        }
        sent.body = try postData.content
        let isWhole = isOwn ? postData.isCut != true : postData.isWhole && (sent.body != nil || wholeSize == nil)
        if !isWhole { sent.cut = Recording.Cut(wholeSize: wholeSize) }
        return sent
    }
}

extension HARFile.PostData {
    /// The body, or what the file has of it.
    fileprivate var content: Recording.Content? {
        get throws(HARFile.Problem) {
            if let text, encoding == "base64" {
                return Recording.Content(try HARFile.bytes(base64: text, "request.postData.text"))
            }
            if let text { return text.isEmpty ? nil : .text(text) }
            guard let params, !params.isEmpty, isForm else { return nil }
            return .text(params.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }.joined(separator: "&"))
        }
    }

    private var isForm: Bool { mimeType.lowercased().hasPrefix("application/x-www-form-urlencoded") }

    /// Whether the body is as it was sent. Browsers leave the files of a form out, and replace bytes that are no text.
    fileprivate var isWhole: Bool {
        if isCut == true { return false }
        if encoding == "base64" { return true }
        guard let text else { return isForm && params?.isEmpty == false }
        if text.unicodeScalars.contains("\u{FFFD}") { return false }
        return !mimeType.lowercased().hasPrefix("multipart/") || text.firstRange(of: "filename=") == nil
    }

    /// Returns an item of a form, escaped if the program has not done so.
    private static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x20: result.append(UInt8(ascii: "+"))
            case 0x21...0x7E where byte != UInt8(ascii: "&") && byte != UInt8(ascii: "="): result.append(byte)
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension HARFile.Response {
    /// Returns the response with its body as the file has it: decompressed, and text in UTF-8.
    fileprivate func makeReceived(to method: String) throws(HARFile.Problem) -> Recording.Received {
        var headers = HARFile.headers(headers, type: content.mimeType)
        let isCompressed = headers.contains("Content-Encoding")
        headers.remove("Content-Encoding")
        headers.remove("Transfer-Encoding")
        var received = Recording.Received(status: status, body: try body(&headers))
        let isRedirect = (300..<400).contains(status)
        let hasNoBody = method == "HEAD" || status < 200 || status == 204 || isRedirect
        let declared = isCompressed ? nil : headers.contentLength
        let kept = Int64(received.body?.data.count ?? 0)
        let wholeSize = (content.size ?? 0) > kept ? content.size : nil
        if content.isCut == true {
            received.cut = Recording.Cut(wholeSize: wholeSize)
        } else if received.body == nil, !hasNoBody, wholeSize != nil || (headers.contentLength ?? 0) > 0 {
            received.cut = Recording.Cut(wholeSize: wholeSize ?? declared)
        }
        // The length of a compressed body, or of one that the browser has not kept, is not that of the body here.
        if method != "HEAD", status != 304, headers.contains("Content-Length") {
            let length = received.cut == nil ? kept : received.cut?.wholeSize
            headers["Content-Length"] = length.flatMap { isRedirect && $0 == 0 ? nil : String($0) }
        }
        received.headers = headers.recorded
        return received
    }

    private func body(_ headers: inout Headers) throws(HARFile.Problem) -> Recording.Content? {
        guard let text = content.text, !text.isEmpty else { return nil }
        if content.encoding?.lowercased() == "base64" {
            return Recording.Content(try HARFile.bytes(base64: text, "response.content.text"))
        }
        // The text is decoded, and the bytes of the body here are UTF-8.
        if let type = headers["Content-Type"], !text.utf8.allSatisfy({ $0 < 0x80 }) {
            headers["Content-Type"] = type.split(separator: ";").map { part in
                part.lowercased().drop { $0 == " " }.hasPrefix("charset=") ? " charset=utf-8" : String(part)
            }.joined(separator: ";")
        }
        return .text(text)
    }

    /// The failure of a request without a response.
    fileprivate var failed: Recording.Failed {
        let reason = error.flatMap { $0.isEmpty ? nil : $0 }
        let kind = errorKind.map { NetworkError.Kind(rawValue: $0) } ?? Self.kind(of: reason ?? "")
        return Recording.Failed(
            kind: kind.rawValue,
            reason: errorKind != nil && reason != nil
                ? reason ?? "" : "the HAR file has no response\(reason.map { ": \($0)" } ?? "")")
    }

    /// Returns the kind of a failure that Chrome names.
    private static func kind(of error: String) -> NetworkError.Kind {
        let name = error.hasPrefix("net::") ? error.dropFirst(5) : error[...]
        switch name {
        case "ERR_NAME_NOT_RESOLVED", "ERR_NAME_RESOLUTION_FAILED": return .dns
        case "ERR_CONNECTION_REFUSED": return .connectionRefused
        case "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED", "ERR_EMPTY_RESPONSE": return .connectionLost
        case "ERR_CONNECTION_TIMED_OUT", "ERR_TIMED_OUT": return .connectTimedOut
        case "ERR_SSL_PROTOCOL_ERROR": return .tls
        case "ERR_TOO_MANY_REDIRECTS": return .tooManyRedirects
        default: return name.hasPrefix("ERR_CERT_") ? .untrustedServer : .connectionFailed
        }
    }
}

extension Headers {
    /// The number in `Content-Length`; nil without one.
    fileprivate var contentLength: Int64? {
        self["Content-Length"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}
