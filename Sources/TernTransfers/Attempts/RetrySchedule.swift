public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The rules by which a durable download or upload is taken up again after a failure.
///
/// A failure is temporary by the rules of ``Tern/RetryPolicy``: its statuses and kinds, its delays and its bound for
/// `Retry-After`. An attempt that moved new bytes sets the count of failures back, so that a transfer over a bad
/// connection ends as long as it proceeds. A wait for the network is no attempt.
public struct TransferRetry: Sendable {
    /// The failures that are temporary, and the delays. Its `limit` is the number of attempts in a row that move no new
    /// byte and are followed by another one: 9 by default. The longest `Retry-After` is 2 minutes by default.
    public var policy = RetryPolicy()
    /// The number of attempts in all; nil, the default, for any number.
    public var maximumAttempts: Int?
    /// The time in which at least one new byte must move, without the waits for the network. 10 minutes by default; nil
    /// for no limit.
    public var timeWithoutProgress: Duration? = .seconds(600)
    /// The time of the whole transfer; nil, the default, for no limit.
    public var maximumTime: Duration?
    /// The time of each wait for the network; nil, the default, for no limit. `.zero` turns the waits off.
    ///
    /// During the wait, the host is tried again after 1, 2, 4 and more seconds, up to every 30 seconds, because it can
    /// have a route although there is no default route. A trial is no attempt.
    public var offlineWait: Duration?
    /// Whether the transfer ends without a network, because its queue waits for it.
    var endsOffline = false

    /// Creates rules with the defaults of their properties.
    public init() {
        policy.limit = 9
        // The limit of one attempt: the next one continues.
        policy.kinds.insert(.totalTimedOut)
        policy.maximumRetryAfter = .seconds(120)
    }
}

/// Decides after each failed attempt of a transfer: try again, and when, or give up. Pure.
struct RetrySchedule: Sendable {
    /// The next step after a failure.
    enum Action: Sendable, Equatable {
        case retry(after: Duration)
        /// Waits for the network, and tries again after this time in any case.
        case waitForNetwork(upTo: Duration)
        /// Waits for a free descriptor, and tries again after this time.
        case waitForDescriptor(Duration)
        /// Asks the caller for a new URL.
        case replaceURL
        /// Ends the transfer. The reason is added to the error.
        case giveUp(String?)
        /// Ends the transfer because there is no network, for which its queue waits.
        case endOffline
    }

    /// The facts on a failed attempt.
    struct Failure {
        var error: NetworkError
        /// The request of the attempt.
        var request: Request
        /// Whether the attempt brought bytes that the download did not have before.
        var hasNewBytes = false
        /// Whether the attempt moved bytes, of which it is not known whether they count: the server can have received
        /// none, and a file that changed begins anew. They restart the time without progress alone, so that a server
        /// that takes nothing is not asked for ever.
        var hasMovedBytes = false
        /// False if the machine is known to have no network and no route to the host.
        var hasNetwork = true
        /// Whether the caller can give a new URL.
        var canReplaceURL = false
        /// The time since the start of the transfer.
        var elapsed = Duration.zero
        /// A number between 0 and 1 from which the delay is computed.
        var random = 0.0
        /// The time to compare a date in `Retry-After` with.
        var now = Date()
        /// Whether the failure is temporary although its kind is not.
        var isTemporary = false
    }

    private let rules: TransferRetry
    /// The number of attempts in a row that brought no new byte.
    private var failures = 0
    /// The number of failed attempts, without those that only waited for the network. ``DurableAttempts`` sets it
    /// before each decision, so that all segments of a download count together.
    var failedAttempts = 0
    /// The number of URLs in a row with which no byte came.
    private var replacements = 0
    /// The time of the last progress, without the waits for the network.
    private var lastProgress = Duration.zero
    private var offlineTime = Duration.zero
    /// The trials of the wait for the network or a descriptor, and the time at which it began; nil if the last failure
    /// was another one.
    private var trials: (delays: RouteTrials, start: Duration)?

    /// The statuses with which servers refuse a signed URL that has expired.
    private static let refusals: Set = [400, 401, 403, 410]
    /// The number of new URLs in a row that are tried. The second covers one that expired between its making and its
    /// use.
    private static let mostReplacements = 2
    /// The failures before any byte of a request was sent. Without a network, they are its consequence.
    private static let connectKinds: Set<NetworkError.Kind> = [.dns, .connectionFailed, .connectTimedOut, .proxy]

    init(_ rules: TransferRetry) { self.rules = rules }

    /// Records a wait for the network, which counts for no limit but that of the whole time.
    mutating func addOfflineTime(_ time: Duration) { offlineTime += time }

    /// Records progress: new bytes, or other work, such as hashing a part or waiting for another download. Restarts the
    /// count of failures and the time without progress.
    ///
    /// - Parameter elapsed: The time since the start of the transfer.
    mutating func recordProgress(at elapsed: Duration) {
        (failures, replacements) = (0, 0)
        lastProgress = elapsed - offlineTime
    }

    /// Returns whether an error is the consequence of a missing network.
    static func isOffline(_ error: NetworkError, hasNetwork: Bool) -> Bool {
        !hasNetwork && connectKinds.contains(error.kind)
    }

    private mutating func waitForNetwork(at elapsed: Duration) -> Action {
        guard let delay = nextTrial(at: elapsed, within: rules.offlineWait) else {
            return .giveUp("the network was unreachable and did not return in time")
        }
        return .waitForNetwork(upTo: delay)
    }

    /// Waits for a lack that has nothing to do with the server or the file: it counts for no limit but that of the
    /// whole time.
    private mutating func waitForDescriptor(at elapsed: Duration) -> Action {
        guard let delay = nextTrial(at: elapsed, within: nil) else {
            return .giveUp("no descriptor became free in time")
        }
        return .waitForDescriptor(delay)
    }

    /// Returns the time before the next trial of what failed for a reason outside of the transfer; nil if none is left.
    private mutating func nextTrial(at elapsed: Duration, within limit: Duration?) -> Duration? {
        var wait = trials ?? (RouteTrials(), elapsed)
        let rest = [limit.map { $0 - (elapsed - wait.start) }, rules.maximumTime.map { $0 - elapsed }]
            .compactMap(\.self).min()
        if let rest, rest <= .zero { return nil }
        let delay = wait.delays.next()
        trials = wait
        return rest.map { min($0, delay) } ?? delay
    }

    mutating func decide(_ failure: Failure) -> Action {
        let error = failure.error
        let isOffline = Self.isOffline(error, hasNetwork: failure.hasNetwork)
        if isOffline, rules.endsOffline { return .endOffline }
        if let limit = rules.maximumTime, failure.elapsed >= limit {
            return .giveUp("the time limit of \(limit.secondsText) is reached")
        }
        if isOffline, rules.offlineWait != .zero { return waitForNetwork(at: failure.elapsed) }
        if error.isOutOfDescriptors { return waitForDescriptor(at: failure.elapsed) }
        trials = nil
        failedAttempts += 1
        let active = failure.elapsed - offlineTime
        if failure.hasNewBytes {
            recordProgress(at: failure.elapsed)
        } else {
            failures += 1
            if failure.hasMovedBytes { lastProgress = active }
        }
        if let limit = rules.maximumAttempts, failedAttempts >= limit {
            return .giveUp("the limit of attempts is reached")
        }
        if failure.canReplaceURL, error.kind == .status, let status = error.status, Self.refusals.contains(status) {
            guard replacements < Self.mostReplacements else { return .giveUp("a new URL was refused, too") }
            replacements += 1
            return .replaceURL
        }
        var policy = rules.policy
        if failure.isTemporary { policy.kinds.insert(error.kind) }
        let decision = policy.decision(
            after: error, of: failure.request, failures: max(1, failures), now: failure.now, random: failure.random)
        guard case .retry(let delay) = decision else {
            let asked = error.response.flatMap { RetryAfter.delay(in: $0.headers, now: failure.now) }
            guard let asked, policy.admits(error, of: failure.request, failures: max(1, failures)) else {
                return .giveUp(nil)
            }
            return .giveUp(
                "the server asks to wait \(asked.secondsText), longer than the limit of \(policy.maximumRetryAfter.secondsText)"
            )
        }
        if let limit = rules.timeWithoutProgress, active + delay - lastProgress > limit {
            return .giveUp("no byte moved within \(limit.secondsText)")
        }
        if let limit = rules.maximumTime, failure.elapsed + delay > limit {
            return .giveUp("the time limit of \(limit.secondsText) leaves no time for another attempt")
        }
        return .retry(after: delay)
    }
}

extension Duration {
    /// The seconds with at most three decimals, such as `2.5 seconds`.
    var secondsText: String { "\((self / .seconds(1) * 1_000).rounded() / 1_000) seconds" }
}
