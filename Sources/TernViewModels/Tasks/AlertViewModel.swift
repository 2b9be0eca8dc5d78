public import Tern
public import TernImages

/// An object that presents an alert when a task fails.
///
/// ```swift
/// extension Window: AlertViewModel {
///     func showAlert(_ alert: TaskAlert) { present(alert.title, alert.message) }
/// }
///
/// window.bindAlert(to: task)
/// ```
///
/// Any number of tasks may be bound. Each shows at most one alert, and its binding ends with the task.
@MainActor
public protocol AlertViewModel: BindableView {
    /// Presents an alert. Called on the main actor after the task has failed.
    func showAlert(_ alert: TaskAlert)

    /// Returns the alert for an error, or nil to present nothing. The default implementation returns an English alert,
    /// and nil for a cancellation.
    func alert(for error: NetworkError) -> TaskAlert?
}

extension AlertViewModel {
    /// Returns the English alert for an error; nil for a cancellation.
    public func alert(for error: NetworkError) -> TaskAlert? { TaskAlert(error) }

    /// Presents an alert if the task fails or has failed. Binding the same task again replaces its binding; other tasks
    /// stay bound.
    @discardableResult
    public func bindAlert<Value: Sendable>(to task: SessionTask<Value>) -> ViewBinding {
        for binding in bindings.contents(of: .alert) where binding.task.map({ $0.isSame(as: task) }) ?? false {
            binding.end(.replaced)
        }
        let binding = ViewBinding(of: self, to: task)
        binding.register(bindings.add(binding, for: .alert))
        binding.drive { [weak self, weak binding] in
            var failure: NetworkError?
            do throws(NetworkError) {
                _ = try await task.value
            } catch {
                failure = error
            }
            // The end of the binding cancels this wait.
            guard let binding, binding.isActive else { return }
            binding.end(.finished)
            guard let self, let failure, let alert = self.alert(for: failure) else { return }
            self.showAlert(alert)
        }
        return binding
    }

    /// The bindings of the tasks that have not ended, in the order of the `bindAlert` calls.
    public var alertBindings: [ViewBinding] { bindings.contents(of: .alert) }

    /// Unbinds all tasks.
    public func unbindAlerts() { bindings.cancel(.alert) }
}

extension BindingKey<ViewBinding> {
    static var alert: Self { Self("alert") }
}

extension AnySessionTask {
    fileprivate func isSame(as other: some TaskHandle) -> Bool {
        id == other.id && sessionID == other.sessionID
    }
}

/// A description of a task's failure for the user.
public struct TaskAlert: Sendable, Hashable, Identifiable {
    /// Identifies a task and its session.
    public struct ID: Sendable, Hashable {
        private let session: Session.ID?
        private let task: TaskID?

        fileprivate init(_ error: NetworkError) {
            session = error.sessionID
            task = error.taskID
        }
    }

    /// The identity of the failed task.
    public let id: ID
    /// A short title that names the problem.
    public let title: String
    /// A sentence with the server and the cause. It contains no secrets.
    public let message: String
    /// The error of the task.
    public let error: NetworkError

    /// Creates an alert with your own texts.
    public init(title: String, message: String, error: NetworkError) {
        id = ID(error)
        self.title = title
        self.message = message
        self.error = error
    }

    /// Creates an English alert; nil for a cancellation, which needs no alert.
    ///
    /// The title depends on the kind of the error. The message is the error's reason and, for a rejected status, the
    /// status.
    public init?(_ error: NetworkError) {
        guard !error.isCancelled else { return nil }
        self.init(title: Self.title(of: error), message: Self.message(of: error), error: error)
    }

    /// Returns a Boolean value that indicates whether task, title and message are equal.
    public static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.title == right.title && left.message == right.message
    }

    /// Hashes the task, the title and the message.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(title)
        hasher.combine(message)
    }

    private static func title(of error: NetworkError) -> String {
        switch error.kind {
        case .dns, .connectionRefused, .connectionFailed, .proxy: "Cannot Connect"
        case .connectTimedOut, .idleTimedOut, .attemptTimedOut, .totalTimedOut: "The Server Took Too Long"
        case .connectionLost, .truncatedBody: "The Connection Was Lost"
        case .untrustedServer, .pinMismatch, .tls: "The Connection Is Not Secure"
        case .authentication: "Sign-In Failed"
        case .status: title(of: error.status)
        case .tooLarge, .malformedResponse, .contentType, .validation, .decoding, .redirect, .redirectLoop,
            .tooManyRedirects:
            "Unexpected Answer"
        case .fileSystem: "The File Could Not Be Saved"
        default: "The Request Failed"
        }
    }

    private static func title(of status: Int?) -> String {
        switch status {
        case 401, 403, 407: "Access Was Denied"
        case 404, 410: "Not Found"
        case 429, 503: "The Server Is Busy"
        case .some(500...599): "The Server Failed"
        default: "The Request Was Refused"
        }
    }

    static func message(of error: NetworkError) -> String {
        guard let first = error.reason.first else { return error.shortDescription }
        let sentence = first.uppercased() + error.reason.dropFirst()
        return sentence.hasSuffix(".") ? sentence : sentence + "."
    }
}

extension TaskAlert {
    /// Creates an English alert for an image that failed to load; nil for a cancellation.
    ///
    /// The alert for a network failure is the same as for any task. For other failures `error` is of kind `.decoding`,
    /// and its `underlying` is the `ImageError`.
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
    /// Presents the alert for an image that failed to load. A network failure uses `alert(for:)`; a cancellation
    /// presents nothing.
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
    /// The original failure, if this error repeats a remembered one.
    fileprivate var root: ImageError {
        guard kind == .failedBefore, let before = underlying as? ImageError else { return self }
        return before.root
    }

    fileprivate var networkFailure: NetworkError? { kind == .network ? network : nil }
}
