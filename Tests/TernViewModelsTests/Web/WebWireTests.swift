import Tern
import TernConcurrency
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests web views over sockets, with a server that counts its requests; the other suites use a stub.
@MainActor
@Suite("Web views over sockets", .timeLimit(.minutes(1)))
struct WebWireTests {
    private struct Refusal: Error {}

    private let wire: WebWire
    private let view: WebView

    init() throws {
        wire = try WebWire()
        view = wire.view
    }

    private func text(_ content: WebContent) -> String { String(decoding: content.data, as: UTF8.self) }

    // MARK: Requests

    @Test func aPOSTGoesOutWhole() async throws {
        let url = wire.server.url("/echo?q=1").absoluteString
        let request = try Request(.post, url, headers: ["X-Token": "t"], body: .text("name=値"))
        let content = try await view.load(request).value
        #expect(text(content) == "POST|t|text/plain; charset=utf-8|8|name=値")
        #expect(content.mimeType == "text/plain" && content.textEncoding == "utf-8")
        #expect(content.baseURL?.absoluteString == url && wire.lines == ["POST /echo?q=1"])
        #expect(view.log.events == [.start("/echo"), .show("/echo"), .finish("/echo")])
    }

    @Test(arguments: ["", "a body that is not needed"])
    func otherMethodsGoOutAsTheyAre(body: String) async throws {
        let request = try wire.request("/echo", .put, body: body.isEmpty ? .none : .text(body))
        let answer = text(try await view.load(request).value)
        #expect(answer.hasPrefix("PUT|-|") && answer.hasSuffix("|\(body)"))
    }

    @Test func theDefaultSessionLoadsWhereTheViewHasNone() async throws {
        view.webSession = nil
        let load = view.load(try wire.request("/plain"))
        #expect(try await text(load.value) == "/plain" && load.task.sessionID == Session.forWebViews.id)
    }

    // MARK: Redirects

    @Test func theBaseIsTheURLAfterAllRedirects() async throws {
        let content = try await wire.load("/moved")
        #expect(content.baseURL?.absoluteString == wire.server.url("/deep/final/page#part").absoluteString)
        #expect(wire.lines == ["GET /moved", "GET /deep/er?x=1", "GET /deep/final/page"])
        #expect(text(content) == "/deep/final/page" && content.response.redirects.count == 2)
    }

    @Test func aFormThatWasAnsweredByARedirectIsNotSentAgain() async throws {
        _ = try await view.load(try wire.request("/form", .post, body: .text("x"))).value
        _ = try await view.load(try wire.request("/next")).value
        _ = try await view.goBack()?.value
        _ = try await view.reload()?.value
        #expect(wire.lines == ["POST /form", "GET /thanks", "GET /next", "GET /thanks", "GET /thanks"])
        #expect(view.contents.last?.baseURL?.path() == "/thanks" && view.canGoForward && !view.canGoBack)
    }

    @Test func aRedirectThatKeepsTheMethodTakesTheBodyAlongAndTheStepBackTheForm() async throws {
        let request = try wire.request("/kept", .post, body: .text("kept"))
        let answers = [try await view.load(request).value, try await view.reload()?.value].map { $0.map(text) ?? "" }
        #expect(answers.allSatisfy { $0.hasPrefix("POST|") && $0.hasSuffix("|kept") })
        #expect(wire.lines == ["POST /kept", "POST /other/echo", "POST /kept", "POST /other/echo"])
    }

    // MARK: Text

    @Test func aShiftJISPageSurvivesEverySplit() async throws {
        let plain = try await wire.load("/sjis")
        #expect(plain.textEncoding == "shift_jis" && plain.mimeType == "text/html")
        #expect(Array(plain.data.prefix(6)) == WebWire.japanese)
        let seen = LockedText()
        let options = WebOptions(
            transform: .html { html, _ in
                seen.text = html
                return html.replacing("語", with: "")
            })
        let less = try await wire.load("/sjis", options)
        #expect(seen.text == "日本語<p>page</p>" && less.textEncoding == "shift_jis")
        #expect(Array(less.data) == WebWire.japanese.prefix(4) + Array("<p>page</p>".utf8))
    }

    @Test func aPageDeclaresItsCharset() async throws {
        #expect(try await wire.load("/declared").textEncoding == "shift_jis")
        let wide = try await wire.load("/declared", WebOptions(transform: .html { html, _ in html + "😀" }))
        #expect(wide.textEncoding == "utf-8" && text(wide).hasSuffix("日本語😀"))
    }

    @Test func bytesThatAreNoTextFailOrAreReplaced() async throws {
        let load = view.load(
            try wire.request("/torn-text"), options: WebOptions(transform: .html { html, _ in html }))
        let error = await wire.failure(load)
        #expect(error?.kind == .decoding && error?.status == 200)
        #expect(error?.request?.url == wire.server.url("/torn-text"))
        #expect(view.log.events == [.start("/torn-text"), .fail("/torn-text", .decoding)] && view.contents.isEmpty)
        let replaced = try await wire.load(
            "/torn-text", WebOptions(transform: .html(invalidBytes: .replace) { html, _ in html }))
        // Shift_JIS has no U+FFFD.
        #expect(text(replaced) == "日本語\u{FFFD}\u{FFFD}" && replaced.textEncoding == "utf-8")
        // No transform asked for the text.
        #expect(try await wire.load("/torn-text").data.count == 8)
    }

    // MARK: Failures

    @Test func aDecodersRefusalFailsTheLoad() async throws {
        view.webDecoder = BodyDecoder { body, head in
            guard head.headers["Content-Type"]?.hasPrefix("text/html") == true else { throw Refusal() }
            return body
        }
        let error = await wire.failure(view.load(try wire.request("/echo")))
        #expect(error?.kind == .decoding && error?.underlying is Refusal && error?.status == 200)
        #expect(view.log.events == [.start("/echo"), .fail("/echo", .decoding)])
        #expect(text(try await wire.load("/page")) == "/page")
    }

    @Test func aRefusedStatusIsShownToNobodyAndLeavesTheHistory() async throws {
        _ = try await wire.load("/a")
        #expect(await wire.failure(view.load(try wire.request("/missing")))?.status == 404)
        #expect(view.contents.count == 1 && !view.canGoBack && !view.canGoForward)
        #expect(view.log.events.suffix(2) == [.start("/missing"), .fail("/missing", .status)])
    }

    @Test func aConnectionThatIsRefusedIsAFailure() async throws {
        let port = try LoopbackServer.refusingPort()
        let load = view.load(try Request(.get, "http://127.0.0.1:\(port)/"))
        #expect(await wire.failure(load)?.kind == .connectionRefused && view.contents.isEmpty)
    }

    @Test func aPageThatIsLostInTheMiddleIsNotShown() async throws {
        let load = view.load(try wire.request("/lost"))
        try await wire.half.wait()
        wire.rest.open()
        #expect(await wire.failure(load)?.kind == .truncatedBody)
        #expect(view.log.events == [.start("/lost"), .fail("/lost", .truncatedBody)] && view.contents.isEmpty)
    }

    // MARK: Progress

    @Test func progressIsShownOnTheWay() async throws {
        let load = view.load(try wire.request("/halves"))
        try await wire.half.wait()
        await eventually { view.progress.last?.completedBytes == 100 }
        #expect(view.progress.last?.fractionCompleted == 0.5 && view.contents.isEmpty)
        wire.rest.open()
        #expect(try await load.value.data.count == 200)
        let bytes = view.progress.map(\.completedBytes)
        #expect(bytes == bytes.sorted() && bytes.last == 200)
        #expect(view.progress.allSatisfy { $0.totalBytes == 200 || $0.completedBytes == 0 })
        #expect(view.progress.filter(\.isFinished).count == 1 && view.progress.last?.isFinished == true)
    }

    @Test func anUnknownLengthHasNoFraction() async throws {
        #expect(try await wire.load("/chunks").data.count == 100)
        #expect(view.progress.dropLast().allSatisfy { $0.totalBytes == nil && $0.fractionCompleted == nil })
        #expect(view.progress.last?.completedBytes == 100 && view.progress.last?.isFinished == true)
    }

    // MARK: Ends in the middle of the body

    enum End: CaseIterable, Sendable { case handle, view, replaced, otherwise }

    @Test(arguments: End.allCases)
    func aLoadThatEndsInTheMiddleLeavesItsConnection(end: End) async throws {
        let load = view.load(try wire.request("/endless"))
        try await wire.half.wait()
        switch end {
        case .handle: load.cancel()
        case .view: view.cancelLoading()
        case .replaced: view.load(try wire.request("/next"))
        case .otherwise: await wire.session.tasks.cancelAll()
        }
        #expect(await wire.failure(load)?.kind == .cancelled && !load.isActive)
        // The server sees the end of the connection and sends nothing more.
        try await wire.left.wait()
        if end == .replaced { await view.log.wait { $0.last == .finish("/next") } }
        await settle()
        let last: [WebView.Event] =
            switch end {
            case .handle, .view: [.cancel("/endless")]
            case .replaced: [.cancel("/endless"), .start("/next"), .show("/next"), .finish("/next")]
            case .otherwise: [.fail("/endless", .cancelled)]
            }
        #expect(view.log.events == [.start("/endless")] + last)
    }

    @Test func aViewThatIsDroppedInTheMiddleLeavesItsConnection() async throws {
        let log = Log<WebView.Event>()
        var view: WebView? = WebView(log, session: wire.session)
        weak let weakView = view
        let load = try #require(view?.load(try wire.request("/endless")))
        try await wire.half.wait()
        view = nil
        await eventually { weakView == nil }
        try await wire.left.wait()
        #expect(await wire.failure(load)?.kind == .cancelled && log.events == [.start("/endless")])
    }

    @Test func aPausedPageComesAfterItsResume() async throws {
        let load = view.load(try wire.request("/halves"))
        try await wire.half.wait()
        load.pause()
        // The engine serves its sockets before it takes commands: it took the earlier command before it served this
        // request.
        _ = try await wire.session.response(for: try wire.request("/plain"))
        wire.rest.open()
        await settle()
        #expect(view.contents.isEmpty && load.task.state == .suspended)
        load.resume()
        #expect(try await load.value.data.count == 200)
        #expect(view.log.events == [.start("/halves"), .show("/halves"), .finish("/halves")])
    }

    // MARK: History

    @Test func tappedLinksAndStepsAskTheServer() async throws {
        view.loadsLinksThroughTern = true
        _ = try await wire.load("/a")
        #expect(!view.navigate(WebNavigation(.link, try wire.request("/b"))))
        await view.log.wait { $0.last == .finish("/b") }
        _ = try await view.goBack()?.value
        _ = try await view.goForward()?.value
        #expect(wire.lines == ["GET /a", "GET /b", "GET /a", "GET /b"])
        #expect(view.contents.map(text) == ["/a", "/b", "/a", "/b"])
    }
}

/// Stores the text that a transform got.
private final class LockedText: Sendable {
    private let value = Lock("")
    var text: String {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
