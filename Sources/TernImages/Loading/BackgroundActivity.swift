#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Dispatch
import Foundation

/// Time that the system grants a load while the app is in the background: until its end, or until the system takes it back.
final class BackgroundActivity: Sendable {
    private let over = DispatchSemaphore(value: 0)

    /// Asks the system for time.
    static func begin() -> BackgroundActivity? {
        let activity = BackgroundActivity()
        let over = activity.over
        ProcessInfo.processInfo.performExpiringActivity(withReason: "loading a picture") { isExpired in
            // The system's own thread: as long as it stands here, the time lasts. Called again when there is none left.
            if isExpired { over.signal() } else { over.wait() }
        }
        return activity
    }

    func end() { over.signal() }
}
#else
/// Nothing stops a process in the background here: there is no time to be asked for.
final class BackgroundActivity: Sendable {
    static func begin() -> BackgroundActivity? { nil }

    func end() {}
}
#endif
