import CGtk
import CWebKit
import GtkBridge

/// Why a script has no value.
public struct ScriptFailure: Error, CustomStringConvertible {
    /// WebKit's words.
    public let description: String
}

extension WebView {
    /// The value of a script that runs in the page, as text.
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

    private final class Waiting: Sendable {
        let continuation: CheckedContinuation<String, any Error>

        init(_ continuation: CheckedContinuation<String, any Error>) { self.continuation = continuation }
    }
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
