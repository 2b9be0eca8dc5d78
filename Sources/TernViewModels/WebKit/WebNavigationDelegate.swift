#if canImport(WebKit) && !os(tvOS) && !os(watchOS)
import Foundation
import Tern
public import WebKit

/// Takes tapped links, forms and reloads of a web view to Tern.
///
/// ```swift
/// let delegate = WebNavigationDelegate()  // held by you: the view holds it weakly
/// webView.navigationDelegate = delegate
/// webView.loadsLinksThroughTern = true
/// ```
///
/// A delegate of your own asks `WKWebView.policy(for:)` instead.
@MainActor
public final class WebNavigationDelegate: NSObject, WKNavigationDelegate {
    /// A delegate for any number of web views.
    public override init() {}

    /// Asks the web view's `policy(for:)`.
    public func webView(
        _ webView: WKWebView, decidePolicyFor navigationAction: WKNavigationAction
    ) async -> WKNavigationActionPolicy { webView.policy(for: navigationAction) }
}

extension WKWebView {
    /// What WebKit is to do about a navigation: `.cancel` for one that Tern has begun to load, or that
    /// `navigationDecision` ignores.
    ///
    /// Left to WebKit are downloads, what is neither http nor https, steps in WebKit's own history, in which Tern's pages
    /// are not, and forms that are posted: WebKit does not tell their body.
    public func policy(for action: WKNavigationAction) -> WKNavigationActionPolicy {
        guard !action.shouldPerformDownload, let navigation = WebNavigation(action) else { return .allow }
        return navigate(navigation) ? .allow : .cancel
    }
}

extension WebNavigation {
    /// nil for what Tern cannot carry out.
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
        // Without a frame it is for a new window, of which there is none: the page changes.
        self.init(kind, request, isMainFrame: action.targetFrame?.isMainFrame ?? true)
    }
}

extension Request {
    /// nil for what Tern cannot send as WebKit would.
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
            // No http: WebKit knows what to do with it.
            return nil
        }
    }
}
#endif
