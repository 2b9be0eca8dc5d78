public import Tern

/// A navigation that a web view is about to make: a tapped link, a form, a reload.
public struct WebNavigation: Sendable {
    /// What led to it.
    public enum Kind: Sendable, Hashable {
        /// A link was activated.
        case link
        /// A form was submitted.
        case formSubmission
        /// The page is loaded anew.
        case reload
        /// One page back in the history.
        case back
        /// One page forward in the history.
        case forward
        /// All else: content that was handed to the view, scripts, frames.
        case other
    }

    /// Who carries a navigation out.
    public enum Decision: Sendable, Hashable {
        /// Tern loads it, and the view is shown the result.
        case loadThroughTern
        /// The view itself.
        case loadInView
        /// Nobody: it does not happen.
        case ignore
    }

    /// What led to it.
    public let kind: Kind
    /// What is to be loaded: method, headers and body, as far as the toolkit tells them.
    public let request: Request
    /// Whether the whole page is to change, and not a frame of it. True by default.
    public let isMainFrame: Bool

    /// A navigation as a toolkit's delegate reports it.
    public init(_ kind: Kind, _ request: Request, isMainFrame: Bool = true) {
        self.kind = kind
        self.request = request
        self.isMainFrame = isMainFrame
    }

    /// The decision where the view's own hook makes none.
    ///
    /// Frames, and what is handed to the view, are the view's affair; so are a jump within the page that is shown, and steps
    /// to pages that Tern has not loaded.
    func decision(loadsLinks: Bool, history: WebHistory) -> Decision {
        guard loadsLinks, isMainFrame else { return .loadInView }
        let isOurs =
            switch kind {
            case .other: false
            case .link: request.fragment == nil || request.urlString != history.current?.urlString
            case .formSubmission: true
            case .reload: history.current != nil
            case .back: history.entry(.back) != nil
            case .forward: history.entry(.forward) != nil
            }
        return isOurs ? .loadThroughTern : .loadInView
    }
}
