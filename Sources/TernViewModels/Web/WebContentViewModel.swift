public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that shows web content, loaded through Tern: with its sessions, its interceptors, its trust and its errors.
///
/// ```swift
/// extension WebView: WebContentViewModel {
///     func showContent(_ content: WebContent) {
///         load(content.data, content.mimeType, content.textEncoding, baseURL: content.baseURL)
///     }
/// }
///
/// let load = webView.load(try Request(.get, "https://example.com/"))
/// ```
///
/// Every requirement but the first may be left out, each for itself. Each start that the view is told of is followed by one
/// end: finished, failed or cancelled.
@MainActor
public protocol WebContentViewModel: BindableView {
    /// Shows content in place of what is there. Called on the main actor, never after the load's end.
    func showContent(_ content: WebContent)

    /// How far the response has come. Does nothing by default.
    func showLoadingProgress(_ progress: Session.Progress)

    /// A load has started: called within the call that starts it. Does nothing by default.
    func didStartLoading(_ load: WebLoad)

    /// The content of a load was shown. Does nothing by default.
    func didFinishLoading(_ load: WebLoad)

    /// A load has failed: no answer, a refused status, a decoder's or a transform's refusal, bytes that are no text. Not
    /// called for loads that were cancelled or replaced. Does nothing by default.
    func didFailLoading(_ load: WebLoad, _ error: NetworkError)

    /// A load that had started was cancelled, or another is about to take its place. Does nothing by default.
    func didCancelLoading(_ load: WebLoad)

    /// Who carries a navigation out; nil, the default, leaves it to ``loadsLinksThroughTern``.
    func decide(_ navigation: WebNavigation) -> WebNavigation.Decision?
}

extension WebContentViewModel {
    /// Nothing.
    public func showLoadingProgress(_ progress: Session.Progress) {}
    /// Nothing.
    public func didStartLoading(_ load: WebLoad) {}
    /// Nothing.
    public func didFinishLoading(_ load: WebLoad) {}
    /// Nothing.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {}
    /// Nothing.
    public func didCancelLoading(_ load: WebLoad) {}
    /// No decision.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { nil }
}

extension WebContentViewModel {
    /// Loads a request, whole: with its method, its headers and its body. The previous load of the view, running or
    /// suspended, ends with `.cancelled` for its caller, and is neither shown nor said to have finished or failed.
    @discardableResult
    public func load(_ request: Request, options: WebOptions = WebOptions()) -> WebLoad {
        load(request, options, .append)
    }

    /// The load that has not ended; nil without one.
    public var webLoad: WebLoad? { bindings[.webContent] }

    /// Ends the load that has not ended, with `.cancelled` for its caller.
    public func cancelLoading() { bindings.cancel(.webContent) }

    func load(_ request: Request, _ options: WebOptions, _ placement: WebHistory.Placement) -> WebLoad {
        let load = WebLoad(request, options, placement, for: self)
        load.entered(bindings.set(load, for: .webContent))
        if options.startsImmediately { load.resume() }
        return load
    }

    // MARK: Settings

    /// The session of this view's loads; nil, the default, for `Session.forWebViews`. Acts on the next load.
    public var webSession: Session? {
        get { bindings[value: .webSession] }
        set { bindings[value: .webSession] = newValue }
    }

    /// What makes the content's bytes of a response, and may refuse it; nil, the default, for the body as it came. Acts on
    /// the next load.
    public var webDecoder: BodyDecoder<Data>? {
        get { bindings[value: .webDecoder] }
        set { bindings[value: .webDecoder] = newValue }
    }
}

extension BindingKey<WebLoad> {
    static var webContent: Self { Self("web content") }
}

extension BindingKey<Session> {
    fileprivate static var webSession: Self { Self("web session") }
}

extension BindingKey<BodyDecoder<Data>> {
    fileprivate static var webDecoder: Self { Self("web decoder") }
}
