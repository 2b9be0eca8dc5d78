#if canImport(WebKit) && !os(tvOS) && !os(watchOS)
import Foundation
import Tern
public import WebKit

/// Shows pages that Tern has loaded.
///
/// WebKit's own `goBack()`, `canGoBack`, `reload()` and related members do not know these pages. Use Tern's:
/// `hasPreviousPage`, `hasNextPage`, `loadPreviousPage()`, `loadNextPage()` and `reloadPage()`.
extension WKWebView: WebContentViewModel {
    /// Loads the content into the view.
    public func showContent(_ content: WebContent) {
        guard let baseURL = content.baseURL ?? URL(string: "about:blank") else { return }
        load(
            content.data, mimeType: content.mimeType, characterEncodingName: content.textEncoding, baseURL: baseURL)
    }

    /// Calls `navigationDecision`.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { navigationDecision?(navigation) }

    /// A closure that decides about navigations before `loadsLinksThroughTern`; nil, the default, leaves the decision
    /// to that property.
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

/// Passes the links, forms and reloads of a web view to Tern.
///
/// ```swift
/// let delegate = WebNavigationDelegate()  // held by you: the view holds it weakly
/// webView.navigationDelegate = delegate
/// webView.loadsLinksThroughTern = true
/// ```
///
/// A delegate of your own calls `WKWebView.policy(for:)` instead.
@MainActor
public final class WebNavigationDelegate: NSObject, WKNavigationDelegate {
    /// Creates a delegate for any number of web views.
    public override init() {}

    /// Returns the web view's `policy(for:)`.
    public func webView(
        _ webView: WKWebView, decidePolicyFor navigationAction: WKNavigationAction
    ) async -> WKNavigationActionPolicy { webView.policy(for: navigationAction) }
}

extension WKWebView {
    /// Returns WebKit's policy for a navigation: `.cancel` if Tern has begun to load it or `navigationDecision` ignores
    /// it.
    ///
    /// WebKit handles downloads, URLs that are neither http nor https, steps in its own history, which does not contain
    /// Tern's pages, and POST forms, whose body it does not reveal.
    public func policy(for action: WKNavigationAction) -> WKNavigationActionPolicy {
        guard !action.shouldPerformDownload, let navigation = WebNavigation(action) else { return .allow }
        return navigate(navigation) ? .allow : .cancel
    }
}

extension WebNavigation {
    /// Returns nil for a navigation that Tern cannot perform.
    @MainActor
    fileprivate init?(_ action: WKNavigationAction) {
        let kind: Kind
        switch action.navigationType {
        case .linkActivated: kind = .link
        case .formSubmitted, .formResubmitted: kind = .formSubmission
        case .reload: kind = .reload
        default: kind = .other
        }
        guard let request = Request(action.request) else { return nil }
        // A navigation without a frame would open a new window. There is none, so the page changes.
        self.init(kind, request, isMainFrame: action.targetFrame?.isMainFrame ?? true)
    }
}

extension Request {
    /// Returns nil for a request that Tern cannot send as WebKit would.
    fileprivate init?(_ request: URLRequest) {
        let method = Method(request.httpMethod ?? "GET")
        guard let url = request.url, request.httpBodyStream == nil else { return nil }
        guard method.isSafe || request.httpBody != nil else { return nil }
        var headers: Headers = [:]
        for (name, value) in request.allHTTPHeaderFields ?? [:] { headers[name] = value }
        let body = request.httpBody.map { Body.data($0, contentType: headers["Content-Type"]) } ?? .none
        do throws(NetworkError) {
            try self.init(method, url: url, headers: headers, body: body)
        } catch {
            // The scheme is not http or https, so WebKit handles it.
            return nil
        }
    }
}
#endif
