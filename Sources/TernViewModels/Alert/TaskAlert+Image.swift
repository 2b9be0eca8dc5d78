import Tern
public import TernImages

extension TaskAlert {
    /// The alert in English of a picture that could not be loaded; nil for a cancellation.
    ///
    /// A failure of the network reads as that of any task. For any other one `error` is of kind `.decoding`, and the
    /// `ImageError` its `underlying`.
    public init?(_ error: ImageError) {
        let root = error.root
        if let network = root.networkFailure {
            self.init(network)
            return
        }
        guard root.kind != .cancelled else { return nil }
        let failure = NetworkError(.decoding, reason: root.message, underlying: root)
        self.init(title: Self.title(of: root), message: Self.message(of: failure), error: failure)
    }

    private static func title(of error: ImageError) -> String {
        switch error.kind {
        case .invalidURL: "The Address Is Not Valid"
        case .source: "The Picture Could Not Be Read"
        case .notCached: "The Picture Is Not There Yet"
        case .limitExceeded, .outOfMemory: "The Picture Is Too Large"
        default: "The Picture Cannot Be Shown"
        }
    }
}

extension AlertViewModel {
    /// Presents the alert of a picture that could not be loaded, where there is one: for the network's failures that of
    /// `alert(for:)`, for a cancellation none.
    ///
    /// ```swift
    /// func imageLoadEnded(_ load: ImageLoad) {
    ///     if case .failure(let error)? = load.result { window.showAlert(for: error) }
    /// }
    /// ```
    public func showAlert(for error: ImageError) {
        let alert = error.root.networkFailure.map { self.alert(for: $0) } ?? TaskAlert(error)
        if let alert { showAlert(alert) }
    }
}

extension ImageError {
    /// The failure that is remembered, where this one only repeats it.
    fileprivate var root: ImageError {
        guard kind == .failedBefore, let before = underlying as? ImageError else { return self }
        return before.root
    }

    fileprivate var networkFailure: NetworkError? { kind == .network ? network : nil }
}
