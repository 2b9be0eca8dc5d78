#if os(Linux) && !TERN_URLSESSION
/// The limits of SETTINGS that the client has to keep: it has the older ones until it acknowledges the newer ones, so
/// the wider of both holds in the meantime.
struct ChaosHTTP2Limits {
    private struct Announcement {
        var windowChange: Int
        var streams: Int?
    }

    private var window = 65_535
    private var announcedWindow = 65_535
    private var streams = Int.max
    private var pending: [Announcement] = []

    /// The window of a stream that the client opens now.
    var initialWindow: Int { window + pending.reduce(0) { $0 + max(0, $1.windowChange) } }
    var maximumStreams: Int { pending.reduce(streams) { max($0, $1.streams ?? 0) } }

    /// Notes SETTINGS that are sent. Returns the growth of the windows of open streams.
    mutating func announce(window: Int?, streams: Int?) -> Int {
        let change = (window ?? announcedWindow) - announcedWindow
        announcedWindow += change
        pending.append(Announcement(windowChange: change, streams: streams))
        return max(0, change)
    }

    /// Notes an acknowledgement. Returns by how much the windows of open streams shrink; nil if nothing was sent.
    mutating func acknowledge() -> Int? {
        guard !pending.isEmpty else { return nil }
        let announcement = pending.removeFirst()
        window += announcement.windowChange
        if let count = announcement.streams { streams = count }
        return max(0, -announcement.windowChange)
    }
}
#endif
