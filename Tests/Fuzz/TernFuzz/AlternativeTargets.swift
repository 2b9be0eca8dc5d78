#if os(Linux)
import Foundation
import TernEngine

/// The Alt-Svc fields of servers, and the table that keeps what they name.
extension FuzzTarget {
    static let alternatives = [
        FuzzTarget(
            name: "alt-svc", seeds: { _ in AlternativeFuzzing.seeds.map { Array($0.utf8) } },
            tokens: AlternativeFuzzing.tokens,
            run: { input, choice in try AlternativeFuzzing.check(Array(input), choice) })
    ]
}

private enum AlternativeFuzzing {
    static let seeds = [
        "h3=\":443\"; ma=86400", "h3=\"b.example:8443\"; ma=3600; persist=1, h3=\":444\"", "clear",
        "h2=\":443\"; ma=5, h3-29=\":1\", h3=\"[2001:db8::1]:443\"", "%683=\":7\";ma=\"60\"; x=y , ,",
        "h3=\":1\", h3=\":2\", h3=\":3\", h3=\":4\", h3=\":5\"\nclear", "h3=\"a.example:443\"; ma=0\nh3=\":9\"",
        "h3=\"\\b.ex\\\"ample:1\"; q=\"a,b\\\\\"", "h3=\":65536\"", "h3=\":0\"",
        "h3=\":99999999999\"; ma=99999999999999999999",
    ]
    static let tokens = [
        "h3", "h3=\":443\"", "=", "\"", "\\", ",", ";", "; ma=", "persist=1", "clear", " ", "\t", "\n", ":", "[", "]",
        "%",
        "%68", "0", "18446744073709551616", "b.example", "\0", "-1",
    ]

    /// The lines of the input are the fields of one response each.
    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        var numbers = Numbers(state: choice)
        var table = AlternativeTable()
        var now: UInt64 = numbers.next() >> 8
        var words: [String] = []
        for line in input.split(separator: 0x0A, omittingEmptySubsequences: false).prefix(50) {
            let field = AlternativeServiceField([Array(line)])
            try check(field, of: Array(line))
            words.append(word(field))
            guard let field else { continue }
            let key = AlternativeTable.Key(origin: "https://\(numbers.below(4)).example:443", policy: 1)
            let age = [Int64(0), 1, 3_600, .min, .max][numbers.below(5)]
            table.take(field, of: key, host: "A.example", age: age, now: now)
            try check(&table, key, field, age: age, now: now, numbers: &numbers)
            now += UInt64(numbers.below(4_000)) * 1_000_000_000
        }
        let isRejected = words.allSatisfy { $0 == "none" }
        return (isRejected ? "rejected " : "") + words.prefix(6).joined(separator: " ")
    }

    private static func word(_ field: AlternativeServiceField?) -> String {
        switch field {
        case nil: "none"
        case .clear: "clear"
        case .offered(let offers):
            offers.map {
                ($0.service.host == nil ? "here" : "there") + ($0.isPersistent ? "!" : "")
                    + ($0.lifetime == 0 ? "0" : "")
            }.joined(separator: ",")
        }
    }

    private static func check(_ field: AlternativeServiceField?, of value: [UInt8]) throws {
        // Blanks around the value, and a second line without an element, change nothing, within the limit.
        guard value.count < AlternativeServiceField.byteLimit - 8 else { return }
        try require(AlternativeServiceField([[0x20] + value + [9]]) == field, "blanks change the value")
        if field != nil {
            try require(AlternativeServiceField([value, []]) == field, "an empty line changes the value")
            try require(AlternativeServiceField([Array("clear".utf8), value]) == .clear, "clear is not read")
        }
        guard case .offered(let offers) = field else { return }
        try require(offers.count <= AlternativeServiceField.offerLimit, "\(offers.count) alternatives are kept")
        for offer in offers {
            let host = offer.service.host
            try require(offer.service.port > 0, "port 0")
            try require(0...AlternativeServiceField.longestLifetime ~= offer.lifetime, "\(offer.lifetime) s")
            guard let host else { continue }
            try require(!host.isEmpty && host.utf8.count <= 255 && host == host.lowercased(), "the host \(host)")
            let isPlain = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/@?#\\\"[]%".utf8.contains($0) }
            try require(isPlain, "the host \(host)")
        }
        let text = offers.map { offer in
            let host = offer.service.host.map { $0.contains(":") ? "[\($0)]" : $0 } ?? ""
            return "h3=\"\(host):\(offer.service.port)\"; ma=\(offer.lifetime)"
                + (offer.isPersistent ? "; persist=1" : "")
        }.joined(separator: ", ")
        if !offers.isEmpty {
            try require(AlternativeServiceField([Array(text.utf8)]) == field, "\(text) is read otherwise")
        }
    }

    /// Checks that the table gives the first alternative that is of use, and no other.
    private static func check(
        _ table: inout AlternativeTable, _ key: AlternativeTable.Key, _ field: AlternativeServiceField, age: Int64,
        now: UInt64, numbers: inout Numbers
    ) throws {
        try require(table.count <= AlternativeTable.limit, "\(table.count) origins")
        var offers: [AlternativeServiceField.Offer] = []
        if case .offered(let named) = field { offers = named }
        for allowsOthers in [true, false] {
            let seconds = Int64(numbers.below(10) == 0 ? 0 : numbers.below(4_000))
            let later = now + UInt64(seconds) * 1_000_000_000
            let expected = offers.filter { offer in
                let isThere = age < offer.lifetime && offer.lifetime - max(0, age) > seconds
                return isThere && (allowsOthers || offer.service.host == nil || offer.service.host == "a.example")
            }.map { offer in
                offer.service.host == "a.example" ? AlternativeService(port: offer.service.port) : offer.service
            }
            var copy = table
            let best = copy.best(of: key, allowsOtherHosts: allowsOthers, now: later)
            // One of them can have failed.
            try require(best == nil || expected.contains { $0 == best }, "\(String(describing: best)) was not offered")
            guard let best else { continue }
            table.failed(best, of: key, now: now)
            let next = table.best(of: key, allowsOtherHosts: true, now: now)
            try require(next != best, "an alternative that has failed is tried")
            if numbers.below(2) == 0 { table.succeeded(best, of: key) }
        }
    }
}
#endif
