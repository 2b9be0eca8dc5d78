/// A first-in, first-out queue on an array. Each operation takes constant time on average.
///
/// The queue gives up an element as soon as it is taken, so that nothing is released later, under the lock that guards
/// the queue. Public for the same reason as `Lock`.
public struct FIFO<Element> {
    @usableFromInline var places: [Element?] = []
    @usableFromInline var head = 0

    /// Creates an empty queue.
    @inlinable
    public init() {}

    /// The number of elements.
    @inlinable public var count: Int { places.count - head }

    /// A Boolean value that indicates whether the queue is empty.
    @inlinable public var isEmpty: Bool { head == places.count }

    /// The oldest element; nil if the queue is empty.
    @inlinable public var first: Element? { isEmpty ? nil : places[head] }

    /// Adds an element behind all others.
    @inlinable
    public mutating func append(_ element: Element) { places.append(element) }

    /// Removes and returns the oldest element; nil if the queue is empty.
    @inlinable
    public mutating func popFirst() -> Element? {
        guard head < places.count else { return nil }
        let element = places[head].take()
        head += 1
        if head == places.count {
            places.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 256, head >= places.count / 2 {
            // Moves no more elements than were taken since the last move.
            places.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Removes the elements that satisfy a condition. Takes time in proportion to their number.
    package mutating func removeAll(where isRemoved: (Element) -> Bool) {
        places = places[head...].filter { place in place.map { !isRemoved($0) } ?? false }
        head = 0
    }
}

extension FIFO: Sendable where Element: Sendable {}
