public import Observation
public import Tern

/// Web content as observable state, for a web view in SwiftUI and for tests.
@MainActor
@Observable
public final class ObservableWebContent: WebContentViewModel {
    /// The content to show; nil before the first load has succeeded.
    public private(set) var content: WebContent?
    /// A Boolean value that indicates whether a load has started and not ended.
    public private(set) var isLoading = false
    /// The progress of the load.
    public private(set) var progress = Session.Progress()
    /// The error of the last load; nil if it did not fail, or another load has started since.
    public private(set) var error: NetworkError?
    /// A closure that decides about navigations; nil, the default, leaves the decision to `loadsLinksThroughTern`.
    @ObservationIgnored public var decision: (@MainActor (WebNavigation) -> WebNavigation.Decision?)?
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without content.
    public init() {}

    /// Stores the content.
    public func showContent(_ content: WebContent) { self.content = content }
    /// Stores the progress.
    public func showLoadingProgress(_ progress: Session.Progress) { self.progress = progress }

    /// Sets `isLoading`, and removes the last error.
    public func didStartLoading(_ load: WebLoad) {
        isLoading = true
        error = nil
        progress = Session.Progress()
    }

    /// Clears `isLoading`.
    public func didFinishLoading(_ load: WebLoad) { isLoading = false }

    /// Clears `isLoading`, and stores the error.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {
        isLoading = false
        self.error = error
    }

    /// Clears `isLoading`.
    public func didCancelLoading(_ load: WebLoad) { isLoading = false }

    /// Calls `decision`.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { decision?(navigation) }
}
