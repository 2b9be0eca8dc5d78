import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Validation and formats", .timeLimit(.minutes(1)))
struct ValidationTests {
    private struct User: Codable, Sendable, Equatable {
        var name: String
        var age: Int?
    }

    private struct Problem: Decodable, Equatable { var title: String }

    private func client(
        _ answer: StubTransport.Answer, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) throws
        -> Client
    {
        var configuration = Session.Configuration()
        change(&configuration)
        let stub = StubTransport { _ in answer }
        return try Client(baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
    }

    private let html = StubTransport.Answer.text("{\"name\":\"Ada\"}", contentType: "text/html")

    @Test func pageInsteadOfJSONIsRefusedWithItsBody() async throws {
        let client = try client(html)
        let error = try await failure { try await client.get("x", as: User.self) }
        #expect(error.kind == .contentType && error.status == 200 && error.body.count == 14)
        let handle = try await failure { try await client.task(.get, "x", as: User?.self).value }
        #expect(handle.kind == .contentType)
        #expect(try await client.get("x", as: String.self).contains("Ada"))
        #expect(try await client.get("x").count == 14)
        #expect(try await client.get("x", as: NoContent.self) == NoContent())
    }

    @Test func requestCanReplaceTheRulesOfTheSession() async throws {
        #expect(try await client(html) { $0.validation.contentTypes = .any }.get("x", as: User.self).name == "Ada")
        let client = try client(html)
        var request = try client.request(.get, "x")
        request.validation = ResponseValidation(contentTypes: .only(["text/html"]))
        #expect(try await client.session.response(for: request, decode: BodyDecoder<User>.json).value.name == "Ada")
        request.validation = ResponseValidation(statuses: { $0 == 404 })
        let error = try await failure { try await client.session.response(for: request) }
        #expect(error.kind == .status)
    }

    @Test func errorDecodesItsBody() async throws {
        let client = try client(.json(["title": "no such user"], status: 404))
        let error = try await failure { try await client.get("x", as: User.self) }
        #expect(error.status == 404)
        #expect(try error.decode(as: Problem.self) == Problem(title: "no such user"))
    }

    @Test func streamIsValidatedBeforeItIsRead() async throws {
        let client = try client(html)
        var request = try client.request(.get, "x")
        request.validation = ResponseValidation(contentTypes: .only(["video/*"]))
        let stream = client.session.stream(request)
        let error = try await failure { try await stream.response }
        #expect(error.kind == .contentType)
    }

    @Test func scriptPrefixAndNullsAreRemoved() async throws {
        let text = ")]}',\n{\"name\":\"Ada\",\"age\":null}"
        let client = try client(.text(text, contentType: "application/json"))
        let request = try client.request(.get, "x")
        let user = try await client.session.response(
            for: request, decode: BodyDecoder<User>.json(removingPrefix: ")]}',"))
        #expect(user.value == User(name: "Ada"))
        let value = try await client.session.response(
            for: request, decode: BodyDecoder<JSONValue>.json(removingPrefix: ")]}',", removesNulls: true))
        #expect(value.value == ["name": "Ada"])
        #expect(try await failure { try await client.get("x", as: User.self) }.kind == .decoding)
    }

    @Test func propertyListIsRead() async throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        let list = try encoder.encode(User(name: "Ada", age: 36))
        let client = try client(.data(list, contentType: "application/x-plist"))
        let request = try client.request(.get, "x")
        let user = try await client.session.response(for: request, decode: BodyDecoder<User>.propertyList).value
        #expect(user == User(name: "Ada", age: 36))
        #expect(try await failure { try await client.get("x", as: User.self) }.kind == .contentType)
    }

    @Test func firstSuccessfulDecoderIsUsed() async throws {
        let client = try client(html)
        let request = try client.request(.get, "x")
        let fallback = BodyDecoder<User> { body, _ in User(name: "\(body.count) bytes") }
        let never = BodyDecoder<User>(contentTypes: ["image/*"]) { _, _ in User(name: "image") }
        let chosen = try await client.session.response(for: request, decode: .first(of: [never, .json, fallback]))
        #expect(chosen.value.name == "Ada")
        let last = try await client.session.response(
            for: request, decode: .first(of: [never, .propertyList, fallback]))
        #expect(last.value.name == "14 bytes")
    }
}
