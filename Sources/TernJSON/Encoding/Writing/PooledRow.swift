/// Memory that grows for values in a row, and that is kept for the next encoding.
///
/// Unlike `Array`, it does not check at each change whether it is shared, and can be cleared.
@safe
struct PooledRow<Element: BitwiseCopyable> {
    private(set) var elements: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private var capacity = 32
    /// The number of elements that were used since the memory was cleared.
    private var usedCount = 0

    /// More memory than this is not kept, in bytes.
    private static var keptMemory: Int { 1 << 20 }

    init() { unsafe elements = .allocate(capacity: capacity) }

    func deallocate() { unsafe elements.deallocate() }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        unsafe (elements + count).initialize(to: element)
        count &+= 1
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: 2 * capacity)
        unsafe larger.moveInitialize(from: elements, count: count)
        unsafe elements.deallocate()
        unsafe elements = larger
        capacity *= 2
    }

    /// Makes an empty row one of elements that are not initialised.
    mutating func fill(to count: Int) {
        if count > capacity {
            while capacity < count { capacity *= 2 }
            unsafe elements.deallocate()
            unsafe elements = .allocate(capacity: capacity)
        }
        self.count = count
    }

    /// Removes the last elements.
    @inline(__always)
    mutating func cut(to kept: Int) {
        usedCount = max(usedCount, count)
        count = kept
    }

    /// Removes all elements, and clears the memory, which can hold a secret.
    mutating func clear() {
        cut(to: 0)
        let size = usedCount &* MemoryLayout<Element>.stride
        unsafe UnsafeMutableRawPointer(elements).initializeMemory(as: UInt8.self, repeating: 0, count: size)
        usedCount = 0
        if capacity &* MemoryLayout<Element>.stride > Self.keptMemory {
            unsafe elements.deallocate()
            self = PooledRow()
        }
    }
}
