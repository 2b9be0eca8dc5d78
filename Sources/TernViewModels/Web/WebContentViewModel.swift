public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that shows web content loaded through Tern, with its sessions, interceptors, trust and errors.
///
/// ```swift
/// extension WebView: WebContentViewModel {
///     func showContent(_ content: WebContent) {
///         load(content.data, mimeType: content.mimeType, encoding: content.textEncoding, baseURL: content.baseURL)
///     }
/// }
///
/// let load = webView.load(try Request(.get, "https://example.com/"))
/// ```
///
/// All requirements except the first are optional. Each reported start is followed by exactly one end: finished, failed
/// or cancelled.
@MainActor
public protocol WebContentViewModel: BindableView {
    /// Shows content in place of the current content. Called on the main actor, never after the end of the load.
    func showContent(_ content: WebContent)

    /// Shows the progress of the response. Does nothing by default.
    func showLoadingProgress(_ progress: Session.Progress)

    /// Called when a load starts, within the call that starts it. Does nothing by default.
    func didStartLoading(_ load: WebLoad)

    /// Called after the content of a load was shown. Does nothing by default.
    func didFinishLoading(_ load: WebLoad)

    /// Called when a load fails: without a response, with a rejected status, because a decoder or transform failed, or
    /// because the bytes are not text. Not called for cancelled or replaced loads. Does nothing by default.
    func didFailLoading(_ load: WebLoad, _ error: NetworkError)

    /// Called when a started load was cancelled or is about to be replaced. Does nothing by default.
    func didCancelLoading(_ load: WebLoad)

    /// Returns the decision about a navigation; nil, the default, leaves it to ``loadsLinksThroughTern``.
    func decide(_ navigation: WebNavigation) -> WebNavigation.Decision?
}

extension WebContentViewModel {
    /// Does nothing.
    public func showLoadingProgress(_ progress: Session.Progress) {}
    /// Does nothing.
    public func didStartLoading(_ load: WebLoad) {}
    /// Does nothing.
    public func didFinishLoading(_ load: WebLoad) {}
    /// Does nothing.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {}
    /// Does nothing.
    public func didCancelLoading(_ load: WebLoad) {}
    /// Returns nil.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { nil }
}

extension WebContentViewModel {
    /// Loads a complete request with its method, headers and body. The previous load of the view, running or suspended,
    /// ends with `.cancelled` for its caller; it is not shown and does not count as finished or failed.
    @discardableResult
    public func load(_ request: Request, options: WebOptions = WebOptions()) -> WebLoad {
        load(request, options: options, placement: .append)
    }

    /// The current load; nil if it has ended or there is none.
    public var webLoad: WebLoad? { bindings[.webContent] }

    /// Ends the current load with `.cancelled` for its caller.
    public func cancelLoading() { bindings.cancel(.webContent) }

    func load(_ request: Request, options: WebOptions, placement: WebHistory.Placement) -> WebLoad {
        let load = WebLoad(request, options: options, placement: placement, for: self)
        load.register(bindings.set(load, for: .webContent))
        if options.startsImmediately { load.resume() }
        return load
    }

    // MARK: Settings

    /// The session of this view's loads; nil, the default, for `Session.forWebViews`. Applies to the next load.
    public var webSession: Session? {
        get { bindings[value: .webSession] }
        set { bindings[value: .webSession] = newValue }
    }

    /// The decoder that produces the bytes of the content and may reject a response; nil, the default, for the
    /// unchanged body. Applies to the next load.
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

// The history of pages loaded through Tern, and navigations.

extension WebContentViewModel {
    /// A Boolean value that indicates whether Tern loads the links, forms, reloads and history steps that the view
    /// reports to ``navigate(_:)``. False by default: the view loads them itself.
    public var loadsLinksThroughTern: Bool {
        get { bindings[value: .loadsLinks] ?? false }
        set { bindings[value: .loadsLinks] = newValue ? true : nil }
    }

    /// Decides about a navigation; call it from the view's delegate. A navigation through Tern starts before this call
    /// returns, with the transform of the current page.
    ///
    /// - Returns: A Boolean value that indicates whether the view must perform the navigation itself.
    public func navigate(_ navigation: WebNavigation) -> Bool {
        switch decide(navigation) ?? navigation.decision(loadsLinks: loadsLinksThroughTern, history: history) {
        case .loadInView: return true
        case .ignore: break
        case .loadThroughTern: loadThroughTern(navigation)
        }
        return false
    }

    private func loadThroughTern(_ navigation: WebNavigation) {
        let load: WebLoad? =
            switch navigation.kind {
            case .back: goBack()
            case .forward: goForward()
            case .reload: reload()
            case .link, .formSubmission, .other: nil
            }
        if load != nil { return }
        let options = WebOptions(transform: history.current?.options.transform ?? .none)
        self.load(navigation.request, options: options)
    }

    /// A Boolean value that indicates whether there is a page before the current one. While a page of the history
    /// loads, it counts as current.
    public var canGoBack: Bool { hasPreviousPage }

    /// A Boolean value that indicates whether there is a page after the current one.
    public var canGoForward: Bool { hasNextPage }

    /// Loads the page before the current one; returns nil if there is none. It becomes the current page when it is
    /// shown.
    ///
    /// A page that was the response to a POST is loaded with the same POST again, unless the response was a redirect to
    /// it.
    @discardableResult
    public func goBack() -> WebLoad? { visit(.back) }

    /// Loads the page after the current one; returns nil if there is none.
    @discardableResult
    public func goForward() -> WebLoad? { visit(.forward) }

    /// Loads the current page again; returns nil if there is none.
    @discardableResult
    public func reload() -> WebLoad? { visit(.none) }

    // The same under names that no web view has, such as WKWebView, whose own `canGoBack` and `goBack()` do not know
    // the pages loaded through Tern.

    /// The same as ``canGoBack``, for views with a property of that name.
    public var hasPreviousPage: Bool { history.entry(.back, pending: webLoad?.placement) != nil }

    /// The same as ``canGoForward``, for views with a property of that name.
    public var hasNextPage: Bool { history.entry(.forward, pending: webLoad?.placement) != nil }

    /// The same as ``goBack()``, for views with a method of that name.
    @discardableResult
    public func loadPreviousPage() -> WebLoad? { visit(.back) }

    /// The same as ``goForward()``, for views with a method of that name.
    @discardableResult
    public func loadNextPage() -> WebLoad? { visit(.forward) }

    /// The same as ``reload()``, for views with a method of that name.
    @discardableResult
    public func reloadPage() -> WebLoad? { visit(.none) }

    private func visit(_ step: WebHistory.Step) -> WebLoad? {
        history.entry(step, pending: webLoad?.placement).map {
            load($0.request, options: $0.options, placement: .visit($0.id))
        }
    }

    var history: WebHistory {
        get { bindings[value: .webHistory] ?? WebHistory() }
        set { bindings[value: .webHistory] = newValue }
    }
}

extension BindingKey<Bool> {
    fileprivate static var loadsLinks: Self { Self("loads links through Tern") }
}

extension BindingKey<WebHistory> {
    fileprivate static var webHistory: Self { Self("web history") }
}
