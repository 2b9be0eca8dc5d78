#if canImport(WebKit) && !os(tvOS) && !os(watchOS)
import Foundation
import Tern
public import WebKit

/// Shows pages that Tern has loaded. WebKit's own `goBack()`, `canGoBack`, `reload()` and their like know nothing of them:
/// ask for Tern's through the protocol, as in `(webView as any WebContentViewModel).goBack()`.
extension WKWebView: WebContentViewModel {
    /// Loads the bytes into the view.
    public func showContent(_ content: WebContent) {
        guard let baseURL = content.baseURL ?? URL(string: "about:blank") else { return }
        load(
            content.data, mimeType: content.mimeType, characterEncodingName: content.textEncoding, baseURL: baseURL)
    }

    /// Asks `navigationDecision`.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { navigationDecision?(navigation) }

    /// Asked about navigations before `loadsLinksThroughTern` is; nil, the default, leaves them to that.
    public var navigationDecision: (@MainActor (WebNavigation) -> WebNavigation.Decision?)? {
        get { bindings[value: .navigationDecision]?.decide }
        set { bindings[value: .navigationDecision] = newValue.map { NavigationDecision(decide: $0) } }
    }
}

private struct NavigationDecision: Sendable {
    let decide: @MainActor (WebNavigation) -> WebNavigation.Decision?
}

extension BindingKey<NavigationDecision> {
    fileprivate static var navigationDecision: Self { Self("navigation decision") }
}
#endif
