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

    private let tree: TextTree
    private let output: JSONTextWriter
    private let formatting: TernJSONEncoder.OutputFormatting
    private let mayHaveDuplicates: Bool
    /// The nodes of the values of the arrays and objects that are written.
    private var order: [Int] = []
    private var levels: [Level] = []

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
            let index = order[level.next]
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
            order.append(next)
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
            let name = unsafe Name(bytes: tree.name(of: tree.nodes[order[index]]))
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
        // A part of an array that is sorted in place would copy all of it.
        let sorted = order[start...].sorted { tree.isOrdered(tree.nodes[$0], tree.nodes[$1]) }
        for (index, node) in sorted.enumerated() { order[start + index] = node }
    }
}
