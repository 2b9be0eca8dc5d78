// The declarations of WebKit that Tern uses, as Apple documents them (developer.apple.com/documentation/webkit):
// names, types, labels and actors, without behavior. Only scripts/checks/apple compiles it. URLRequest is that of
// Foundation.
@_exported public import FoundationNetworking

#if canImport(UIKit)
@_exported public import UIKit
#else
@_exported public import AppKit
#endif

#if canImport(UIKit)
public typealias PlatformView = UIView
#else
public typealias PlatformView = NSView
#endif

@MainActor open class WKNavigation: NSObject {}

public enum WKNavigationType: Int, Sendable {
    case linkActivated = 0
    case formSubmitted = 1
    case backForward = 2
    case reload = 3
    case formResubmitted = 4
    case other = -1
}

public enum WKNavigationActionPolicy: Int, Sendable {
    case cancel = 0
    case allow = 1
    case download = 2
}

@MainActor open class WKFrameInfo: NSObject {
    open var isMainFrame: Bool { true }
}

@MainActor open class WKNavigationAction: NSObject {
    open var targetFrame: WKFrameInfo? { nil }
    open var navigationType: WKNavigationType { .other }
    open var request: URLRequest { URLRequest(url: URL(fileURLWithPath: "/")) }
    open var shouldPerformDownload: Bool { false }
}

/// Every method of it is optional there; here by an extension. The compiler makes the asynchronous form of the one with
/// a handler, and a class may implement either.
@MainActor public protocol WKNavigationDelegate: NSObjectProtocol {
    func webView(
        _ webView: WKWebView, decidePolicyFor navigationAction: WKNavigationAction
    ) async -> WKNavigationActionPolicy
}

extension WKNavigationDelegate {
    public func webView(
        _ webView: WKWebView, decidePolicyFor navigationAction: WKNavigationAction
    ) async -> WKNavigationActionPolicy { .allow }
}

@MainActor open class WKWebView: PlatformView {
    open weak var navigationDelegate: (any WKNavigationDelegate)?
    open var canGoBack: Bool { false }
    open var canGoForward: Bool { false }
    @discardableResult open func load(_ request: URLRequest) -> WKNavigation? { nil }
    @discardableResult open func load(
        _ data: Data, mimeType MIMEType: String, characterEncodingName: String, baseURL: URL
    ) -> WKNavigation? { nil }
    @discardableResult open func goBack() -> WKNavigation? { nil }
    @discardableResult open func goForward() -> WKNavigation? { nil }
    @discardableResult open func reload() -> WKNavigation? { nil }
}
