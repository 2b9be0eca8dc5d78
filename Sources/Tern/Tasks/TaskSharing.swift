/// The part of those who wait for the response of another task.
struct TaskSharing: Sendable {
    /// Returns whether others wait for the response. Called with the lock of the record held.
    let isShared: @Sendable () -> Bool
    /// Records that the task itself does not need the response any more. Returns false if nobody else does.
    let leave: @Sendable () -> Bool

    init(isShared: @escaping @Sendable () -> Bool, leave: @escaping @Sendable () -> Bool) {
        self.isShared = isShared
        self.leave = leave
    }
}
