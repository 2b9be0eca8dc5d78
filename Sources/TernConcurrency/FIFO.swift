/// A queue over an array: first in, first out, each in constant time on average.
///
/// A place is emptied when its element is taken: nothing of it is released later, under whatever lock the queue is kept.
/// Public for the reason that `Lock` is.
public struct FIFO<Element> {
    @usableFromInline var places: [Element?] = []
    @usableFromInline var head = 0

    /// An empty queue.
    @inlinable
    public init() {}

    /// Elements that wait.
    @inlinable public var count: Int { places.count - head }

    /// Whether none waits.
    @inlinable public var isEmpty: Bool { head == places.count }

    /// The one that has waited longest; nil for none.
    @inlinable public var first: Element? { isEmpty ? nil : places[head] }

    /// Adds an element behind all others.
    @inlinable
    public mutating func append(_ element: Element) { places.append(element) }

    /// Takes the element that has waited longest; nil for none.
    @inlinable
    public mutating func popFirst() -> Element? {
        guard head < places.count else { return nil }
        let element = places[head].take()
        head += 1
        if head == places.count {
            places.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 256, head >= places.count / 2 {
            // No more is moved than was taken since the last time.
            places.removeFirst(head)
            head = 0
        }
        return element
    }
}

extension FIFO: Sendable where Element: Sendable {}
