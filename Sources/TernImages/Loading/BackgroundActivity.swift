import Dispatch

#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Foundation
#endif

/// Time that the system grants a load while the app is in the background, until the load ends or the system takes it back.
final class BackgroundActivity: Sendable {
    /// Asks the system for time, with a reason for its logs. The system calls the closure on a thread of its own: with false
    /// when it grants the time, which lasts until the closure returns, and with true when it grants none, or takes it back.
    typealias System = @Sendable (_ reason: String, _ body: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    /// The system of this process; nil where no process is suspended in the background.
    static var system: System? {
        #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
        { reason, body in ProcessInfo.processInfo.performExpiringActivity(withReason: reason, using: body) }
        #else
        nil
        #endif
    }

    private let ended = DispatchSemaphore(value: 0)

    /// Asks for time.
    init(_ system: System) {
        system("loading an image") { [ended] isExpired in
            if isExpired { ended.signal() } else { ended.wait() }
        }
    }

    /// Gives the time back.
    func end() { ended.signal() }
}
