import Tern
import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The freshness of a response, and the validators for a conditional request (RFC 9111 §4.2, §4.3). Pure; stored beside
/// the bytes.
struct ImageFreshness: Sendable, Hashable {
    /// The time at which the response was received, in seconds since 1970.
    var received: Double
    /// The number of seconds for which it is fresh.
    var lifetime: Double
    var entityTag: String?
    var lastModified: String?
    /// Whether it must not be stored (`no-store`).
    var forbidsStorage = false

    /// The freshness of files and closures, which have no response head: always fresh.
    static let always = ImageFreshness(received: 0, lifetime: .infinity)

    init(received: Double, lifetime: Double) {
        self.received = received
        self.lifetime = lifetime
    }

    init(_ head: ResponseHead, now: Date, fallback: Duration) {
        received = now.timeIntervalSince1970
        let headers = head.headers
        entityTag = headers["ETag"]
        lastModified = headers["Last-Modified"]
        let response = ResponseLifetime(head, now: now)
        forbidsStorage = response.forbidsStorage
        lifetime = (response.explicit ?? fallback) / .seconds(1)
    }

    func isFresh(at now: Date) -> Bool { now.timeIntervalSince1970 - received < lifetime }

    /// The fields that identify a version of the bytes.
    struct Validators: Sendable, Hashable {
        var entityTag: String?
        var lastModified: String?

        var isEmpty: Bool { entityTag == nil && lastModified == nil }
    }

    var validators: Validators { Validators(entityTag: entityTag, lastModified: lastModified) }

    /// The header fields of a conditional request; nil without validators.
    var conditions: Headers? {
        var headers = Headers()
        if let entityTag { headers["If-None-Match"] = entityTag }
        if let lastModified { headers["If-Modified-Since"] = lastModified }
        return headers.isEmpty ? nil : headers
    }

    /// Returns the freshness after a 304 response: from its headers if it has some, else the previous lifetime (RFC
    /// 9111 §4.3.4).
    func updated(by head: ResponseHead, now: Date, fallback: Duration) -> ImageFreshness {
        var updated = ImageFreshness(head, now: now, fallback: fallback)
        if !head.headers.contains("Cache-Control"), !head.headers.contains("Expires") { updated.lifetime = lifetime }
        updated.entityTag = updated.entityTag ?? entityTag
        updated.lastModified = updated.lastModified ?? lastModified
        return updated
    }
}

extension ImageFreshness {
    /// The stored form: one line for each field.
    var encoded: Data {
        var text = "1\n\(received)\n\(lifetime)\n"
        // A field value has no line breaks (RFC 9110 §5.5).
        text += "\(entityTag ?? "")\n\(lastModified ?? "")"
        return Data(text.utf8)
    }

    /// Returns the stored form beside a processed image, whose file does not tell the size of its original; nil for
    /// encoded bytes.
    func encoded(originalSize size: PixelSize?) -> Data {
        encoded + Data((size.map { "\n\($0.width) \($0.height)" } ?? "").utf8)
    }

    /// Returns the size of the original from the stored form beside a processed image; nil if there is none.
    static func originalSize(in data: Data) -> PixelSize? {
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 6 else { return nil }
        let sides = lines[5].split(separator: " ").compactMap { Int($0) }
        guard sides.count == 2, sides.allSatisfy({ $0 > 0 }) else { return nil }
        return PixelSize(width: sides[0], height: sides[1])
    }

    /// Creates a value from its stored form; nil for anything else.
    init?(_ data: Data) {
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 5 || Self.originalSize(in: data) != nil, lines[0] == "1", let received = Double(lines[1]),
            let lifetime = Double(lines[2])
        else { return nil }
        self.init(received: received, lifetime: lifetime)
        entityTag = lines[3].isEmpty ? nil : String(lines[3])
        lastModified = lines[4].isEmpty ? nil : String(lines[4])
    }
}
