/// How short memory is, or is to be.
public enum MemoryPressureLevel: Sendable, Hashable, CaseIterable {
    /// Memory runs short: caches should give up what they can spare.
    case warning
    /// The process may be ended, or does not get on for lack of memory: caches should give up all.
    case critical
    /// The app went to the background, where the one that holds least lives longest.
    case background
}

/// Who tells of pressure on memory. The seam for tests, and for apps that know more than the system tells.
public protocol MemoryPressureSource: Sendable {
    /// The levels from now on, each access a stream of its own. One element for each time that something happens, not one
    /// for a state that lasts. Ends only when nothing more can come.
    var levels: AsyncStream<MemoryPressureLevel> { get }
}
