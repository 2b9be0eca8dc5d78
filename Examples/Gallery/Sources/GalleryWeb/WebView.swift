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

/// WebKit's view with pages loaded by Tern.
@safe
public final class WebView: Peer, WebContentViewModel {
    /// Called when a load starts, for a bar and a spinner.
    public var whenStarted: (@MainActor (WebLoad) -> Void)?
    /// Called when a load has ended in any way; the possible history steps may have changed.
    public var whenEnded: (@MainActor () -> Void)?
    /// The alert of the last failed load; nil after another page was shown.
    public private(set) var alert: TaskAlert?

    /// Creates an empty view whose links and forms Tern loads.
    public init() {
        unsafe super.init(webkit_web_view_new())
        loadsLinksThroughTern = true
        decideNavigations()
    }

    private var view: UnsafeMutablePointer<WebKitWebView>? { unsafe cast(to: WebKitWebView.self) }

    // MARK: Content from Tern

    /// Corresponds to UIWebView's `load(data, mimeType:, textEncodingName:, baseURL:)`.
    public func showContent(_ content: WebContent) {
        alert = nil
        // `g_bytes_new` copies the bytes, because WebKit does not.
        let bytes = unsafe content.data.withUnsafeBytes { unsafe g_bytes_new($0.baseAddress, gsize($0.count)) }
        defer { unsafe g_bytes_unref(bytes) }
        unsafe webkit_web_view_load_bytes(
            view, bytes, content.mimeType, content.textEncoding, content.baseURL?.absoluteString)
    }

    /// Calls `whenStarted`, for the progress of the load.
    public func didStartLoading(_ load: WebLoad) { whenStarted?(load) }

    /// Calls `whenEnded`, because the possible history steps have changed.
    public func didFinishLoading(_ load: WebLoad) { whenEnded?() }

    /// Calls `whenEnded`. The content stays.
    public func didCancelLoading(_ load: WebLoad) { whenEnded?() }

    /// Shows the failure as a page without a history entry.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {
        if let alert = TaskAlert(error) {
            self.alert = alert
            let page = "<h1>\(alert.title.asHTML)</h1><p>\(alert.message.asHTML)</p>"
            unsafe webkit_web_view_load_alternate_html(view, page, load.request.url?.absoluteString ?? "", nil)
        }
        whenEnded?()
    }

    // MARK: Navigations

    /// Leaves POST forms to WebKit, which does not reveal their body.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? {
        navigation.kind == .formSubmission && navigation.request.method != .get ? .loadInView : nil
    }

    /// Handles WebKit's question before each navigation, including those of content passed to it. WebKit does not
    /// report whether a link is in a frame; such a link changes the whole page.
    private func decideNavigations() {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, signal: "decide-policy") { [weak self] arguments in
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
    /// Creates a navigation from WebKit's question; nil if it has no HTTP URL.
    fileprivate init?(asked decision: UnsafeMutableRawPointer) {
        let action = unsafe webkit_navigation_policy_decision_get_navigation_action(OpaquePointer(decision))
        guard let request = unsafe webkit_navigation_action_get_request(action),
            let uri = unsafe webkit_uri_request_get_uri(request)
        else { return nil }
        let method = unsafe webkit_uri_request_get_http_method(request).map { unsafe String(cString: $0) }
        var headers: Headers = [:]
        // Tern sets the cookies and the user agent.
        if let fields = unsafe webkit_uri_request_get_http_headers(request),
            let referrer = unsafe soup_message_headers_get_one(fields, "Referer")
        {
            headers["Referer"] = unsafe String(cString: referrer)
        }
        // `try?`: WebKit handles URLs that Tern cannot load (`about:`, `mailto:`).
        guard let asked = try? Request(Request.Method(method ?? "GET"), unsafe String(cString: uri), headers: headers)
        else { return nil }
        let kind: Kind =
            switch unsafe webkit_navigation_action_get_navigation_type(action) {
            case WEBKIT_NAVIGATION_TYPE_LINK_CLICKED: .link
            case WEBKIT_NAVIGATION_TYPE_FORM_SUBMITTED, WEBKIT_NAVIGATION_TYPE_FORM_RESUBMITTED: .formSubmission
            case WEBKIT_NAVIGATION_TYPE_RELOAD: .reload
            // WebKit has no history of the pages passed to it.
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

/// The reason why a script has no value, or a page no picture.
public struct ScriptFailure: Error, CustomStringConvertible {
    /// The message of WebKit.
    public let description: String
}

extension WebView {
    /// Evaluates a script in the page and returns its value as text.
    public func evaluate(_ script: String) async throws -> String {
        guard let view = unsafe cast(to: WebKitWebView.self) else { throw ScriptFailure(description: "no view") }
        return try await withCheckedThrowingContinuation { continuation in
            let waiting = unsafe Unmanaged.passRetained(Waiting(continuation)).toOpaque()
            unsafe webkit_web_view_evaluate_javascript(
                view, script, -1, nil, nil, nil,
                { object, result, data in
                    guard let data = unsafe data else { return }
                    let waiting = unsafe Unmanaged<Waiting>.fromOpaque(data).takeRetainedValue()
                    let view = unsafe object.map(UnsafeMutableRawPointer.init)
                    waiting.continuation.resume(
                        with: unsafe answer(view?.assumingMemoryBound(to: WebKitWebView.self), result))
                }, waiting)
        }
    }

    /// Writes a picture of the visible part of the page to a file, as PNG.
    public func writePicture(to path: String) async throws {
        guard let view = unsafe cast(to: WebKitWebView.self) else { throw ScriptFailure(description: "no view") }
        _ = try await withCheckedThrowingContinuation { continuation in
            let waiting = unsafe Unmanaged.passRetained(Waiting(continuation, path)).toOpaque()
            unsafe webkit_web_view_get_snapshot(
                view, WEBKIT_SNAPSHOT_REGION_VISIBLE, WEBKIT_SNAPSHOT_OPTIONS_NONE, nil,
                { object, result, data in
                    guard let data = unsafe data else { return }
                    let waiting = unsafe Unmanaged<Waiting>.fromOpaque(data).takeRetainedValue()
                    let view = unsafe object.map(UnsafeMutableRawPointer.init)
                    waiting.continuation.resume(
                        with: unsafe write(
                            view?.assumingMemoryBound(to: WebKitWebView.self), result, to: waiting.path))
                }, waiting)
        }
    }

    private final class Waiting: Sendable {
        let continuation: CheckedContinuation<String, any Error>
        /// The file of a picture.
        let path: String

        init(_ continuation: CheckedContinuation<String, any Error>, _ path: String = "") {
            self.continuation = continuation
            self.path = path
        }
    }
}

private func write(
    _ view: UnsafeMutablePointer<WebKitWebView>?, _ result: OpaquePointer?, to path: String
) -> Result<String, any Error> {
    guard let picture = unsafe webkit_web_view_get_snapshot_finish(view, result, nil) else {
        return .failure(ScriptFailure(description: "the page is not drawn"))
    }
    defer { unsafe g_object_unref(UnsafeMutableRawPointer(picture)) }
    guard unsafe gdk_texture_save_to_png(picture, path) != 0 else {
        return .failure(ScriptFailure(description: "\(path) cannot be written"))
    }
    return .success(path)
}

private func answer(
    _ view: UnsafeMutablePointer<WebKitWebView>?, _ result: OpaquePointer?
) -> Result<String, any Error> {
    var failure: UnsafeMutablePointer<GError>?
    let value = unsafe webkit_web_view_evaluate_javascript_finish(view, result, &failure)
    guard let value = unsafe value else {
        let words = unsafe failure?.pointee.message.map { unsafe String(cString: $0) } ?? "no value"
        unsafe g_clear_error(&failure)
        return .failure(ScriptFailure(description: words))
    }
    defer { unsafe g_object_unref(UnsafeMutableRawPointer(value)) }
    guard let text = unsafe jsc_value_to_string(value) else { return .success("") }
    defer { unsafe g_free(text) }
    return .success(unsafe String(cString: text))
}
