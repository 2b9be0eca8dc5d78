/// Copies a text with the members of each object in the order of their names.
///
/// The places of the members were noted while the text was written, so that it is not read again. Copying is not
/// recursive.
@safe
struct NameSorter {
    /// A part of the text, such as a member, and the notes of the objects in it.
    private struct Part: BitwiseCopyable {
        var start: Int
        var end: Int
        var note: Int
        var noteEnd: Int
    }

    /// An object that is copied.
    private struct Level: BitwiseCopyable {
        /// The places of the first member and the next one in `order`.
        var first: Int
        var next: Int
        /// The text after the object in the part that it is in.
        var rest: Part
    }

    /// The text in its final form.
    private(set) var result = PooledRow<UInt8>()
    private var levels = PooledRow<Level>()
    /// The notes of the members of the objects that are copied, in the order of their names.
    private var order = PooledRow<Int>()
    /// The notes of the members that are sorted, from the last one.
    private var members = PooledRow<Int>()
    /// The orders of earlier objects, by a hash of their names: the number of members, and their places in `members`.
    ///
    /// The next object with the same names is sorted without comparing all pairs.
    private let earlierOrders: UnsafeMutablePointer<UInt8>

    /// The number of members up to which insertion is the fastest way to sort.
    private static let fewMembers = 32
    /// The number of earlier orders, as a power of two.
    private static let orderBits = 6
    private static let orderSize = 1 + fewMembers
    /// The number of bytes that are copied at once, beyond the end of a part.
    private static let blockSize = 32

    init() {
        let size = Self.orderSize << Self.orderBits
        unsafe earlierOrders = .allocate(capacity: size)
        unsafe earlierOrders.initialize(repeating: 0, count: size)
    }

    func deallocate() {
        result.deallocate()
        levels.deallocate()
        order.deallocate()
        members.deallocate()
        unsafe earlierOrders.deallocate()
    }

    /// Forgets what came from the text, which can be secret.
    mutating func clear() {
        guard result.count > 0 else { return }
        result.clear()
        // The others have places only, and elements only after an error.
        levels.cut(to: 0)
        order.cut(to: 0)
        members.cut(to: 0)
    }

    /// Returns the text of an encoding that is finished in its final form, which is there until it is cleared.
    ///
    /// - Throws: `CancellationError`.
    mutating func sort(_ writer: JSONTextWriter) throws -> UnsafeBufferPointer<UInt8> {
        let text = NotedText(writer, margin: Self.blockSize)
        guard let bytes = unsafe text.bytes.baseAddress else { return unsafe text.bytes }
        result.fill(to: writer.count &+ Self.blockSize)
        let start = unsafe result.elements
        var target = unsafe start
        var nextCheck = EncodingState.checkInterval
        var part = Part(start: 0, end: writer.count, note: 0, noteEnd: text.noteCount)
        while true {
            if part.note < part.noteEnd { part.end = begin(part, of: text) }
            unsafe Self.copy(bytes + part.start, count: part.end &- part.start, to: &target)
            guard levels.count > 0 else { break }
            part = unsafe copyMembers(of: text, bytes, to: &target)
            if unsafe target - start >= nextCheck {
                try Task.checkCancellation()
                nextCheck = unsafe target - start + EncodingState.checkInterval
            }
        }
        return unsafe UnsafeBufferPointer(start: start, count: target - start)
    }

    /// Begins the first object of a part, and returns the place of its first member.
    private mutating func begin(_ part: Part, of text: NotedText) -> Int {
        let object = unsafe text.notes[part.note]
        let rest = Part(start: object.end, end: part.end, note: object.noteEnd, noteEnd: part.noteEnd)
        levels.append(Level(first: order.count, next: order.count, rest: rest))
        var index = object.last
        var first = index
        var names = UInt64(0)
        while index > part.note {
            members.append(index)
            first = index
            unsafe names ^= text.notes[index].key
            index = unsafe text.notes[index].last
        }
        let hash = Int(truncatingIfNeeded: (names &* 0x9E37_79B9_7F4A_7C15) &>> UInt64(64 &- Self.orderBits))
        unsafe sortMembers(of: text, earlier: earlierOrders + hash &* Self.orderSize)
        members.cut(to: 0)
        return unsafe text.notes[first].start
    }

    /// Copies the members of the innermost object up to one that has objects in it, and returns this one, or what comes
    /// after the object.
    private mutating func copyMembers(
        of text: NotedText, _ bytes: UnsafePointer<UInt8>, to target: inout UnsafeMutablePointer<UInt8>
    ) -> Part {
        let level = unsafe levels.elements + (levels.count &- 1)
        let first = unsafe level.pointee.first
        var next = unsafe level.pointee.next
        while next < order.count {
            let index = unsafe order.elements[next]
            let member = unsafe text.notes + index
            unsafe target[0] = UInt8(ascii: ",")
            unsafe target += next > first ? 1 : 0
            next &+= 1
            let start = unsafe member.pointee.start
            let end = unsafe member.pointee.end
            let noteEnd = unsafe member.pointee.noteEnd
            if noteEnd > index &+ 1 {
                unsafe level.pointee.next = next
                return Part(start: start, end: end, note: index &+ 1, noteEnd: noteEnd)
            }
            unsafe Self.copy(bytes + start, count: end &- start, to: &target)
        }
        order.cut(to: first)
        levels.cut(to: levels.count &- 1)
        return unsafe level.pointee.rest
    }

    @inline(__always)
    private static func copy(
        _ source: UnsafePointer<UInt8>, count: Int, to target: inout UnsafeMutablePointer<UInt8>
    ) {
        var offset = 0
        while offset < count {
            let block = unsafe UnsafeRawPointer(source).loadUnaligned(fromByteOffset: offset, as: SIMD32<UInt8>.self)
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: block, toByteOffset: offset, as: SIMD32<UInt8>.self)
            offset &+= blockSize
        }
        unsafe target += count
    }

    // MARK: Names

    /// Appends `members` to `order`, sorted.
    private mutating func sortMembers(of text: NotedText, earlier: UnsafeMutablePointer<UInt8>) {
        let start = order.count
        if unsafe Int(earlier[0]) != members.count || !use(earlier + 1, of: text) {
            // As they were written, because they are often nearly in order.
            for index in (0..<members.count).reversed() { order.append(index) }
            var places = unsafe UnsafeMutableBufferPointer(start: order.elements + start, count: members.count)
            if places.count > Self.fewMembers {
                unsafe places.sort { unsafe text.isOrdered(members.elements[$0], members.elements[$1]) }
            } else {
                unsafe insertEach(of: places, in: text)
                unsafe earlier[0] = UInt8(truncatingIfNeeded: places.count)
                for index in places.indices {
                    unsafe earlier[index + 1] = UInt8(truncatingIfNeeded: places[index])
                }
            }
            for index in places.indices { unsafe places[index] = members.elements[places[index]] }
        }
        if text.mayHaveDuplicates { keepLastOfEachName(from: start, of: text) }
    }

    /// Sorts the members as those of an earlier object, and returns whether they are in order then.
    private mutating func use(_ earlier: UnsafePointer<UInt8>, of text: NotedText) -> Bool {
        let start = order.count
        var last = unsafe members.elements[Int(earlier[0])]
        order.append(last)
        for index in 1..<members.count {
            let member = unsafe members.elements[Int(earlier[index])]
            if !text.isOrdered(last, member) {
                order.cut(to: start)
                return false
            }
            order.append(member)
            last = member
        }
        return true
    }

    /// Sorts few places in `members` by insertion.
    private func insertEach(of places: UnsafeMutableBufferPointer<Int>, in text: NotedText) {
        for index in 1..<places.count {
            let inserted = unsafe places[index]
            let member = unsafe members.elements[inserted]
            var place = index
            while unsafe place > 0 && text.isOrdered(member, members.elements[places[place &- 1]]) {
                unsafe places[place] = places[place &- 1]
                place &-= 1
            }
            unsafe places[place] = inserted
        }
    }

    /// Removes all but the last member of each name from the end of `order`.
    private mutating func keepLastOfEachName(from start: Int, of text: NotedText) {
        let members = unsafe order.elements
        var kept = start
        for index in start..<order.count {
            let member = unsafe members[index]
            if index + 1 < order.count, unsafe text.haveOneName(member, members[index + 1]) { continue }
            unsafe members[kept] = member
            kept += 1
        }
        order.cut(to: kept)
    }
}
