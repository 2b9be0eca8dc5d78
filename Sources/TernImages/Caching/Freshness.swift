import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The freshness of a response, and the validators for a conditional request (RFC 9111 §4.2, §4.3). Pure; stored beside
/// the bytes.
struct Freshness: Sendable, Hashable {
    /// The time at which the response was received, in seconds since 1970.
    var received: Double
    /// The number of seconds for which it is fresh.
    var lifetime: Double
    var entityTag: String?
    var lastModified: String?
    /// A Boolean value that indicates whether it must not be stored (`no-store`).
    var forbidsStorage = false

    /// The freshness of files and closures, which have no response head: always fresh.
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
        forbidsStorage = control["no-store"] != nil
        let age = headers["Age"].map(Self.seconds) ?? 0
        if control["no-cache"] != nil || Self.variesByAnything(headers) {
            lifetime = 0
        } else if let maximum = control["max-age"] {
            // An invalid number of seconds counts as stale (RFC 9111 §4.2.1).
            lifetime = max(0, Self.seconds(maximum) - age)
        } else if headers.contains("Expires") {
            // An invalid date counts as a date in the past (RFC 9111 §5.3).
            let expires = headers.date("Expires") ?? .distantPast
            lifetime = max(0, expires.timeIntervalSince(headers.date("Date") ?? now) - age)
        } else {
            lifetime = fallback / .seconds(1)
        }
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
    func updated(by head: ResponseHead, now: Date, fallback: Duration) -> Freshness {
        var updated = Freshness(head, now: now, fallback: fallback)
        if !head.headers.contains("Cache-Control"), !head.headers.contains("Expires") { updated.lifetime = lifetime }
        updated.entityTag = updated.entityTag ?? entityTag
        updated.lastModified = updated.lastModified ?? lastModified
        return updated
    }

    /// Returns a number of seconds (RFC 9111 §1.2.2); 0 for anything else, such as `1e9`, `inf` or `-1`.
    private static func seconds(_ text: String) -> Double {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return 0
        }
        return Double(text) ?? 0
    }

    /// Returns true for `Vary: *`: no other request matches the response (RFC 9111 §4.1).
    private static func variesByAnything(_ headers: Headers) -> Bool {
        headers.values(for: "Vary").contains { value in
            value.split(separator: ",").contains { $0.filter { $0 != " " } == "*" }
        }
    }

    /// Returns the directives by lowercase name, with their values without quotes.
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
    /// The stored form: one line for each field.
    var encoded: Data {
        var text = "1\n\(received)\n\(lifetime)\n"
        // A field value has no line breaks (RFC 9110 §5.5).
        text += "\(entityTag ?? "")\n\(lastModified ?? "")"
        return Data(text.utf8)
    }

    /// Creates a value from its stored form; nil for anything else.
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
