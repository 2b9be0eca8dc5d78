import Tern

/// How often the registry told what. Pure.
struct EventCount: Sendable, Equatable {
    private(set) var resumed = 0
    private(set) var suspended = 0
    private(set) var filesMoved = 0
    private(set) var completed = 0
    private(set) var failed = 0
    private(set) var cancelled = 0
    private(set) var dropped = 0
    private(set) var isInvalidated = false

    mutating func add(_ event: TaskRegistry.Event) {
        switch event {
        case .resumed: resumed += 1
        case .suspended: suspended += 1
        case .fileMoved: filesMoved += 1
        case .moveFailed: break
        case .completed(let completion):
            switch completion.error {
            case nil: completed += 1
            case let error? where error.isCancelled: cancelled += 1
            case .some: failed += 1
            }
        case .sessionInvalidated: isInvalidated = true
        case .dropped(let count): dropped += count
        }
    }

    /// Tasks that have ended, one way or another.
    var ended: Int { completed + failed + cancelled }
}
