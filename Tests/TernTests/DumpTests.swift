import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What `print`, interpolation and `dump` show of values that hold secrets: they reach logs that way.
@Suite("What is printed", .timeLimit(.minutes(1)))
struct DumpTests {
    private static let url = "https://ada:s3cret@example.com/v1?token=s3cret"

    private func client() throws -> Client {
        var configuration = Session.Configuration()
        configuration.headers["Authorization"] = "Bearer s3cret"
        configuration.secretHeaderOrigins = ["https://example.com"]
        let headers: Headers = ["X-Api-Key": "s3cret", "X-Plain": "shown"]
        let session = Session(configuration: configuration, transport: StubTransport(["GET /v1/a": .data(Data())]))
        return try Client(baseURL: Self.url, session: session, headers: headers)
    }

    /// Fails if a secret, or the compiler's name of a private type, is in any form of the value.
    private func check(_ value: some Any, shows shown: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var dumped = ""
        dump(value, to: &dumped)
        for text in ["\(value)", String(reflecting: value), "\([value])", dumped] {
            let isClean = !text.contains("s3cret") && !text.contains("unknown context")
            #expect(isClean, "\(text)", sourceLocation: sourceLocation)
        }
        #expect("\(value)".contains(shown), "\(value)", sourceLocation: sourceLocation)
        #expect(dumped.contains(shown), "\(dumped)", sourceLocation: sourceLocation)
    }

    @Test func aClientShowsItsBase() throws {
        check(try client(), shows: "https://example.com/v1/")
        check(Client(), shows: "no base URL")
    }

    @Test func aConfigurationShowsItsLimits() throws {
        var configuration = try client().session.configuration
        configuration.authorities = .pem(Data("s3cret".utf8))
        configuration.maximumConnections = 77
        check(configuration, shows: "77")
    }

    @Test func tasksAndSnapshotsShowTheirRequest() async throws {
        let client = try client()
        let task = client.task(.get, "a", query: ["token": "s3cret"], startsImmediately: false)
        check(task, shows: "GET https://example.com/v1/a?token=<redacted>")
        check(task.erased, shows: "GET https://example.com/v1/a?token=<redacted>")
        let snapshot = try #require(await client.session.tasks.snapshot.first)
        check(snapshot, shows: "GET https://example.com/v1/a?token=<redacted>")
        task.cancel()
    }

    @Test func responsesShowStatusAndURL() async throws {
        let client = try client()
        let response = try await client.response(for: client.request(.get, "a", query: ["token": "s3cret"]))
        check(response, shows: "200 https://example.com/v1/a?token=<redacted>")
        check(response.head, shows: "200 https://example.com/v1/a?token=<redacted>")
    }

    @Test func aTokenToResumeShowsHowFarItIs() throws {
        let token = ResumeData(url: Self.url, validator: "v", offset: 5, partialFile: "/a/b", totalBytes: nil)
        check(token, shows: "example.com/v1?token=<redacted>, 5 of an unknown number of bytes in /a/b")
    }

    @Test func aQueryShowsNames() throws {
        let query: Request.Query = ["token": "s3cret", "bare": nil]
        check(query, shows: "token=<redacted>")
        check(try #require(query.items.first), shows: "token=<redacted>")
    }
}
