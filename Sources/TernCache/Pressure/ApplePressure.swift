#if canImport(Darwin)
import Dispatch
import Foundation
import TernConcurrency

/// The notices of Apple's systems: two sources of `Dispatch`, and the app's way to the background where apps have one.
final class ApplePressure: Sendable {
    let broadcast = PressureBroadcast()
    let availability = MemoryPressureAvailability(signals: [.systemNotices], interval: nil, missing: [])
    private let sources = Lock<[any DispatchSourceMemoryPressure]>([])

    /// To be called any number of times.
    func start() {
        sources.withLock { sources in
            guard sources.isEmpty else { return }
            sources = [source(.warning, .warning), source(.critical, .critical)]
        }
        Self.background(broadcast)
    }

    /// A source for each level: its handler need not ask it which one it was.
    private func source(
        _ event: DispatchSource.MemoryPressureEvent, _ level: MemoryPressureLevel
    ) -> any DispatchSourceMemoryPressure {
        let source = DispatchSource.makeMemoryPressureSource(eventMask: event, queue: .global(qos: .utility))
        source.setEventHandler { [broadcast] in broadcast.tell(level) }
        source.activate()
        return source
    }

    private static let observed = Lock(false)

    /// By the notification's name: this module links no UIKit, and on macOS nobody posts it.
    private static func background(_ broadcast: PressureBroadcast) {
        let isFirst = observed.withLock { observed in
            defer { observed = true }
            return !observed
        }
        guard isFirst else { return }
        // For the life of the process, as is the one source of which this is a part.
        _ = NotificationCenter.default.addObserver(
            forName: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil, queue: nil
        ) { _ in broadcast.tell(.background) }
    }
}
#endif
