public import Tern

/// A task's failure as a person reads it.
public struct TaskAlert: Sendable, Hashable, Identifiable {
    /// The task and its session.
    public struct ID: Sendable, Hashable {
        private let session: Session.ID?
        private let task: TaskID?

        fileprivate init(_ error: NetworkError) {
            session = error.sessionID
            task = error.taskID
        }
    }

    /// Which task failed.
    public let id: ID
    /// A few words: what went wrong.
    public let title: String
    /// A sentence: with whom, and why. No secret is in it.
    public let message: String
    /// The error itself.
    public let error: NetworkError

    /// An alert with words of the caller's own.
    public init(title: String, message: String, error: NetworkError) {
        id = ID(error)
        self.title = title
        self.message = message
        self.error = error
    }

    /// The alert in English; nil for a cancellation, which nobody needs to be told of.
    ///
    /// The title goes by the error's kind, the message is its reason, and, for a refused status, the status.
    public init?(_ error: NetworkError) {
        guard !error.isCancelled else { return nil }
        self.init(title: Self.title(of: error), message: Self.message(of: error), error: error)
    }

    /// Equal when task and words are.
    public static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.title == right.title && left.message == right.message
    }

    /// By task and words.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(title)
        hasher.combine(message)
    }

    private static func title(of error: NetworkError) -> String {
        switch error.kind {
        case .dns, .connectionRefused, .connectionFailed, .proxy: "Cannot Connect"
        case .connectTimedOut, .idleTimedOut, .totalTimedOut: "The Server Took Too Long"
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
