import Tern

/// The responses that are not refreshed in the background for a while, because their servers have asked to wait. Pure.
struct RefreshPauses: Sendable {
    private struct Pause {
        let start: CacheTime
        let length: Duration
    }

    private var pauses: [CacheKey: Pause] = [:]

    /// The greatest number of responses that are known. Of more, the one whose pause began first is forgotten.
    static let limit = 1_024

    mutating func add(_ key: CacheKey, for length: Duration, at now: CacheTime) {
        guard length > .zero else { return }
        if pauses.count >= Self.limit, pauses[key] == nil {
            pauses = pauses.filter { Self.isCurrent($0.value, at: now) }
            if pauses.count >= Self.limit, let oldest = pauses.min(by: { $0.value.start < $1.value.start }) {
                pauses[oldest.key] = nil
            }
        }
        pauses[key] = Pause(start: now, length: length)
    }

    func contains(_ key: CacheKey, at now: CacheTime) -> Bool {
        pauses.isEmpty ? false : pauses[key].map { Self.isCurrent($0, at: now) } ?? false
    }

    /// A pause that begins in the future is that of a clock that was set back since.
    private static func isCurrent(_ pause: Pause, at now: CacheTime) -> Bool {
        pause.start <= now && now.since(pause.start) < pause.length
    }
}
