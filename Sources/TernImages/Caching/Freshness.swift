import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How long a response is fresh and how to ask whether it still is (RFC 9111 §4.2, §4.3). Pure; stored beside the bytes.
struct Freshness: Sendable, Hashable {
    /// When the response came, in seconds since 1970.
    var received: Double
    /// Seconds that it is fresh from then on.
    var lifetime: Double
    var entityTag: String?
    var lastModified: String?
    /// Whether it must not be stored (`no-store`).
    var isUnstorable = false

    /// Of what has no head: it never gets stale.
    static let always = Freshness(received: 0, lifetime: .infinity)

    init(received: Double, lifetime: Double) {
        self.received = received
        self.lifetime = lifetime
    }

    init(_ head: ResponseHead, now: Date, fallback: Duration) {
        received = now.timeIntervalSince1970
        let headers = head.headers
        entityTag = headers["ETag"]
        lastModified = headers["Last-Modified"]
        let control = Self.directives(headers.values(for: "Cache-Control"))
        isUnstorable = control["no-store"] != nil
        let age = headers["Age"].map(Self.seconds) ?? 0
        if control["no-cache"] != nil || Self.variesByAnything(headers) {
            lifetime = 0
        } else if let maximum = control["max-age"] {
            // What is no number of seconds is taken for stale (RFC 9111 §4.2.1).
            lifetime = max(0, Self.seconds(maximum) - age)
        } else if headers.contains("Expires") {
            // What is not a date is a date in the past (RFC 9111 §5.3).
            let expires = headers.date("Expires") ?? .distantPast
            lifetime = max(0, expires.timeIntervalSince(headers.date("Date") ?? now) - age)
        } else {
            lifetime = fallback / .seconds(1)
        }
    }

    func isFresh(at now: Date) -> Bool { now.timeIntervalSince1970 - received < lifetime }

    /// What a version of the bytes is known by.
    struct Validators: Sendable, Hashable {
        var entityTag: String?
        var lastModified: String?

        var isEmpty: Bool { entityTag == nil && lastModified == nil }
    }

    var validators: Validators { Validators(entityTag: entityTag, lastModified: lastModified) }

    /// The fields that ask for the bytes only if they have changed; nil where nothing can be asked by.
    var conditions: Headers? {
        var headers = Headers()
        if let entityTag { headers["If-None-Match"] = entityTag }
        if let lastModified { headers["If-Modified-Since"] = lastModified }
        return headers.isEmpty ? nil : headers
    }

    /// After a 304: its words count from now on, where it has some; else those of before do (RFC 9111 §4.3.4).
    func renewed(by head: ResponseHead, now: Date, fallback: Duration) -> Freshness {
        var renewed = Freshness(head, now: now, fallback: fallback)
        if !head.headers.contains("Cache-Control"), !head.headers.contains("Expires") { renewed.lifetime = lifetime }
        renewed.entityTag = renewed.entityTag ?? entityTag
        renewed.lastModified = renewed.lastModified ?? lastModified
        return renewed
    }

    /// A number of seconds (RFC 9111 §1.2.2); 0 for anything else, as `1e9`, `inf` or `-1`.
    private static func seconds(_ text: String) -> Double {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return 0
        }
        return Double(text) ?? 0
    }

    /// No request is like another one (RFC 9111 §4.1).
    private static func variesByAnything(_ headers: Headers) -> Bool {
        headers.values(for: "Vary").contains { value in
            value.split(separator: ",").contains { $0.filter { $0 != " " } == "*" }
        }
    }

    /// The directives by lower-case name, with their values without quotes.
    private static func directives(_ values: [String]) -> [String: String] {
        var directives: [String: String] = [:]
        for part in values.joined(separator: ",").split(separator: ",") {
            let halves = part.split(separator: "=", maxSplits: 1).map { half in
                half.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            }
            guard let name = halves.first.map({ String($0).lowercased() }), directives[name] == nil else { continue }
            directives[name] = halves.count > 1 ? String(halves[1].filter { $0 != "\"" }) : ""
        }
        return directives
    }
}

extension Freshness {
    /// As bytes to be stored: a line for each field.
    var encoded: Data {
        var text = "1\n\(received)\n\(lifetime)\n"
        // A field value has no line ends (RFC 9110 §5.5).
        text += "\(entityTag ?? "")\n\(lastModified ?? "")"
        return Data(text.utf8)
    }

    /// What `encoded` has made; nil for anything else.
    init?(_ data: Data) {
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 5, lines[0] == "1", let received = Double(lines[1]), let lifetime = Double(lines[2]) else {
            return nil
        }
        self.init(received: received, lifetime: lifetime)
        entityTag = lines[3].isEmpty ? nil : String(lines[3])
        lastModified = lines[4].isEmpty ? nil : String(lines[4])
    }
}
