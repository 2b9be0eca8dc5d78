import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Network errors")
struct NetworkErrorTests {
    private func error() throws -> NetworkError {
        let headers: Headers = ["Authorization": "Bearer s3cret", "X-Plain": "shown"]
        let request = try Request(
            .post, "https://u:s3cret@h/a?token=s3cret#s3cret", headers: headers, body: .text("s3cret"))
        let head = ResponseHead(
            status: 500, version: .http11, target: request.target, headers: ["Set-Cookie": "a=s3cret", "Age": "0"])
        return NetworkError(
            FailureCause(.status, "the status is 500"), request: request, response: head, body: Data("s3cret".utf8))
    }

    @Test func dumpedErrorsRequestsAndHeadsShowNoSecret() throws {
        let error = try error()
        let request = try #require(error.request)
        let head = try #require(error.response)
        for (value, shown) in [(error, "the status is 500"), (request, "shown"), (head, "Age: 0")] as [(Any, String)] {
            var text = ""
            dump(value, to: &text)
            #expect(!text.contains("s3cret") && text.contains("h/a?token=<redacted>"), "\(text)")
            #expect(text.contains(shown), "\(text)")
        }
    }

    @Test func quotedBytesArePrintable() throws {
        let quoted = "said \u{1B}[31mred\r\n\u{7}\u{9B}\u{202E}\u{2028}"
        let request = try Request(.get, "https://h/a")
        let failure = FailureCause(.malformedResponse, quoted)
        let errors = [
            NetworkError(.malformedResponse, reason: quoted), NetworkError(failure, request: request),
            NetworkError(.malformedResponse, reason: "").adding(quoted),
        ]
        let expected = #"said \u{1B}[31mred\u{D}\u{A}\u{7}\u{9B}\u{202E}\u{2028}"#
        for error in errors {
            #expect(error.reason.contains(expected) && error.description.contains(expected))
            #expect(error.adding("more").reason.contains(expected), "it is not escaped twice")
        }
    }

    @Test func requestsThatWereCertainlyNotProcessedAreKnown() throws {
        let request = try Request(.post, "https://h/a")
        let unsent: [NetworkError.Kind] = [
            .dns, .connectionRefused, .connectionFailed, .connectTimedOut, .queueTimedOut, .untrustedServer,
            .pinMismatch,
        ]
        for kind in unsent { #expect(NetworkError(FailureCause(kind, ""), request: request).wasNotProcessed) }
        // These end requests that were sent, too.
        for kind in [NetworkError.Kind.connectionLost, .tls, .idleTimedOut, .cancelled, .status, .proxy] {
            #expect(!NetworkError(FailureCause(kind, ""), request: request).wasNotProcessed)
        }
        let stated = FailureCause(.connectionLost, "", wasNotProcessed: true, http2Code: 7)
        let error = NetworkError(stated.caused(by: CancellationError()), request: request)
        #expect(error.wasNotProcessed && error.http2Code == 7)
    }

    @Test func errorTextIsTheLocalizedDescription() throws {
        let error = try error()
        #expect((error as any LocalizedError).errorDescription == error.description)
        #expect(error.description == "status: POST https://h/a?token=<redacted>: the status is 500")
    }

    /// Not every transport checks the limits before it sends: over such a one, a negative limit ended the process.
    @Test func negativeErrorBodyLimitCountsAsZero() async throws {
        var configuration = Session.Configuration()
        configuration.errorBodyLimit = -1
        let stub = StubTransport(["GET /": .data(Data("no".utf8), status: 500)])
        let session = Session(configuration: configuration, transport: stub)
        for path in ["", "broken"] {
            let error = await #expect(throws: NetworkError.self) {
                try await session.response(for: Request(.get, "https://h/\(path)"))
            }
            #expect(error?.body.isEmpty == true)
        }
    }
}
