import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Queries and header fields in variables that are no `Request.Query` and no `Headers`.
@Suite("Wire: dictionaries in variables")
struct DictionaryTests {
    private let stub = StubTransport { call in
        let text = "\(call.method.rawValue) \(call.path)?\(call.query ?? "") \(call.headers["X-A"] ?? "-")"
        return .text(text, contentType: "text/plain")
    }
    private var client: Client { Client(stub: stub) }
    private let query = ["sort": "name", "page": "2"]
    private let fields = ["X-A": "1"]

    @Test func everyVerbTakesDictionaries() async throws {
        let texts: [String] = [
            try await client.get("a", query: query, headers: fields),
            try await client.getIfPresent("a", query: query, headers: fields) ?? "",
            try await client.post("a", query: query, headers: fields),
            try await client.put("a", query: query, headers: fields),
            try await client.patch("a", query: query, headers: fields),
            try await client.delete("a", query: query, headers: fields),
            try await client.send("PURGE", "a", query: query, headers: fields),
        ]
        let methods = ["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "PURGE"]
        #expect(texts == methods.map { "\($0) /a?page=2&sort=name 1" })
        let bodies: [Data] = [
            try await client.get("a", query: query, headers: fields),
            try await client.post("a", query: query, headers: fields),
            try await client.put("a", query: query, headers: fields),
            try await client.patch("a", query: query, headers: fields),
            try await client.delete("a", query: query, headers: fields),
            try await client.send("PURGE", "a", query: query, headers: fields),
        ]
        #expect(bodies.map { String(decoding: $0, as: UTF8.self) } == Array(texts.dropFirst()))
        #expect(try await client.head("a", query: query, headers: fields).status == 200)
        let request = try client.request(.get, "a", query: query, headers: fields)
        #expect(request.urlString == "https://stub.example/a?page=2&sort=name" && request.headers["X-A"] == "1")
    }

    @Test func eitherParameterTakesAVariableAlone() async throws {
        let numbers = ["page": 2]
        let first: String = try await client.get("a", query: numbers, headers: ["X-A": "literal"])
        #expect(first == "GET /a?page=2 literal")
        let second: String = try await client.get("a", query: ["b": "1", "a": "2"], headers: fields)
        #expect(second == "GET /a?a=2&b=1 1")
        let third: String = try await client.get("a", query: query)
        #expect(third == "GET /a?page=2&sort=name -")
        let fourth: String = try await client.get("a", headers: fields)
        #expect(fourth == "GET /a? 1")
        try await client.delete("a", query: query)
        #expect(stub.calls.last?.query == "page=2&sort=name")
    }

    @Test func orderedItemsKeepTheirOrder() async throws {
        let pairs: KeyValuePairs = ["b": "1", "a": "2", "b": "3"]
        let ordered: String = try await client.get("a", query: pairs)
        #expect(ordered == "GET /a?b=1&a=2&b=3 -")
        let items = [URLQueryItem(name: "q", value: "a b&c"), URLQueryItem(name: "flag", value: nil)]
        let bare: String = try await client.get("a", query: items)
        #expect(bare == "GET /a?q=a%20b%26c&flag -")
    }

    /// A literal of mixed types keeps its order, because it is never a dictionary.
    @Test func aLiteralStaysAQuery() async throws {
        let cursor: String? = nil
        let text: String = try await client.get(
            "a", query: ["z": 1, "name": "x", "cursor": cursor, "flag": .null, "z": true], headers: ["X-A": "1"])
        #expect(text == "GET /a?z=1&name=x&flag&z=true 1")
    }
}
