/// The counters of a control group's `memory.events` (version 2), and what a change of them means. Pure.
struct GroupEvents: Hashable {
    private var counts: [Substring: UInt64] = [:]

    init(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, let count = UInt64(words[1]) { counts[words[0]] = count }
        }
    }

    /// What happened since the counters stood as in `self`.
    ///
    /// `oom` and `oom_kill` are critical. `high` and `max` are no pressure by themselves: a group whose page cache has
    /// filled its limit counts them all the time.
    func change(to new: GroupEvents) -> Change? {
        if new.exceeds(self, "oom") || new.exceeds(self, "oom_kill") { return .outOfMemory }
        return new.exceeds(self, "high") || new.exceeds(self, "max") ? .atLimit : nil
    }

    enum Change: Hashable {
        /// The group met its limit: whether that is pressure, its use without the page cache tells.
        case atLimit
        case outOfMemory
    }

    private func exceeds(_ old: GroupEvents, _ name: Substring) -> Bool {
        (counts[name] ?? 0) > (old.counts[name] ?? 0)
    }
}
