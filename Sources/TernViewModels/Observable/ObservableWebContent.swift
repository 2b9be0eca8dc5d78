public import Observation
public import Tern

/// Web content to be observed: for a web view of SwiftUI's, and for tests.
@MainActor
@Observable
public final class ObservableWebContent: WebContentViewModel {
    /// What is to be shown; nil before the first load has ended well.
    public private(set) var content: WebContent?
    /// Whether a load has started and not ended.
    public private(set) var isLoading = false
    /// How far it is.
    public private(set) var progress = Session.Progress()
    /// Why the last load failed; nil when it did not, or another has started since.
    public private(set) var error: NetworkError?
    /// Asked about navigations; nil, the default, leaves them to `loadsLinksThroughTern`.
    @ObservationIgnored public var decision: (@MainActor (WebNavigation) -> WebNavigation.Decision?)?
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// No content.
    public init() {}

    /// Keeps the content.
    public func showContent(_ content: WebContent) { self.content = content }
    /// Keeps the progress.
    public func showLoadingProgress(_ progress: Session.Progress) { self.progress = progress }

    /// Sets `isLoading`, and forgets the last error.
    public func didStartLoading(_ load: WebLoad) {
        isLoading = true
        error = nil
        progress = Session.Progress()
    }

    /// Clears `isLoading`.
    public func didFinishLoading(_ load: WebLoad) { isLoading = false }

    /// Clears `isLoading`, and keeps the error.
    public func didFailLoading(_ load: WebLoad, _ error: NetworkError) {
        isLoading = false
        self.error = error
    }

    /// Clears `isLoading`.
    public func didCancelLoading(_ load: WebLoad) { isLoading = false }

    /// Asks `decision`.
    public func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { decision?(navigation) }
}
