import Tern
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite("Web content", .timeLimit(.minutes(1)))
struct WebContentTests {
    private struct Refusal: Error {}

    private let site = Site()
    private let view: WebView

    init() { view = WebView(session: site.session) }

    private func load(_ path: String, _ options: WebOptions = WebOptions()) async throws -> WebContent {
        try await view.load(try site.request(path), options: options).value
    }

    @Test func aRequestIsLoadedWhole() async throws {
        let request = try Request(
            .post, "https://a.example/echo", headers: ["X-Token": "t"], body: .text("hello"))
        let content = try await view.load(request).value
        #expect(String(decoding: content.data, as: UTF8.self) == "POST t hello")
        #expect(content.mimeType == "text/plain" && content.textEncoding == "utf-8")
    }

    @Test func typeAndEncodingAreThoseOfTheResponseOrThoseGiven() async throws {
        let own = try await load("/sjis")
        #expect(own.mimeType == "text/html" && own.textEncoding == "shift_jis" && own.data.count == 4)
        let given = try await load("/sjis", WebOptions(mimeType: "text/plain", textEncoding: "EUC-JP"))
        #expect(given.mimeType == "text/plain" && given.textEncoding == "euc-jp")
        let bare = try await load("/bare")
        #expect(bare.mimeType == "text/html" && bare.textEncoding == "utf-8")
    }

    @Test func theBaseIsTheURLAfterRedirects() async throws {
        let content = try await load("/moved")
        #expect(content.baseURL?.absoluteString == "https://a.example/final/page" && view.text == "/final/page")
    }

    @Test(arguments: ["/page#part", "/moved#part"])
    func theBaseHasTheFragmentThatTheViewScrollsTo(path: String) async throws {
        #expect(try await load(path).baseURL?.fragment() == "part")
        #expect(try await load("/page").baseURL?.fragment() == nil)
    }

    @Test(arguments: ["/nocharset", "/unknown"])
    func aCharsetThatIsMissingOrUnknownIsUTF8(path: String) async throws {
        let plain = try await load(path)
        #expect(plain.textEncoding == "utf-8")
        let html = try await load(path, WebOptions(transform: .html { text, _ in text + text }))
        #expect(html.textEncoding == "utf-8" && view.text == "éé")
    }

    @Test func aByteOrderMarkComesBeforeTheCharset() async throws {
        let content = try await load("/marked", WebOptions(transform: .html { text, _ in text + "!" }))
        #expect(content.textEncoding == "utf-8" && view.text == "a!")
    }

    @Test func theResultOfATransformIsShown() async throws {
        let data = try await load("/page", WebOptions(transform: .data { data, _ in Data("<\(data.count)>".utf8) }))
        #expect(String(decoding: data.data, as: UTF8.self) == "<5>" && view.contents.last?.data == data.data)
        let html = try await load("/page", WebOptions(transform: .html { text, head in "\(text) \(head.status)" }))
        #expect(String(decoding: html.data, as: UTF8.self) == "/page 200")
    }

    @Test func transformedTextStaysInItsCharsetWhereThatHoldsIt() async throws {
        let same = try await load("/sjis", WebOptions(transform: .html { text, _ in text == "日本" ? "本" : "?" }))
        #expect(same.textEncoding == "shift_jis" && Array(same.data) == [0x96, 0x7B])
        let wider = try await load("/sjis", WebOptions(transform: .html { text, _ in text + "😀" }))
        #expect(wider.textEncoding == "utf-8" && String(decoding: wider.data, as: UTF8.self) == "日本😀")
    }

    @Test func undecodableBytesFailOrAreReplaced() async throws {
        let failing = view.load(
            try site.request("/torn"), options: WebOptions(transform: .html { text, _ in text }))
        let error = await #expect(throws: NetworkError.self) { try await failing.value }
        #expect(error?.kind == .decoding && error?.status == 200)
        #expect(view.log.events.last == .fail("/torn", .decoding) && view.contents.isEmpty)
        let replaced = try await load(
            "/torn", WebOptions(transform: .html(invalidBytes: .replace) { text, _ in text }))
        #expect(String(decoding: replaced.data, as: UTF8.self) == "a\u{FFFD}")
    }

    @Test func aTransformsAndADecodersRefusalAreFailures() async throws {
        let refusing = WebOptions(transform: .data { _, _ in throw Refusal() })
        let refused = view.load(try site.request("/page"), options: refusing)
        let first = await #expect(throws: NetworkError.self) { try await refused.value }
        #expect(first?.kind == .decoding && first?.underlying is Refusal)
        view.webDecoder = BodyDecoder { _, _ in throw Refusal() }
        let load = view.load(try site.request("/page"))
        let second = await #expect(throws: NetworkError.self) { try await load.value }
        #expect(second?.kind == .decoding && view.contents.isEmpty)
        view.webDecoder = BodyDecoder { body, _ in body + body }
        #expect(try await self.load("/page").data == Data("/page/page".utf8))
        view.webDecoder = nil
        #expect(try await self.load("/page").data == Data("/page".utf8))
    }

    @Test func sessionsAreReplaceableAndNilIsTheDefault() async throws {
        let other = WebView()
        #expect(other.webSession == nil && view.webSession === site.session)
        view.webSession = nil
        let load = view.load(try site.request("/page"), options: WebOptions(startsImmediately: false))
        #expect(load.task.sessionID == Session.forWebViews.id && Session.forWebViews.id != Session.shared.id)
        load.cancel()
        view.webSession = site.session
        #expect(try await self.load("/page").mimeType == "text/html")
    }
}
