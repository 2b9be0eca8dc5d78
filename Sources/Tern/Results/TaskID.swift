import Synchronization

/// The number of a task. It is unique within its session and never used again there.
public struct TaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// A number that counts from 1 in each session.
    public let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    /// Returns whether the task on the left was created first.
    public static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    /// The sign # and the number.
    public var description: String { "#\(number)" }
}

extension Session {
    /// The identity of a session, which tells the tasks of several sessions apart.
    public struct ID: Sendable, Hashable, CustomStringConvertible {
        /// A number that is unique in the process.
        public let number: UInt64

        private static let last = Atomic<UInt64>(0)

        static func next() -> ID { ID(number: last.wrappingAdd(1, ordering: .relaxed).newValue) }

        /// The word "session" and the number.
        public var description: String { "session \(number)" }
    }
}
