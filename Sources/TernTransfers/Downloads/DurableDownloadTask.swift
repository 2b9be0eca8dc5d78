public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session.Progress {
    /// Returns the progress of several durable downloads together, like `combined(of:)` for the tasks of a session.
    public static func combined(of downloads: [DurableDownloadTask]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream { combined(of: downloads.lazy.map(\.progressNow)) }
    }
}

/// A handle to a durable download: its progress, its trace and its value.
///
/// A handle is a small value that can be copied and sent anywhere. Releasing it cancels nothing.
public struct DurableDownloadTask: Sendable {
    let download: DurableDownload

    /// The finished download, awaited by any number of callers. Cancelling the caller ends only its wait, with an error
    /// of kind `.cancelled`. Call ``cancel()`` to end the download.
    ///
    /// - Throws: The error of the last attempt. Its text states the number of attempts, the time, and the bytes that
    ///   are kept. With ``Tern/NetworkError/attempts`` and ``Tern/NetworkError/attemptsDuration``.
    public var value: DurableDownloadResult {
        get async throws(NetworkError) { try await download.attempts.outcome.value() }
    }

    /// The progress from now on: at most about 100 elements a second, and always the last one. It begins with the bytes
    /// that an earlier download left. A download that starts over begins a new attempt:
    /// ``Tern/Session/Progress/attempt``.
    public var progress: AsyncStream<Session.Progress> { download.attempts.meter.downloadStream }

    /// The present progress.
    public var progressNow: Session.Progress { download.attempts.meter.download }

    /// The state: `.running`, `.suspended` from ``pause()`` to ``resume()``, and `.completed`, `.failed` or `.cancelled`
    /// at the end.
    public var state: Session.TaskState { download.attempts.taskState }

    /// The states from now on. The current one comes first, and the terminal one is never lost.
    public var states: AsyncStream<Session.TaskState> { download.attempts.states.stream() }

    /// The decisions so far, oldest first: where the download continued, and why it started over. The newest 1,000 are
    /// kept.
    public var trace: [DurableDownloadEvent] { download.attempts.trace }

    /// The head of the newest response to the download, with the media type, the time of the last change and the entity
    /// tag of the file; nil before the first one, and if an earlier process had received the whole file. A download
    /// that continues has that of a part (206), and one in segments that of one of them.
    public var latestResponse: ResponseHead? { download.requests.latestResponse.withLock { $0 } }

    /// The reason for which the download moves no bytes at present; nil while it moves bytes, and after its end.
    public var waitsFor: TransferWait? { download.attempts.wait }

    /// The limit on the rate, in bytes per second; nil for none. Setting it acts at once, and a value below 1 counts as
    /// 1.
    public var throttle: Int? {
        get { download.requests.throttle.rate }
        nonmutating set { download.requests.throttle.rate = newValue }
    }

    /// Pauses the download until ``resume()``. Has no effect on one that is paused or has ended.
    ///
    /// A paused download holds no connection, no timer and no file, and its time limits stop. Its part stays beside the
    /// destination, unless nothing can continue it. The pause is not stored: a later download to the same destination,
    /// in this process or another one, continues the part. A download whose last byte is written when the pause comes
    /// ends. A paused download whose handles are all released leaves its part, and ends.
    public func pause() { download.attempts.pause() }

    /// Continues a paused download at once, also if it was paused in a wait before its next attempt. Has no effect on
    /// one that is not paused.
    ///
    /// The download fails with ``Tern/NetworkError/Kind/downloadInProgress``, or waits, if another one has its
    /// destination meanwhile: ``DurableDownloadOptions/contention``.
    public func resume() { download.resume() }

    /// Ends the download with an error of kind `.cancelled`, also while it is paused. The part stays beside the destination, and the next
    /// download to the same destination continues it. A part that nothing can continue, because the server gave no
    /// validator, is removed.
    public func cancel() { download.attempts.cancel() }

    /// Ends the download like ``cancel()``, and removes its part. Returns when that is done. A file that has its name
    /// stays.
    ///
    /// - Throws: An error of kind `.fileSystem` if the part cannot be removed; one of kind
    ///   ``Tern/NetworkError/Kind/downloadInProgress`` if another download has begun to continue it.
    public func discard() async throws(NetworkError) { try await download.discard() }
}

extension DurableDownloadTask: CustomStringConvertible, CustomReflectable {
    /// The request, without the values of its query, and the destination.
    public var description: String { download.description }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A finished durable download.
public struct DurableDownloadResult: Sendable, Hashable {
    /// The file. With `.keepBoth`, it differs from the destination.
    public let file: URL
    /// The size of the file in bytes.
    public let bytes: Int64
    /// The number of bytes of the file that this process received, some of them more than once if the download started
    /// over.
    public let receivedBytes: Int64
    /// The number of attempts of this process; 0 if an earlier one had received everything.
    public let attempts: Int
    /// The time from the start in this process to the end, without pauses.
    public let duration: Duration
    /// The digest by which the file was verified; nil if neither the caller nor the server stated one.
    public let digest: FileDigest?
    /// The decisions of the download, oldest first.
    public let trace: [DurableDownloadEvent]
}

/// A decision of a durable download, for its trace. New cases can be added, so a switch needs a `default`.
public enum DurableDownloadEvent: Sendable, Hashable {
    /// The download began from the first byte.
    case started
    /// The download continued after this many bytes of an earlier process, or of an attempt that ended.
    case continued(at: Int64)
    /// The bytes so far were discarded, and the download began from the first byte.
    case startedOver(StartOverReason, discarded: Int64)
    /// The file is received in this many segments.
    case segmented(Int)
    /// An attempt failed. The text is that of the error.
    case failed(String)
    /// The next attempt began after this delay.
    case waited(Duration)
    /// The download waited for the network, or for the time of the next trial.
    case waitedForNetwork
    /// The caller paused the download.
    case paused
    /// The caller continued the download after a pause.
    case resumed
    /// The caller gave a new URL.
    case replacedURL
    /// The download waited for another one with the same destination.
    case waitedForOtherDownload
    /// Another download of the same URL finished the file.
    case finishedByOtherDownload
    /// A file of another program at the destination, of this many bytes, became the part of the download.
    case tookForeignPart(bytes: Int64)
    /// A file of another program at the destination was not continued, for this reason.
    case leftForeignPart(String)
    /// An earlier process had received the whole file.
    case foundWhole
    /// The file has the expected digest.
    case verified(FileDigest)
}

extension DurableDownloadEvent: DurableEvent {
    static var isUpload: Bool { false }
    static var urlReplacement: Self? { .replacedURL }
}

extension DurableDownloadEvent: CustomStringConvertible {
    /// A sentence, for logs.
    public var description: String {
        switch self {
        case .started: "begins with the first byte"
        case .continued(let offset): "continues after \(offset) bytes"
        case .startedOver(let reason, let count): "starts over without the \(count) bytes so far: \(reason.words)"
        case .segmented(let count): "receives \(count) segments"
        case .failed(let error): "an attempt failed: \(error)"
        case .waited(let delay): "tries again after \(delay)"
        case .waitedForNetwork: "waits for the network"
        case .paused: "is paused"
        case .resumed: "is continued after a pause"
        case .replacedURL: "continues with a new URL"
        case .waitedForOtherDownload: "waits for another download with the same destination"
        case .finishedByOtherDownload: "another download has finished the file"
        case .tookForeignPart(let bytes): "continues the existing file of \(bytes) bytes"
        case .leftForeignPart(let reason): "does not continue the existing file: \(reason)"
        case .foundWhole: "an earlier download has received the whole file"
        case .verified(let digest): "the file has the digest \(digest)"
        }
    }
}

extension StartOverReason {
    fileprivate var words: String {
        switch self {
        case .fileChanged: "the file has changed"
        case .rangeIgnored: "the server sent the whole file"
        case .wrongRange: "the server sent another range"
        case .rangeNotSatisfiable: "the server has no bytes after them"
        case .rangeRefused: "the server refuses to send the rest"
        case .noValidator: "the server does not say which version they are of"
        case .encoded: "the server compressed them"
        case .partMissing: "the partial file is missing or has another length"
        case .controlInvalid: "the control file is not valid"
        case .otherURL: "they are of another URL"
        }
    }
}

/// The reason why a download started over although there was a part.
public enum StartOverReason: String, Sendable, Hashable {
    /// The file on the server is another version.
    case fileChanged
    /// The server sent the whole file, although it is the same version.
    case rangeIgnored
    /// The server sent another range than the one that it was asked for, or did not say which.
    case wrongRange
    /// The server has no bytes after the part.
    case rangeNotSatisfiable
    /// The server refuses requests for the rest, which it may not understand: with 304, 400, 406, 412, 417, 428, 431 or
    /// 501, or four times in a row with any status.
    case rangeRefused
    /// The server gave no validator that proves that the file is the same.
    case noValidator
    /// The server compressed the body although it was asked not to. A part of such a body cannot be continued.
    case encoded
    /// The partial file is missing or has a length that does not fit.
    case partMissing
    /// The control file is not valid.
    case controlInvalid
    /// The caller asked for it: the part was that of another URL.
    case otherURL
}
