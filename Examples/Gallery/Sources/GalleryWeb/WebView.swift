import CGtk
import CWebKit
public import GtkBridge
public import Tern
public import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// WebKit's view, with pages that Tern has loaded.
@safe
public final class WebView: Peer, WebContentViewModel {
    /// Called as a load starts: for a bar and a spinner.
    public var whenStarted: (@MainActor (WebLoad) -> Void)?
    /// Called when a load has ended, however it did: the steps that are possible may be others now.
    public var whenEnded: (@MainActor () -> Void)?
    /// What the view was told last of a load that failed; nil once another one has been shown.
    public private(set) var alert: TaskAlert?

    /// An empty view, whose links and forms are loaded through Tern.
    public init() {
        unsafe super.init(webkit_web_view_new())
        loadsLinksThroughTern = true
        decideNavigations()
    }

    private var view: UnsafeMutablePointer<WebKitWebView>? { unsafe cast(to: WebKitWebView.self) }

    // MARK: Shown by Tern

    /// UIWebView's `load(data, mimeType:, textEncodingName:, baseURL:)`.
    public func showContent(_ content: WebContent) {
        alert = nil
        // WebKit copies neither the bytes nor their end: `g_bytes_new` does.
        let bytes = unsafe content.data.withUnsafeBytes { unsafe g_bytes_new($0.baseAddress, gsize($0.count)) }
        defer { unsafe g_bytes_unref(bytes) }
        unsafe webkit_web_view_load_bytes(
            view, bytes, content.mimeType, content.textEncoding, content.baseURL?.absoluteString)
    }

    /// Tells who shows the load's progress.
    public func didStartLoading(_ load: WebLoad) { whenStarted?(load) }

    /// The steps that are possible have changed.
    public func didFinishLoading(_ load: WebLoad) { whenEnded?() }

    /// What was shown stays.
    public func didCancelLoading(_ load: WebLoad) { whenEnded?() }

    /// Shows what went wrong as a page, which is in no history.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {
        if let alert = TaskAlert(error) {
            self.alert = alert
            let page = "<h1>\(alert.title.asHTML)</h1><p>\(alert.message.asHTML)</p>"
            unsafe webkit_web_view_load_alternate_html(view, page, load.request.url?.absoluteString ?? "", nil)
        }
        whenEnded?()
    }

    // MARK: Asked of Tern

    /// WebKit does not tell the body of a form: it sends such a one itself.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? {
        navigation.kind == .formSubmission && navigation.request.method != .get ? .loadInView : nil
    }

    /// WebKit asks before each navigation, also before those of the content that it is handed. Whether a link stands in a
    /// frame it does not tell: such a link changes the whole page.
    private func decideNavigations() {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, "decide-policy") { [weak self] arguments in
            guard arguments.choice(1) != Int(WEBKIT_POLICY_DECISION_TYPE_RESPONSE.rawValue), let self,
                let decision = unsafe arguments.object(0),
                let navigation = unsafe WebNavigation(asked: decision), !self.navigate(navigation)
            else { return false }
            unsafe webkit_policy_decision_ignore(decision.assumingMemoryBound(to: WebKitPolicyDecision.self))
            return true
        }
    }
}

extension WebNavigation {
    /// A navigation as WebKit asks about it; nil for what has no HTTP URL.
    fileprivate init?(asked decision: UnsafeMutableRawPointer) {
        let action = unsafe webkit_navigation_policy_decision_get_navigation_action(OpaquePointer(decision))
        guard let request = unsafe webkit_navigation_action_get_request(action),
            let uri = unsafe webkit_uri_request_get_uri(request)
        else { return nil }
        let method = unsafe webkit_uri_request_get_http_method(request).map { unsafe String(cString: $0) }
        var headers: Headers = [:]
        // Cookies and the name of the program are Tern's own.
        if let fields = unsafe webkit_uri_request_get_http_headers(request),
            let referrer = unsafe soup_message_headers_get_one(fields, "Referer")
        {
            headers["Referer"] = unsafe String(cString: referrer)
        }
        // `try?`: what Tern cannot ask for (`about:`, `mailto:`) is WebKit's affair.
        guard let asked = try? Request(Request.Method(method ?? "GET"), unsafe String(cString: uri), headers: headers)
        else { return nil }
        let kind: Kind =
            switch unsafe webkit_navigation_action_get_navigation_type(action) {
            case WEBKIT_NAVIGATION_TYPE_LINK_CLICKED: .link
            case WEBKIT_NAVIGATION_TYPE_FORM_SUBMITTED, WEBKIT_NAVIGATION_TYPE_FORM_RESUBMITTED: .formSubmission
            case WEBKIT_NAVIGATION_TYPE_RELOAD: .reload
            // WebKit has no history of the pages that it was handed.
            default: .other
            }
        self.init(kind, asked)
    }
}

extension String {
    fileprivate var asHTML: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }
}
