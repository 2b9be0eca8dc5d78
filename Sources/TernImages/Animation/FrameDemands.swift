/// Which frame of an animation is decoded next, of those that its readers wait for or will need. Pure.
struct FrameDemands {
    /// What one reader needs: the frame to show first, then what comes after it.
    struct Window: Equatable {
        var indices: [Int]
        /// Whether it plays towards the first frame. Decoders go forward only: what lies before is decoded on the way.
        var isBackwards = false
    }

    private var windows: [(reader: Int, window: Window, length: Int)] = []
    private var lastReader = 0

    var isEmpty: Bool { windows.isEmpty }

    mutating func join() -> Int {
        lastReader += 1
        return lastReader
    }

    /// What the reader needs from now on that is not held; nothing of what it said before.
    /// - Parameter length: how many frames its window has, with those that are held.
    mutating func set(_ window: Window, length: Int, of reader: Int) {
        windows.removeAll { $0.reader == reader }
        if !window.indices.isEmpty { windows.append((reader, window, length)) }
    }

    mutating func leave(_ reader: Int) { windows.removeAll { $0.reader == reader } }

    /// Nobody waits for this frame any more: it is decoded, or cannot be.
    mutating func settle(_ index: Int) {
        for place in windows.indices { windows[place].window.indices.removeAll { $0 == index } }
        windows.removeAll { $0.window.indices.isEmpty }
    }

    /// The frame to decode next; nil if nobody needs one.
    ///
    /// What somebody waits for comes before what somebody will need; among equals whoever asked first. Backwards each
    /// frame means to begin again at the first: so nothing is decoded before half of what was decoded is used up, and
    /// then all that is missing in one go.
    /// - Parameter waited: frames that are waited for.
    func next(waited: (Int) -> Bool) -> Int? {
        let waiting = windows.first { entry in entry.window.indices.contains(where: waited) }
        let due = windows.first { entry in
            !entry.window.isBackwards || entry.window.indices.count * 2 >= entry.length
        }
        guard let window = (waiting ?? due)?.window else { return nil }
        return window.isBackwards ? window.indices.min() : window.indices.first
    }
}
