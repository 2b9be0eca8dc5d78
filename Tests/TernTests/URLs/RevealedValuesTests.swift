import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("RevealedValues")
struct RevealedValuesTests {
    private let url = "https://user:pass@a.example/list?page=2&token=s3cret&Sort=a%20b&flag#part"

    /// Each row: the names, and the URL as it is shown.
    @Test(
        arguments: [
            ([], "https://a.example/list?page=<redacted>&token=<redacted>&Sort=<redacted>&flag"),
            (["page", "sort"], "https://a.example/list?page=2&token=<redacted>&Sort=a%20b&flag"),
            (["p"], "https://a.example/list?page=<redacted>&token=<redacted>&Sort=<redacted>&flag"),
        ] as [([String], String)])
    func valuesOfNamedParametersAreShown(names: [String], expected: String) throws {
        let request = try Request(.get, url)
        #expect(request.description(revealing: RevealedValues(names)) == "GET \(expected)")
        #expect(request.curlDescription(revealing: RevealedValues(names)) == "curl '\(expected)'")
        let error = NetworkError(FailureCause(.dns, "no address"), request: request)
        #expect(error.description(revealing: RevealedValues(names)) == "dns: GET \(expected): no address")
    }

    @Test func aNameIsComparedAsItIsBeforeEncoding() throws {
        let request = try Request(.get, "https://a.example/?na%6De=1&n%C3%A4me=2&a%3Db=3")
        #expect("\(request)".contains("?na%6De=<redacted>&n%C3%A4me=<redacted>&a%3Db=<redacted>"))
        let text = request.description(revealing: ["name", "näme", "a=b"])
        #expect(text == "GET https://a.example/?na%6De=1&n%C3%A4me=2&a%3Db=3")
    }

    @Test func aCommandWithAllValuesCanBePasted() throws {
        var request = try Request(.post, url, headers: ["Authorization": "Bearer s3cret", "X": "1"])
        request.body = .text("y")
        let text = request.curlDescription(revealing: .all)
        #expect(text.hasSuffix(" 'https://a.example/list?page=2&token=s3cret&Sort=a%20b&flag'"), "\(text)")
        #expect(text.contains(" --user 'user:pass' "))
        #expect(text.contains("--header 'Authorization: Bearer s3cret'"))
        let one = request.curlDescription(revealing: ["authorization"])
        #expect(one.contains("Bearer s3cret") && !one.contains("pass") && !one.contains("token=s3cret"))
        // A URL of any length is whole.
        let long = try Request(.get, "https://a.example/?q=" + String(repeating: "a", count: 3_000))
        #expect(long.curlDescription(revealing: ["q"]).count > 3_000)
    }

    private struct Note: Encodable {
        let text = "it's"
    }

    /// The words about the body, between the method and the URL.
    @Test func aCommandHasTheBodyThatIsATextInMemory() throws {
        var parts = MultipartForm()
        parts.append("1", named: "a")
        let form = Request.Body.multipart(parts)
        let rows: [(body: Request.Body, method: Request.Method, revealed: RevealedValues, words: String)] = [
            (.none, .get, .all, ""),
            (
                .json(Note()), .post, .all,
                #"--request 'POST' --header 'Content-Type: application/json' --data-raw '{"text":"it'\''s"}' "#
            ),
            (
                .text("@a"), .put, .all,
                "--request 'PUT' --header 'Content-Type: text/plain; charset=utf-8' --data-raw '@a' "
            ),
            (
                .data(Data("x".utf8), contentType: nil), .get, .all,
                "--request 'GET' --header 'Content-Type:' --data-raw 'x' "
            ),
            (.data(Data(), contentType: nil), .post, .all, "--request 'POST' --header 'Content-Type:' --data-raw '' "),
            (
                .data(Data([0, 1]), contentType: "a/b"), .post, .all,
                "--request 'POST' --header 'Content-Type: a/b' --data-binary @- "
            ),
            (
                .data(Data([0xFF]), contentType: "a/b"), .post, .all,
                "--request 'POST' --header 'Content-Type: a/b' --data-binary @- "
            ),
            (
                .text(String(repeating: "a", count: 65_537), contentType: "a/b"), .post, .all,
                "--request 'POST' --header 'Content-Type: a/b' --data-binary @- "
            ),
            (
                .text("secret", contentType: "a/b"), .post, .none,
                "--request 'POST' --header 'Content-Type: a/b' --data-binary @- "
            ),
            (
                .file(URL(filePath: "/a b"), contentType: nil), .put, .all,
                "--request 'PUT' --header 'Content-Type:' --data-binary '@/a b' "
            ),
            (
                form, .post, .all,
                "--request 'POST' --header 'Content-Type: \(form.contentType ?? "")' --data-binary @- "
            ),
        ]
        for row in rows {
            var request = try Request(row.method, "https://a.example/")
            request.body = row.body
            #expect(request.curlDescription(revealing: row.revealed) == "curl \(row.words)'https://a.example/'")
        }
    }

    @Test func theDescriptionHasTheLabel() throws {
        var request = try Request(.delete, "https://a.example/1")
        #expect("\(request)" == "DELETE https://a.example/1")
        request.label = "clean\nup"
        #expect("\(request)" == #"DELETE https://a.example/1 [clean\u{A}up]"#)
        request.method = "BAD\nMETHOD"
        #expect(!"\(request)".contains("\n"))
    }
}
