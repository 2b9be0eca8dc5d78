/// The values of an encoding's texts, read from the main text and the late ones.
///
/// Reading is not recursive.
struct TextTree {
    enum Form: UInt8 {
        case scalar
        case array
        case object
    }

    struct Node {
        let form: Form
        /// The text that it is in.
        let source: Int32
        /// The text that its name is in: another one for a late value.
        let nameSource: Int32
        /// The range of the name with its quotes, empty for an element.
        let nameStart: Int
        let nameEnd: Int
        /// The range of a scalar.
        let start: Int
        let end: Int
        /// The first value within, the last one, and the next beside this one; -1 for none.
        var first = -1
        var last = -1
        var next = -1
    }

    /// An array or an object that is read.
    private struct Level {
        let node: Int
        let source: Int
        let start: Int
        let isObject: Bool
        var hasLate = false
    }

    private(set) var nodes: [Node] = []
    private(set) var texts: [WrittenText]
    private var storages: [EncodingStorage]
    private var levels: [Level] = []
    /// The name of the next value.
    private var name: (source: Int, start: Int, end: Int)?

    /// Reads the text of an encoding that is finished.
    init(_ storage: EncodingStorage) {
        storages = [storage]
        texts = [unsafe WrittenText(storage.writer.text)]
        nodes.reserveCapacity(texts[0].count / 16)
        read()
    }

    private mutating func read() {
        // The texts that are read, each one within the one before.
        var places: [(source: Int, place: Int)] = [(0, 0)]
        while let (source, start) = places.last {
            let text = texts[source]
            let hasLate = unsafe storages[source].state.pointee.hasLate
            var place = start
            var isInterrupted = false
            while place < text.count {
                switch text[place] {
                case UInt8(ascii: "\""):
                    let end = text.endOfString(at: place)
                    if name == nil, levels.last?.isObject == true {
                        name = (source, place, end)
                    } else {
                        append(.scalar, of: source, place..<end)
                    }
                    place = end
                case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: " "), UInt8(ascii: "\n"): place += 1
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    if hasLate, let late = storages[source].late[place], late.replaces {
                        places[places.count - 1].place = text.endOfValue(at: place)
                        places.append((add(late.storage), 0))
                        isInterrupted = true
                    } else {
                        let isObject = text[place] == UInt8(ascii: "{")
                        let node = append(isObject ? .object : .array, of: source, place..<place)
                        levels.append(Level(node: node, source: source, start: place, isObject: isObject))
                        place += 1
                    }
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    if hasLate, let level = levels.last, !level.hasLate, let late = storages[source].late[level.start] {
                        levels[levels.count - 1].hasLate = true
                        places[places.count - 1].place = place
                        let added = add(late.storage)
                        let isObject = level.isObject
                        levels.append(
                            Level(node: level.node, source: added, start: 0, isObject: isObject, hasLate: true))
                        places.append((added, 1))
                        isInterrupted = true
                    } else {
                        _ = levels.popLast()
                        place += 1
                    }
                default:
                    let end = text.endOfScalar(at: place)
                    append(.scalar, of: source, place..<end)
                    place = end
                }
                if isInterrupted { break }
            }
            if !isInterrupted { places.removeLast() }
        }
    }

    private mutating func add(_ storage: EncodingStorage) -> Int {
        storages.append(storage)
        // Strings are copied in blocks.
        storage.writer.reserve(16)
        texts.append(unsafe WrittenText(storage.writer.text))
        return texts.count - 1
    }

    @discardableResult
    @inline(__always)
    private mutating func append(_ form: Form, of source: Int, _ range: Range<Int>) -> Int {
        let index = nodes.count
        let name = name ?? (source, range.lowerBound, range.lowerBound)
        nodes.append(
            Node(
                form: form, source: Int32(truncatingIfNeeded: source),
                nameSource: Int32(truncatingIfNeeded: name.source),
                nameStart: name.start, nameEnd: name.end, start: range.lowerBound, end: range.upperBound))
        self.name = nil
        guard let parent = levels.last?.node else { return index }
        if nodes[parent].last >= 0 { nodes[nodes[parent].last].next = index } else { nodes[parent].first = index }
        nodes[parent].last = index
        return index
    }

    // MARK: Names

    /// Returns the name of a member as it is written, without quotes. A text is always written the same way, so that
    /// equal names have equal bytes.
    func name(of node: Node) -> UnsafeBufferPointer<UInt8> {
        unsafe texts[Int(node.nameSource)].slice(node.nameStart + 1..<max(node.nameStart + 1, node.nameEnd - 1))
    }

    /// Returns whether a name comes before another one, by their UTF-8 without escapes.
    func isOrdered(_ left: Node, _ right: Node) -> Bool {
        let (leftName, rightName) = unsafe (name(of: left), name(of: right))
        if unsafe leftName.contains(UInt8(ascii: "\\")) || rightName.contains(UInt8(ascii: "\\")) {
            return texts[Int(left.nameSource)].unescaped(left.nameStart..<left.nameEnd)
                .lexicographicallyPrecedes(texts[Int(right.nameSource)].unescaped(right.nameStart..<right.nameEnd))
        }
        return unsafe leftName.lexicographicallyPrecedes(rightName)
    }
}
