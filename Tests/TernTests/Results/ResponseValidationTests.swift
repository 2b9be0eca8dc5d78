import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Response validation")
struct ResponseValidationTests {
    private func refusal(
        _ validation: ResponseValidation = ResponseValidation(), status: Int = 200, type: String? = nil,
        acceptedTypes: AcceptedTypes = .any, isEmpty: Bool = false
    ) throws -> FailureCause? {
        let headers: Headers = type.map { ["Content-Type": $0] } ?? [:]
        let head = ResponseHead(
            status: status, version: .http11, target: try Target(absolute: "https://a.example/"), headers: headers)
        return validation.refusal(of: head, acceptedTypes: acceptedTypes, isEmpty: isEmpty)
    }

    @Test(arguments: [
        "application/json", "text/json", "text/javascript", "application/vnd.api+json", "application/problem+json",
        "Application/JSON; charset=utf-8", "application/geo+json;x=\"a,b\"",
    ])
    func jsonTypesAreAcceptedForDecodable(type: String) throws {
        #expect(try refusal(type: type, acceptedTypes: .json) == nil)
    }

    @Test(arguments: ["text/html", "application/xml", "text/plain", "image/json2", "json", ""])
    func otherTypesAreRefusedAndNamed(type: String) throws {
        let failure = try refusal(type: type, acceptedTypes: .json)
        #expect(failure?.kind == .contentType)
        #expect(failure?.reason.contains("\"\(type)\"") == true && failure?.reason.contains("JSON") == true)
        #expect(failure?.reason.contains("contentTypes") == true)
        #expect(try refusal(type: type, acceptedTypes: .any) == nil)
    }

    @Test func bodyWithoutATypeIsRefusedUnlessEmpty() throws {
        #expect(try refusal(type: nil, acceptedTypes: .json)?.reason.contains("no Content-Type") == true)
        #expect(try refusal(type: nil, acceptedTypes: .json, isEmpty: true) == nil)
        #expect(try refusal(type: "text/html", acceptedTypes: .json, isEmpty: true) == nil)
        for status in [204, 205] {
            #expect(try refusal(status: status, type: "text/html", acceptedTypes: .json) == nil)
        }
    }

    @Test func statusErrorContainsTheTypeError() throws {
        let failure = try refusal(status: 500, type: "text/html", acceptedTypes: .json)
        #expect(failure?.kind == .status && (failure?.underlying as? NetworkError)?.kind == .contentType)
        let alone = try refusal(status: 500, type: "application/json", acceptedTypes: .json)
        #expect(alone?.kind == .status && alone?.underlying == nil)
    }

    @Test(arguments: [(199, false), (200, true), (299, true), (300, false), (404, false)])
    func successfulStatusesAreAcceptedByDefault(status: Int, isTaken: Bool) throws {
        #expect(try (refusal(status: status) == nil) == isTaken)
    }

    @Test func rulesCanBeReplaced() throws {
        let teapot = ResponseValidation(contentTypes: .only(["image/*", "text/html"]), statuses: { $0 == 418 })
        #expect(try refusal(teapot, status: 418, type: "image/png") == nil)
        #expect(try refusal(teapot, status: 418, type: "text/html; charset=x", acceptedTypes: .json) == nil)
        #expect(try refusal(teapot, status: 418, type: "text/plain")?.kind == .contentType)
        #expect(try refusal(teapot, status: 200, type: "image/png")?.kind == .status)
        #expect(try refusal(ResponseValidation(contentTypes: .any), type: "text/html", acceptedTypes: .json) == nil)
        struct Stale: Error {}
        let checked = ResponseValidation(check: { if $0.headers["Content-Type"] == "a/b" { throw Stale() } })
        let failure = try refusal(checked, type: "a/b")
        #expect(failure?.kind == .validation && failure?.underlying is Stale)
        #expect(try refusal(checked, type: "a/c") == nil)
    }
}

@Suite("JSONValue")
struct JSONValueTests {
    private func value(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test func everyKindIsRead() throws {
        let text = #"{"n":null,"b":true,"i":9007199254740993,"d":1.5,"s":"é","a":[1,"2",[]],"o":{"x":{}}}"#
        let expected: JSONValue = [
            "n": nil, "b": true, "i": 9_007_199_254_740_993, "d": 1.5, "s": "é", "a": [1, "2", []], "o": ["x": [:]],
        ]
        #expect(try value(text) == expected)
        #expect(try value(text)["a"]?[1]?.string == "2" && value(text)["a"]?[3] == nil)
        let again = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(expected))
        #expect(again == expected)
    }

    @Test func numbersBeyondAnIntegerAreDoubles() throws {
        #expect(try value("[18446744073709551616]")[0]?.number == 18_446_744_073_709_551_616)
        #expect(try value("[1e3]")[0]?.number == 1_000 && value("[true]")[0]?.number == nil)
    }

    @Test func nullsAreRemovedAtEveryDepth() throws {
        let cleaned = try value(#"{"a":null,"b":[null,1,{"c":null,"d":[null]}],"e":{"f":null}}"#).removingNulls
        #expect(cleaned == ["b": [1, ["d": []]], "e": [:]])
        #expect(JSONValue.null.removingNulls == .null)
    }
}
