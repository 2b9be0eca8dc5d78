/// The number of a task, unique within its session and never used again there.
public struct TaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Counts from 1 in each session.
    public let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    /// Orders by creation.
    public static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    /// The number, after a sign.
    public var description: String { "#\(number)" }
}
