public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session.Progress {
    /// Returns the progress of several durable uploads together, like `combined(of:)` for the tasks of a session. The sum
    /// does not go back: it stands still until an upload that began again has passed it. The total is known at once: it
    /// is that of the files.
    public static func combined(of uploads: [DurableUploadTask]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream {
            for upload in uploads where upload.progressNow.totalBytes == nil { await upload.upload.measure() }
            return combined(of: uploads.lazy.map(\.progressNow))
        }
    }
}

/// A handle to a durable upload: its progress, its trace and its value.
///
/// A handle is a small value that can be copied and sent anywhere. Releasing it cancels nothing.
public struct DurableUploadTask: Sendable {
    let upload: any RunningUpload

    /// The finished upload, awaited by any number of callers. Cancelling the caller ends only its wait, with an error
    /// of kind `.cancelled`. Call ``cancel()`` to end the upload.
    ///
    /// - Throws: The error of the last attempt. Its text states the number of attempts, the time, and the bytes that
    ///   the server has.
    public var value: DurableUploadResult {
        get async throws(NetworkError) { try await upload.attempts.outcome.value() }
    }

    /// The progress from now on: at most about 100 elements a second, and always the last one. An upload by a protocol
    /// begins with the bytes that the server has, and does not go back.
    ///
    /// A ``WholeUpload`` counts the bytes of the file, without those of a form around it. Its progress stays while it
    /// waits after a failure. Each further attempt begins a new ``Tern/Session/Progress/attempt`` with no byte, so that
    /// the fraction goes back to 0; the total stays.
    public var progress: AsyncStream<Session.Progress> { upload.attempts.meter.uploadStream }

    /// The present progress.
    public var progressNow: Session.Progress { upload.attempts.meter.upload }

    /// The decisions so far, oldest first. The newest 1,000 are kept.
    public var trace: [DurableUploadEvent] { upload.attempts.trace }

    /// The reason for which the upload moves no bytes at present; nil while it moves bytes, and after its end.
    public var waitsFor: TransferWait? { upload.attempts.wait }

    /// The state: `.running`, `.suspended` from ``pause()`` to ``resume()``, and `.completed`, `.failed` or `.cancelled`
    /// at the end.
    public var state: Session.TaskState { upload.attempts.taskState }

    /// The states from now on. The current one comes first, and the terminal one is never lost.
    public var states: AsyncStream<Session.TaskState> { upload.attempts.states.stream() }

    /// Pauses the upload until ``resume()``. Has no effect on one that is paused or has ended.
    ///
    /// A paused upload holds no connection, no timer and no file, and its time limits stop. The pause is not stored: a
    /// later upload of the file to the same place, in this process or another one, starts without it, and continues what
    /// the server has. A paused upload whose handles are all released ends. A ``WholeUpload`` begins again with the first
    /// byte, when it is resumed and in a later call.
    public func pause() { upload.attempts.pause() }

    /// Continues a paused upload at once. By a protocol, the server is asked how much it has; a ``WholeUpload`` begins
    /// again. Has no effect on one that is not paused.
    ///
    /// The upload fails with ``Tern/NetworkError/Kind/uploadInProgress`` if another one of the file to the same place has
    /// begun meanwhile, and with `.requestBody` if the file of a ``WholeUpload`` has changed.
    public func resume() { upload.resume() }

    /// Ends the upload with an error of kind `.cancelled`, also while it is paused. The next upload of the file to the
    /// same place continues it; a ``WholeUpload`` begins again with the first byte.
    public func cancel() { upload.attempts.cancel() }
}

extension DurableUploadTask: CustomStringConvertible, CustomReflectable {
    /// The path of the file, and the place, without the values of its query.
    public var description: String { upload.description }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A finished durable upload.
public struct DurableUploadResult: Sendable {
    /// The URL of the upload on the server. Knowing it is often enough to read or change the upload. For a
    /// ``WholeUpload``, the `Location` of a response with status 201, or else the URL of the request; without its query,
    /// which can hold a signature.
    public let url: URL
    /// The size of the file in bytes.
    public let bytes: Int64
    /// The number of bytes of the file that this process sent, some of them more than once after a failure.
    public let sentBytes: Int64
    /// The number of attempts of this process.
    public let attempts: Int
    /// The time from the start in this process to the end, without pauses.
    public let duration: Duration
    /// The last response, with its body; nil if it was lost, and the server said later that it has the whole file.
    public let response: Response<Data>?
    /// The decisions of the upload, oldest first.
    public let trace: [DurableUploadEvent]
}

extension DurableUploadResult: CustomStringConvertible, CustomReflectable {
    /// The number of bytes, of attempts, and the time. The URL is not shown.
    public var description: String { "\(bytes) bytes in \(attempts) attempts, \(duration)" }

    /// An empty mirror. Without it, `dump` would show the URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A decision of a durable upload, for its trace. New cases can be added, so a switch needs a `default`.
public enum DurableUploadEvent: Sendable, Hashable {
    /// The server created an upload, and has no byte yet.
    case created
    /// The first attempt of an upload in one request began.
    case started
    /// The upload continued after this many bytes that the server has.
    case continued(at: Int64)
    /// The upload so far could not be continued, and another one began with the first byte.
    case startedOver(UploadStartOverReason)
    /// An attempt failed. The text is that of the error.
    case failed(String)
    /// The next attempt began after this delay.
    case waited(Duration)
    /// The upload waited for the network, or for the time of the next trial.
    case waitedForNetwork
    /// The caller gave a new URL.
    case replacedURL
    /// The caller paused the upload.
    case paused
    /// The caller continued the upload after a pause.
    case resumed
    /// The server had the whole file already.
    case foundComplete
}

extension DurableUploadEvent: DurableEvent {
    static var isUpload: Bool { true }
    static var urlReplacement: Self? { .replacedURL }
}

extension DurableUploadEvent: CustomStringConvertible {
    /// A sentence, for logs.
    public var description: String {
        switch self {
        case .created: "begins with the first byte, by a protocol"
        case .started: "begins with the first byte, in one request"
        case .continued(let offset): "continues after \(offset) bytes"
        case .startedOver(let reason): "starts over: \(reason.words)"
        case .failed(let error): "an attempt failed: \(error)"
        case .waited(let delay): "tries again after \(delay)"
        case .waitedForNetwork: "waits for the network"
        case .replacedURL: "continues with a new URL"
        case .paused: "is paused"
        case .resumed: "is continued after a pause"
        case .foundComplete: "the server has the whole file already"
        }
    }
}

extension UploadStartOverReason {
    fileprivate var words: String {
        switch self {
        case .fileChanged: "the file has changed"
        case .gone: "the server does not have the upload any more"
        case .otherUpload: "the server has an upload of another file"
        case .controlInvalid: "the control file is not valid, or of another endpoint"
        case .notResumable: "nothing of an upload in one request can be continued"
        }
    }
}

/// The reason why an upload started over although there was one.
public enum UploadStartOverReason: String, Sendable, Hashable {
    /// The file has changed since.
    case fileChanged
    /// The server does not have the upload any more.
    case gone
    /// The server has an upload that is not of this file.
    case otherUpload
    /// The control file is not valid, or belongs to another endpoint.
    case controlInvalid
    /// The attempt before, of this process or an earlier one, sent the file in one request: ``WholeUpload``.
    case notResumable
}
