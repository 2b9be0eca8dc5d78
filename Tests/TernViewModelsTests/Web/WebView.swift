import Tern
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes down what it was told and shown.
@MainActor
final class WebView: WebContentViewModel {
    enum Event: Sendable, Equatable {
        case start(String)
        case show(String)
        case finish(String)
        case fail(String, NetworkError.Kind)
        case cancel(String)
    }

    let log: Log<Event>
    let bindings = ViewBindings()
    private(set) var contents: [WebContent] = []
    private(set) var progress: [Session.Progress] = []
    var whenShown: (@MainActor (WebView) -> Void)?
    var decision: WebNavigation.Decision?

    init(_ log: Log<Event> = Log(), session: Session? = nil) {
        self.log = log
        webSession = session
    }

    /// The last content as text in the encoding that was told.
    var text: String? {
        guard let content = contents.last else { return nil }
        return String(decoding: content.data, as: UTF8.self)
    }

    func showContent(_ content: WebContent) {
        contents.append(content)
        log.append(.show(content.baseURL?.path() ?? ""))
        whenShown?(self)
    }

    func showLoadingProgress(_ progress: Session.Progress) { self.progress.append(progress) }

    func didStartLoading(_ load: WebLoad) { log.append(.start(path(load))) }
    func didFinishLoading(_ load: WebLoad) { log.append(.finish(path(load))) }
    func didFailLoading(_ load: WebLoad, _ error: NetworkError) { log.append(.fail(path(load), error.kind)) }
    func didCancelLoading(_ load: WebLoad) { log.append(.cancel(path(load))) }
    func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { decision }

    private func path(_ load: WebLoad) -> String { load.request.url?.path() ?? "" }
}

/// A site of pages, some of which wait on a clock.
struct Site {
    let clock = ManualClock()
    let stub: StubTransport
    let session: Session

    init() {
        stub = StubTransport(clock: clock) { call in
            let html = "text/html; charset=utf-8"
            switch call.path {
            case "/slow": return .text("slow", contentType: html).delayed(by: .seconds(1))
            case "/moved": return .status(302, headers: ["Location": "/final/page"])
            case "/form": return .status(303, headers: ["Location": "/thanks"])
            case "/echo":
                let headers = call.headers["X-Token"] ?? ""
                return .text("\(call.method) \(headers) \(call.text)", contentType: "text/plain; charset=utf-8")
            case "/sjis": return .data(Data([0x93, 0xFA, 0x96, 0x7B]), contentType: "text/html; charset=Shift_JIS")
            case "/torn": return .data(Data([0x61, 0xFF]), contentType: html)
            case "/nocharset": return .data(Data("é".utf8), contentType: "text/html")
            case "/unknown": return .data(Data("é".utf8), contentType: "text/html; charset=x-nonsense")
            case "/marked": return .data(Data([0xEF, 0xBB, 0xBF, 0x61]), contentType: "text/html; charset=Shift_JIS")
            case "/bare": return .data(Data("bare".utf8), contentType: nil)
            case "/missing": return .status(404)
            default: return .text(call.path, contentType: html)
            }
        }
        session = Session(stub: stub)
    }

    func request(_ path: String) throws -> Request { try Request(.get, "https://a.example\(path)") }
}
