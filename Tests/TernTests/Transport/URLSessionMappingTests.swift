#if TERN_URLSESSION || !os(Linux)
@testable import Tern
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("URLSession: requests, heads and errors")
struct URLSessionMappingTests {
    private func wireRequest(_ headers: Headers = [:], source: WireRequest.Source = .none) throws -> WireRequest {
        var request = try WireRequest.test()
        request.headers = headers
        request.source = source
        return request
    }

    // MARK: Requests

    @Test func severalValuesOfANameAreJoined() throws {
        let fields = URLSessionRequest.fields(try wireRequest(["A": "1", "Cookie": "x=1", "a": "2", "cookie": "y=2"]))
        #expect(fields == [.init(name: "A", value: "1, 2"), .init(name: "Cookie", value: "x=1; y=2")])
    }

    @Test func bodyWithoutDecompressionIsRequestedUncompressed() throws {
        var request = try wireRequest(["A": "1"])
        request.decompresses = false
        #expect(URLSessionRequest.fields(request).last == .init(name: "Accept-Encoding", value: "identity"))
        request.headers = ["Accept-Encoding": "br"]
        #expect(URLSessionRequest.fields(request) == [.init(name: "Accept-Encoding", value: "br")])
    }

    @Test func streamedBodyOfKnownLengthHasAContentLength() throws {
        let pipe = UploadPipe()
        #expect(URLSessionRequest.fields(try wireRequest(source: .pipe(pipe, length: 7))).first?.value == "7")
        #expect(URLSessionRequest.fields(try wireRequest(source: .pipe(pipe, length: nil))).isEmpty)
    }

    @Test func theRequestHasMethodURLAndNoCookies() throws {
        var wire = try wireRequest(["X-A": "b"])
        wire.method = "PROPFIND"
        let request = try #require(URLSessionRequest.make(wire))
        #expect(request.httpMethod == "PROPFIND")
        #expect(request.url?.absoluteString == wire.target.string)
        #expect(request.value(forHTTPHeaderField: "X-A") == "b")
        #expect(!request.httpShouldHandleCookies)
    }

    @Test(arguments: Request.Priority.allCases)
    func priorityIsPreservedByTheSystem(_ priority: Request.Priority) {
        #expect(URLSessionRequest.priority(URLSessionRequest.priority(priority)) == priority)
    }

    // MARK: Responses

    private func response(
        _ fields: [String: String], status: Int = 200, _ method: Request.Method = .get
    ) throws -> URLSessionResponse {
        try URLSessionResponse(
            SystemResponse(status: status, fields: fields), target: Target(absolute: "http://localhost/"),
            method: method)
    }

    @Test func lengthOfABodyIsTheContentLength() throws {
        #expect(try response(["Content-Length": "5"]).expected == 5)
        #expect(try response([:]).expected == nil)
        #expect(try response(["Content-Length": "x"]).expected == nil)
        #expect(try response(["content-length": "5", "content-encoding": "identity"]).expected == 5)
    }

    @Test func aCompressedBodyAndNoBodyHaveNoLength() throws {
        let compressed = try response(["Content-Length": "5", "Content-Encoding": "gzip"])
        #expect(compressed.expected == nil)
        #expect(compressed.isCompressed)
        #expect(try response(["Content-Length": "5"], .head).expected == nil)
        #expect(try response(["Content-Length": "5"], status: 304).expected == nil)
    }

    @Test(arguments: [("h2", HTTPVersion.http2), ("http/1.1", .http11), ("h3-29", .http3), ("HTTP/1.0", .http10)])
    func versionIsReadFromItsALPNName(_ name: String, _ version: HTTPVersion) {
        #expect(HTTPVersion(alpn: name) == version)
    }

    // MARK: Errors

    private static let kinds: [(URLError.Code, NetworkError.Kind)] = [
        (.cancelled, .cancelled), (.cannotFindHost, .dns), (.dnsLookupFailed, .dns),
        (.cannotConnectToHost, .connectionRefused), (.notConnectedToInternet, .connectionFailed),
        (.serverCertificateUntrusted, .untrustedServer), (.serverCertificateHasBadDate, .untrustedServer),
        (.secureConnectionFailed, .tls), (.timedOut, .idleTimedOut), (.badURL, .invalidRequest),
        (.networkConnectionLost, .connectionLost), (.cannotParseResponse, .malformedResponse),
        (.dataLengthExceedsMaximum, .tooLarge), (.internationalRoamingOff, .connectionFailed),
    ]

    @Test(arguments: kinds)
    func everyErrorHasItsKindAndNamesTheHost(_ code: URLError.Code, _ kind: NetworkError.Kind) throws {
        let context = URLSessionFailure(target: try Target(absolute: "https://example.com/secret?token=1"))
        let failure = context.failure(URLError(code))
        #expect(failure.kind == kind)
        #expect(!failure.reason.contains("token"))
        if kind == .dns || kind == .untrustedServer { #expect(failure.reason.contains("example.com")) }
        #expect((failure.underlying != nil) == (kind != .cancelled))
    }

    @Test func connectionFailureWithoutRefusalHasItsOwnKind() throws {
        let context = URLSessionFailure(target: try Target(absolute: "https://example.com/"))
        #expect(context.failure(.cannotConnectToHost, 101).kind == .connectionFailed)
        let refused = Int32(POSIXErrorCode.ECONNREFUSED.rawValue)
        #expect(context.failure(.cannotConnectToHost, refused).kind == .connectionRefused)
    }

    @Test func lostConnectionDependsOnTheReceivedBytes() throws {
        var context = URLSessionFailure(target: try Target(absolute: "https://example.com/"))
        context.isReusedConnection = true
        #expect(context.failure(.networkConnectionLost, nil).isDeadPooledConnection)
        context.isReusedConnection = false
        #expect(!context.failure(.networkConnectionLost, nil).isDeadPooledConnection)
        context.hasHead = true
        context.received = 5
        #expect(context.failure(.networkConnectionLost, nil).kind == .connectionLost)
        context.expected = 10
        let truncated = context.failure(.networkConnectionLost, nil)
        #expect(truncated.kind == .truncatedBody)
        #expect(truncated.reason.contains("5 of 10 bytes"))
    }

    @Test func aForeignErrorIsKept() throws {
        let context = URLSessionFailure(target: try Target(absolute: "https://example.com/"))
        let failure = context.failure(NSError(domain: "elsewhere", code: 7))
        #expect(failure.kind == .connectionFailed)
        #expect(failure.reason.contains("elsewhere 7"))
    }

    // MARK: Settings

    @Test func unsupportedOptionsOfURLSessionAreRefusedBeforeSending() throws {
        let settings = URLSessionSettings(Session.Configuration())
        var request = try wireRequest()
        #expect(settings.refusal(of: request) == nil)
        request.unixSocketPath = "/tmp/socket"
        #expect(settings.refusal(of: request)?.kind == .unsupported)
        request.unixSocketPath = nil
        request.source = .pipe(UploadPipe(), length: nil)
        #expect(settings.refusal(of: request) == nil)
        request.source = .pipe(UploadPipe(hasTrailers: true), length: nil)
        #expect(settings.refusal(of: request)?.reason == "URLSession cannot send the trailers of a request")
    }

    @Test func keyLogsAreRefused() {
        var configuration = Session.Configuration()
        configuration.keyLog = TLSKeyLog { _ in }
        let refusal = URLSessionSettings(configuration).refusal
        #expect(refusal?.kind == .unsupported && refusal?.reason.contains("keyLog") == true)
    }

    @Test func certificatesAreReadFromTheirTextForm() {
        let pem = """
            a comment
            -----BEGIN CERTIFICATE-----
            aGVs
            bG8=
            -----END CERTIFICATE-----
            -----BEGIN PRIVATE KEY-----
            AAAA
            -----END PRIVATE KEY-----
            -----BEGIN CERTIFICATE-----
            AQID
            -----END CERTIFICATE-----
            """
        #expect(PEMBlocks.decode(Data(pem.utf8), label: "CERTIFICATE") == [Data("hello".utf8), Data([1, 2, 3])])
        #expect(PEMBlocks.decode(Data("none".utf8), label: "CERTIFICATE").isEmpty)
    }
}

extension WireRequest {
    static func test(_ url: String = "http://localhost:1234/a/b?c=d") throws -> WireRequest {
        WireRequest(
            method: .get, target: try Target(absolute: url), headers: [:], delivery: .collected(limit: 1_000),
            timeouts: Timeouts(), headLimit: 1_000, decompressionLimit: 500, decompresses: true)
    }
}
#endif
