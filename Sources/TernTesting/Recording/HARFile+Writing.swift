import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns exchanges into the entries of a HAR file.
extension HARFile {
    init(_ exchanges: [Recording.Exchange], bodyLimit: Int) {
        self.init(exchanges.map { Entry($0, bodyLimit: max(0, bodyLimit)) })
    }

    /// The text of the file.
    var data: Data {
        get throws {
            var encoder = TernJSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .withoutEscapingSlashes]
            encoder.dateEncodingStrategy = .iso8601WithFractionalSeconds
            var data = try encoder.encode(self)
            data.append(UInt8(ascii: "\n"))
            return data
        }
    }

    fileprivate static func fields(_ headers: [String]) -> [Field] {
        Headers(recorded: headers).map { Field(name: $0.name, value: $0.value) }
    }

    fileprivate static func milliseconds(_ duration: Duration?) -> Double {
        duration.map { ($0 / .microseconds(1)).rounded() / 1_000 } ?? -1
    }
}

extension HARFile.Entry {
    fileprivate init(_ exchange: Recording.Exchange, bodyLimit: Int) {
        let details = exchange.details ?? Recording.Details()
        startedDateTime = details.started ?? Date(timeIntervalSince1970: 0)
        time = max(0, HARFile.milliseconds(details.total))
        request = HARFile.Request(exchange.request, version: details.httpVersion, bodyLimit: bodyLimit)
        if let received = exchange.response {
            response = HARFile.Response(received, details, bodyLimit: bodyLimit)
        } else {
            response = HARFile.Response(failure: exchange.failure)
        }
        timings = HARFile.Timings(details)
        serverIPAddress = details.remoteAddress
    }
}

extension HARFile.Timings {
    fileprivate init(_ details: Recording.Details) {
        blocked = HARFile.milliseconds(details.blocked)
        dns = HARFile.milliseconds(details.nameLookup)
        connect = HARFile.milliseconds(details.connect.map { $0 + (details.tls ?? .zero) })
        ssl = HARFile.milliseconds(details.tls)
        // These three must not be negative.
        send = max(0, HARFile.milliseconds(details.send))
        wait = max(0, HARFile.milliseconds(details.wait))
        receive = max(0, HARFile.milliseconds(details.receive))
        if details.send == nil, details.wait != nil { comment = "wait has the time to send the request in it" }
    }
}

extension HARFile.Request {
    fileprivate init(_ sent: Recording.Sent, version: HTTPVersion?, bodyLimit: Int) {
        let headers = Headers(recorded: sent.headers)
        method = sent.method
        url = sent.url
        httpVersion = version?.rawValue ?? ""
        cookies = headers.values(for: "Cookie").flatMap { HARFile.Cookie.list($0) }
        self.headers = HARFile.fields(sent.headers)
        queryString = HARFile.Field.query(of: sent.url)
        bodySize = sent.cut.map { $0.wholeSize ?? -1 } ?? Int64(sent.body?.data.count ?? 0)
        guard sent.body != nil || sent.cut != nil else { return }
        let body = HARText(sent.body, sent.cut, limit: bodyLimit)
        bodySize = body.wholeSize ?? -1
        postData = HARFile.PostData(
            mimeType: headers["Content-Type"] ?? "", params: [], text: body.text, encoding: body.encoding,
            comment: body.comment, isCut: body.isCut)
    }
}

extension HARFile.Response {
    fileprivate init(_ received: Recording.Received, _ details: Recording.Details, bodyLimit: Int) {
        let headers = Headers(recorded: received.headers)
        status = received.status
        statusText = details.reasonPhrase ?? ""
        httpVersion = details.httpVersion?.rawValue ?? ""
        cookies = headers.values(for: "Set-Cookie").compactMap { HARFile.Cookie(setting: $0) }
        self.headers = HARFile.fields(received.headers)
        redirectURL = (300..<400).contains(status) ? headers["Location"] ?? "" : ""
        bodySize = details.encodedBodyBytes ?? -1
        transferSize = details.receivedBytes
        let body = HARText(received.body, received.cut, limit: bodyLimit)
        content = HARFile.Content(
            size: body.wholeSize ?? Int64(body.keptSize), mimeType: headers["Content-Type"] ?? "",
            text: body.keptSize == 0 && body.isCut == nil ? nil : body.text, encoding: body.encoding,
            comment: body.comment, isCut: body.isCut)
        if let whole = body.wholeSize, let encoded = details.encodedBodyBytes { content.compression = whole - encoded }
    }

    fileprivate init(failure: Recording.Failed?) {
        status = 0
        statusText = ""
        httpVersion = ""
        headers = []
        content = HARFile.Content(size: 0)
        bodySize = -1
        error = failure?.reason
        errorKind = failure?.kind
    }
}

/// The text of a body, with at most a number of its bytes.
private struct HARText {
    let text: String
    var encoding: String?
    /// The number of bytes in `text`.
    let keptSize: Int
    /// The number of bytes of the whole body; nil if it is not known.
    let wholeSize: Int64?
    /// True, or nil for a whole body.
    var isCut: Bool?
    var comment: String?

    init(_ body: Recording.Content?, _ cut: Recording.Cut?, limit: Int) {
        let size: Int
        switch body {
        case nil: (text, size, keptSize) = ("", 0, 0)
        case .text(let whole):
            size = whole.utf8.count
            var part = whole.utf8.prefix(limit)
            // A character is kept whole or not at all.
            while part.endIndex < whole.utf8.endIndex, !part.isEmpty, whole.utf8[part.endIndex] & 0xC0 == 0x80 {
                part.removeLast()
            }
            keptSize = part.count
            text = keptSize == size ? whole : String(Substring(part))
        case .data(let whole):
            size = whole.count
            let part = whole.prefix(limit)
            keptSize = part.count
            text = part.base64EncodedString()
            encoding = "base64"
        }
        wholeSize = cut == nil ? Int64(size) : cut?.wholeSize
        guard cut != nil || keptSize < size else { return }
        isCut = true
        comment = "the first \(keptSize)\(wholeSize.map { " of \($0)" } ?? "") bytes of the body"
    }
}

extension HARFile.Field {
    /// Returns the items of the query of a URL, decoded.
    fileprivate static func query(of url: String) -> [Self] {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        let query = url.utf8[mark...].dropFirst().prefix { $0 != UInt8(ascii: "#") }
        return query.split(separator: UInt8(ascii: "&")).map { item in
            let equals = item.firstIndex(of: UInt8(ascii: "="))
            let value = equals.map { item[$0...].dropFirst() }
            return Self(name: decoded(item[..<(equals ?? item.endIndex)]), value: value.map(decoded) ?? "")
        }
    }

    private static func decoded(_ text: Substring.UTF8View) -> String {
        let spaced = text.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
        return String(decoding: SecretRedactor.decoded(spaced), as: UTF8.self)
    }
}

extension HARFile.Cookie {
    /// Returns the cookies of a `Cookie` field. A hidden field has none.
    fileprivate static func list(_ field: String) -> [Self] {
        field.utf8.split(separator: UInt8(ascii: ";")).compactMap { part in
            guard let (name, value) = pair(part), let value else { return nil }
            return Self(name: name, value: value)
        }
    }

    /// Creates a cookie from a `Set-Cookie` field; nil for one without a name.
    fileprivate init?(setting field: String) {
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let first = parts.first, let (name, value) = Self.pair(first), let value else { return nil }
        self.init(name: name, value: value, httpOnly: false, secure: false)
        for part in parts.dropFirst() {
            guard let (name, value) = Self.pair(part) else { continue }
            switch name.lowercased() {
            case "path": path = value
            case "domain": domain = value
            case "expires": expires = value.flatMap { HTTPDate.date(from: $0) }
            case "httponly": httpOnly = true
            case "secure": secure = true
            case "samesite": sameSite = value
            default: break
            }
        }
    }

    /// Returns a name, and a value if there is a `=`; nil for a text without a name.
    private static func pair(_ text: Substring.UTF8View) -> (name: String, value: String?)? {
        let text = text.drop { $0 == 0x20 }
        let equals = text.firstIndex(of: UInt8(ascii: "="))
        guard let name = String(text[..<(equals ?? text.endIndex)]), !name.isEmpty else { return nil }
        return (name, equals.flatMap { String(text[$0...].dropFirst()) })
    }
}
