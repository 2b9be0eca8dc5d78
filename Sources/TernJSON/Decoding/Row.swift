/// Memory that grows for values in a row. Unlike `Array`, it does not check at each change whether it is shared.
@safe
struct Row<Element> {
    private(set) var elements: UnsafeMutablePointer<Element>
    private var capacity = 4
    private(set) var count = 0

    init() { unsafe elements = .allocate(capacity: capacity) }

    mutating func append(_ element: consuming Element) {
        if count == capacity {
            let larger = UnsafeMutablePointer<Element>.allocate(capacity: 2 * capacity)
            unsafe larger.moveInitialize(from: elements, count: count)
            unsafe elements.deallocate()
            unsafe elements = unsafe larger
            capacity *= 2
        }
        unsafe (elements + count).initialize(to: element)
        count += 1
    }

    mutating func removeLast() -> Element {
        precondition(count > 0)
        count -= 1
        return unsafe (elements + count).move()
    }

    /// Frees the memory. The row must not be used after that.
    mutating func deallocate() {
        unsafe elements.deinitialize(count: count)
        unsafe elements.deallocate()
    }
}
