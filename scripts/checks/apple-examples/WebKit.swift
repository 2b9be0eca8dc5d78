import Tern
import TernViewModels
import WebKit

// The example for WebKit of Documentation/WebContent.md, as it stands there. scripts/checks/apple compiles it, and
// nothing runs it.

@MainActor
private final class Browser {
    let webView: WKWebView
    let delegate = WebNavigationDelegate()  // held: the view holds it weakly

    init(_ webView: WKWebView) {
        self.webView = webView
        webView.navigationDelegate = delegate
        webView.loadsLinksThroughTern = true
        webView.navigationDecision = { $0.request.url?.host() == "example.com" ? .loadThroughTern : nil }
    }

    func open(_ page: Request) { webView.load(page) }
    func back() { if webView.hasPreviousPage { webView.loadPreviousPage() } }
    func forward() { if webView.hasNextPage { webView.loadNextPage() } }
    func again() { webView.reloadPage() }
}
