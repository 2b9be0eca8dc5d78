import Testing

@testable import Tern

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

    @Test func theDescriptionHasTheLabel() throws {
        var request = try Request(.delete, "https://a.example/1")
        #expect("\(request)" == "DELETE https://a.example/1")
        request.label = "clean\nup"
        #expect("\(request)" == #"DELETE https://a.example/1 [clean\u{A}up]"#)
        request.method = "BAD\nMETHOD"
        #expect(!"\(request)".contains("\n"))
    }
}
