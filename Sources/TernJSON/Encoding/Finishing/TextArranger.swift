/// Puts a text together from the main text and the late ones, with each name once, and sorted names if that is wanted.
///
/// Writing is not recursive.
@safe
struct TextArranger {
    /// An array or an object that is written.
    private struct Level {
        let close: UInt8
        /// The rest of its values in `order`, which are the last ones there when it is the innermost one.
        var next: Int
        let start: Int
        let end: Int
    }

    /// A value to sort: its node, and the first eight bytes of its name as a number.
    private struct Place {
        var node: Int
        var prefix: UInt64
        /// The place before sorting.
        var index = 0
    }

    private let tree: TextTree
    private let output: JSONTextWriter
    private let formatting: TernJSONEncoder.OutputFormatting
    private let mayHaveDuplicates: Bool
    private var order: [Place] = []
    private var levels: [Level] = []
    /// The order of the members of the last object, by their number.
    private var earlierOrders: [Int: [Int]] = [:]
    private var sorted: [Place] = []

    private init(_ tree: TextTree, to output: JSONTextWriter, _ context: EncodingContext) {
        self.tree = tree
        self.output = output
        formatting = context.formatting
        mayHaveDuplicates = context.mayHaveDuplicates
    }

    /// Writes the text of an encoding that is finished, in its final form.
    ///
    /// - Throws: `CancellationError`.
    static func arrange(_ storage: EncodingStorage, to output: JSONTextWriter) throws {
        storage.writer.reserve(16)
        output.reserve(storage.writer.count)
        var arranger = unsafe TextArranger(TextTree(storage), to: output, storage.state.pointee.context.pointee)
        arranger.run()
        try output.checkFailure()
    }

    private mutating func run() {
        let isPretty = formatting.contains(.prettyPrinted)
        if !tree.nodes.isEmpty { begin(0) }
        while let level = levels.last {
            guard level.next < level.end else {
                levels.removeLast()
                while order.count > level.start { order.removeLast() }
                if isPretty {
                    if level.start == level.end { output.append(UInt8(ascii: "\n")) }
                    output.appendLine(levels.count)
                }
                output.append(level.close)
                continue
            }
            levels[levels.count - 1].next += 1
            if level.next > level.start { output.append(UInt8(ascii: ",")) }
            if isPretty { output.appendLine(levels.count) }
            let index = order[level.next].node
            if level.close == UInt8(ascii: "}") {
                let node = tree.nodes[index]
                copy(from: Int(node.nameSource), node.nameStart..<node.nameEnd)
                if isPretty { output.appendColon() } else { output.append(UInt8(ascii: ":")) }
            }
            begin(index)
        }
    }

    /// Writes a scalar, or the beginning of an array or an object.
    private mutating func begin(_ index: Int) {
        let node = tree.nodes[index]
        if node.form == .scalar { return copy(from: Int(node.source), node.start..<node.end) }
        let isObject = node.form == .object
        output.append(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        let start = order.count
        var next = node.first
        while next >= 0 {
            order.append(Place(node: next, prefix: 0))
            next = tree.nodes[next].next
        }
        if isObject, order.count - start > 1 {
            if mayHaveDuplicates { keepLastOfEachName(from: start) }
            if formatting.contains(.sortedKeys) { sort(from: start) }
        }
        levels.append(
            Level(
                close: isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"), next: start, start: start, end: order.count))
    }

    @inline(__always)
    private func copy(from source: Int, _ range: Range<Int>) {
        guard let bytes = unsafe tree.texts[source].bytes.baseAddress else { return }
        unsafe output.appendBlocks(bytes + range.lowerBound, count: range.count)
    }

    // MARK: Names

    /// Removes all but the last value of each name, which gets the place of the first.
    private mutating func keepLastOfEachName(from start: Int) {
        var end = start
        var places: [Name: Int] = [:]
        for index in start..<order.count {
            let name = unsafe Name(bytes: tree.name(of: tree.nodes[order[index].node]))
            if let place = places[name] {
                order[place] = order[index]
            } else {
                places[name] = end
                order[end] = order[index]
                end += 1
            }
        }
        order.removeLast(order.count - end)
    }

    @safe
    private struct Name: Hashable {
        let bytes: UnsafeBufferPointer<UInt8>

        init(bytes: UnsafeBufferPointer<UInt8>) { unsafe self.bytes = bytes }

        static func == (left: Name, right: Name) -> Bool {
            unsafe left.bytes.count == right.bytes.count && left.bytes.elementsEqual(right.bytes)
        }

        func hash(into hasher: inout Hasher) { unsafe hasher.combine(bytes: UnsafeRawBufferPointer(bytes)) }
    }

    private mutating func sort(from start: Int) {
        for index in start..<order.count {
            order[index].prefix = unsafe Self.prefix(of: tree.name(of: tree.nodes[order[index].node]))
        }
        if useEarlierOrder(from: start) { return }
        for index in start..<order.count { order[index].index = index - start }
        defer { earlierOrders[order.count - start] = order[start...].map(\.index) }
        guard order.count - start <= Self.fewValues else {
            // A part of an array that is sorted in place would copy all of it.
            let sorted = order[start...].sorted { isOrdered($0, $1) }
            for (index, place) in sorted.enumerated() { order[start + index] = place }
            return
        }
        for index in start + 1..<order.count {
            let place = order[index]
            var target = index
            while target > start, isOrdered(place, order[target - 1]) {
                order[target] = order[target - 1]
                target -= 1
            }
            order[target] = place
        }
    }

    /// Sorts as the last object with the same number of members, which is often of the same type, and returns whether this was right.
    private mutating func useEarlierOrder(from start: Int) -> Bool {
        guard let earlier = earlierOrders[order.count - start] else { return false }
        sorted.removeAll(keepingCapacity: true)
        for index in earlier {
            let place = order[start + index]
            if let last = sorted.last, !isOrdered(last, place) { return false }
            sorted.append(place)
        }
        for index in sorted.indices { order[start + index] = sorted[index] }
        return true
    }

    /// The number of values up to which insertion is the fastest way to sort.
    private static let fewValues = 32

    @inline(__always)
    private func isOrdered(_ left: Place, _ right: Place) -> Bool {
        if left.prefix != right.prefix && left.prefix != 0 && right.prefix != 0 { return left.prefix < right.prefix }
        return tree.isOrdered(tree.nodes[left.node], tree.nodes[right.node])
    }

    /// Returns the first eight bytes of a name as a number, or 0 if it has escapes.
    private static func prefix(of name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        if unsafe name.contains(UInt8(ascii: "\\")) { return 0 }
        var prefix = UInt64(0)
        for index in 0..<8 { prefix = unsafe prefix << 8 | UInt64(index < name.count ? name[index] : 0) }
        return prefix
    }
}
