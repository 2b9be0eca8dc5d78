import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides whether a file of another program is the beginning of the server's file. Pure.
struct ForeignPartRule {
    enum Decision: Equatable {
        /// The file is continued. The size is that of the whole file.
        case take(size: Int64)
        /// The file is whole.
        case complete
        case leave(String)
    }

    /// The length of the file here, in bytes.
    let length: Int64
    /// The time at which the file here was created; nil if it is not known.
    let birth: Date?
    /// The time of its last change; nil if it is not known.
    var modified: Date?
    let now: Date
    let requiresProof: Bool
    /// The size that the caller expects; nil for any.
    var expectedSize: Int64?

    /// The precision of the times in header fields, twice.
    private static let precision: TimeInterval = 2

    /// Decides by the response to a request with the method HEAD.
    func decision(on head: ResponseHead) -> Decision {
        guard head.contentCodings.isEmpty, let size = head.contentLength else {
            return .leave("the server does not state the size of its file")
        }
        if let expectedSize, expectedSize != size {
            return .leave("the server's file has \(size) bytes, not \(expectedSize)")
        }
        // Applies to a complete file, too: without a validator, nothing says that it is the server's.
        guard !StrongValidators(head).isEmpty else { return .leave("the server gives no strong validator") }
        guard length <= size else { return .leave("it has \(length) bytes, and the server's file has \(size)") }
        if requiresProof, let doubt = doubt(head) { return .leave(doubt) }
        return length == size ? .complete : .take(size: size)
    }

    /// Returns the reason why the server's file can have changed since the file here was begun; nil if it has not.
    private func doubt(_ head: ResponseHead) -> String? {
        guard let changed = head.headers["Last-Modified"].flatMap({ HTTPDate.date(from: $0) }),
            let date = head.headers["Date"].flatMap({ HTTPDate.date(from: $0) })
        else { return "the server does not say when its file was changed" }
        guard let birth else { return "the file system does not know when the file was begun" }
        if birth > now { return "the clock has gone back since the file was begun" }
        // A move from another file system creates the file again, and leaves the time of its last change.
        if let modified, modified.addingTimeInterval(Self.precision) < birth {
            return "the file was moved from another file system, which does not say when it was begun"
        }
        // Each difference is that of one clock.
        let isOlder = date.timeIntervalSince(changed) >= now.timeIntervalSince(birth) + Self.precision
        return isOlder ? nil : "the server's file can have changed since the file here was begun"
    }
}

extension DurableDownload {
    // MARK: The part of another program

    /// Makes a file at the destination the part of this download, if the options and the server allow it.
    func takeForeignPart(
        _ found: DownloadPart.Found, of part: DownloadPart
    ) async throws(NetworkError) -> DownloadPart.Found {
        guard options.foreignPart != .ignored, found.length == nil, found.problem == nil,
            let file = part.destinationIdentity(), file.length > 0
        else { return found }
        let url = try attempts.firstRequest.get().urlString
        let digest = ControlFile.digest(of: url)
        if let control = found.control, control.urlDigest != digest { return found }
        guard let head = try await foreignHead() else { return found }
        let rule = ForeignPartRule(
            length: file.length, birth: PosixFileSystem.birthTime(of: part.destination), modified: file.modified,
            now: Date(),
            requiresProof: options.foreignPart == .continuedIfUnchanged, expectedSize: options.expectedSize)
        let decision = rule.decision(on: head)
        if case .leave(let reason) = decision {
            attempts.record(.leftForeignPart(reason))
            return found
        }
        let control = ControlFile(url: url, partialFile: part.names.partial, of: head, size: head.contentLength)
        let length = try await attempts.fileCall(
            "the file at the destination cannot be continued", try await part.takeDestination(control))
        attempts.record(.tookForeignPart(bytes: length))
        var taken = DownloadPart.Found()
        (taken.control, taken.length, taken.isComplete) = (control, length, decision == .complete)
        return taken
    }

    /// Returns the head of the server's file, in as many attempts as it takes; nil if the server does not answer HEAD.
    private func foreignHead() async throws(NetworkError) -> ResponseHead? {
        while true {
            var request = try requests.request(nil)
            request.method = .head
            attempts.begin()
            switch await attempts.session.task(for: request, startsImmediately: true).end {
            case .success(let response): return response.head
            case .failure(let error):
                // A server can refuse HEAD and allow GET, for example with 403 for a URL that is signed for GET only.
                if error.kind == .status, let status = error.status, !options.retry.policy.statuses.contains(status) {
                    attempts.record(.leftForeignPart("the server answers HEAD with \(status)"))
                    return nil
                }
                schedule = try await attempts.next(
                    schedule, after: RetrySchedule.Failure(error: error, request: try attempts.request.get()))
            }
        }
    }
}
