import Tern

// Pages that were loaded through Tern, and the navigations that lead to more of them.

extension WebContentViewModel {
    /// Whether links, forms, reloads and steps in the history that the view reports to ``navigate(_:)`` are loaded through
    /// Tern. False by default: the view loads them itself.
    public var loadsLinksThroughTern: Bool {
        get { bindings[value: .loadsLinks] ?? false }
        set { bindings[value: .loadsLinks] = newValue ? true : nil }
    }

    /// To be asked by the view's delegate before a navigation. A navigation that Tern is to carry out starts within this
    /// call, with the transform of the page that is shown.
    ///
    /// - Returns: Whether the view is to carry it out itself.
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

    /// Whether there is a page before the current one. While a page of the history loads, it counts as the current one.
    public var canGoBack: Bool { history.entry(.back, pending: webLoad?.placement) != nil }

    /// Whether there is a page after the current one.
    public var canGoForward: Bool { history.entry(.forward, pending: webLoad?.placement) != nil }

    /// Loads the page before the current one; nil without one. It is the current one as soon as it is shown.
    ///
    /// A page that was the answer to a POST is asked for with the same POST again, unless the answer was a redirect to it.
    @discardableResult
    public func goBack() -> WebLoad? { visit(.back) }

    /// Loads the page after the current one; nil without one.
    @discardableResult
    public func goForward() -> WebLoad? { visit(.forward) }

    /// Loads the current page anew; nil without one.
    @discardableResult
    public func reload() -> WebLoad? { visit(.none) }

    private func visit(_ step: WebHistory.Step) -> WebLoad? {
        history.entry(step, pending: webLoad?.placement).map { load($0.request, $0.options, .visit($0.id)) }
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
