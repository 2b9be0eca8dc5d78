#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Checks property lists before they are decoded.
///
/// Foundation parses those in XML recursively, and recursive types decode recursively, so that a deep list overflows
/// the stack. And some bytes that are not UTF-8, in a number, end the process.
package enum PropertyListCheck {
    /// The reason why a body is not decoded.
    struct Problem: Error, CustomStringConvertible {
        let description: String
        static let malformed = Problem(description: "the body is not a property list in XML or binary form")
        static let notUTF8 = Problem(description: "the property list contains bytes that are not UTF-8")
        static let tooDeep = Problem(description: "the property list nests deeper than \(maximumDepth) levels")
        static func tooLarge(_ limit: Int) -> Problem {
            Problem(description: "the property list would expand to more than \(limit) bytes")
        }
    }

    static let maximumDepth = 200

    /// Returns a property list for the decoder.
    package static func checked(_ body: Data) throws -> Data {
        if body.starts(with: "bplist".utf8) {
            var list = try BinaryPropertyList(Array(body))
            try list.check()
            return body
        }
        let document = try XMLEncoding.utf8(body)
        guard String(validating: document, as: UTF8.self) != nil else { throw Problem.notUTF8 }
        guard document.first(where: { !XMLEncoding.isSpace($0) }) == UInt8(ascii: "<") else { throw Problem.malformed }
        var list = XMLPropertyList(Array(document))
        try list.check()
        return document
    }
}

/// Follows the tags of a property list in XML. Refuses documents that parsers could read differently.
private struct XMLPropertyList {
    private let bytes: [UInt8]
    private var index = 0
    private var depth = 0
    /// Whether the last tag began a text, which can have marked sections.
    private var isInText = false

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func check() throws(PropertyListCheck.Problem) {
        while let open = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            index = open + 1
            if begins("!--") {
                if begins("!-->") || begins("!--->") { throw .malformed }
                try skip("!--", to: "-->")
            } else if begins("![CDATA[") {
                guard isInText else { throw .malformed }
                try skip("![CDATA[", to: "]]>")
            } else if begins("!") {
                // The type of the document, without declarations of its own.
                let type = try tag()
                if !begins("!DOCTYPE") || type.contains(UInt8(ascii: "[")) { throw .malformed }
                index = type.endIndex + 1
            } else if begins("?") {
                // The declaration is removed by now.
                if begins("?>") || XMLEncoding.beginsWithDeclaration(bytes[open...]) { throw .malformed }
                try skip("?", to: "?>")
            } else {
                try element()
            }
        }
    }

    private mutating func element() throws(PropertyListCheck.Problem) {
        let tag = try tag()
        index = tag.endIndex + 1
        isInText = false
        // With one quotation mark, the tag may not end here.
        if !tag.count(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }).isMultiple(of: 2) {
            throw .malformed
        }
        if tag.first == UInt8(ascii: "/") {
            depth = max(0, depth - 1)
        } else if tag.last != UInt8(ascii: "/") {
            depth += 1
            isInText = tag.starts(with: "string".utf8) || tag.starts(with: "key".utf8)
            // The outermost tag, and that of a text in the innermost array, are no levels.
            if depth > PropertyListCheck.maximumDepth + 2 { throw .tooDeep }
        }
    }

    /// Returns the bytes up to the end of a tag, which contains no other.
    private func tag() throws(PropertyListCheck.Problem) -> ArraySlice<UInt8> {
        let tag = bytes[index...].prefix { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") }
        guard tag.endIndex < bytes.endIndex, bytes[tag.endIndex] == UInt8(ascii: ">") else { throw .malformed }
        return tag
    }

    private func begins(_ mark: String) -> Bool { bytes[index...].starts(with: mark.utf8) }

    private mutating func skip(_ start: String, to end: String) throws(PropertyListCheck.Problem) {
        let (rest, mark) = (bytes[(index + start.utf8.count)...], Array(end.utf8))
        var place = rest.startIndex
        // Byte by byte: the general search is quadratic for many beginnings of the mark.
        while place + mark.count <= rest.endIndex {
            if rest[place..<place + mark.count].elementsEqual(mark) {
                index = place + mark.count
                return
            }
            place += 1
        }
        throw .malformed
    }
}

/// Follows the references of a property list in binary form.
private struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let top: Int
    private let table: Int
    /// The number of levels from each object down; 0 if it is not known.
    private var depths: [Int32]
    /// The size of each object in bytes, with shared objects counted at each use.
    private var expandedSizes: [Int]
    /// The greatest expanded size of a list. The values that are decoded take several times as much.
    private let sizeLimit: Int
    /// The number of bytes of the objects whose references have been followed.
    private var followed = 0

    /// An object whose references are being followed.
    private struct OpenObject {
        let object: Int
        /// The place of the next reference, and that behind the last.
        var next: Int
        let end: Int
        var depth: Int32 = 1
        var expandedSize: Int
    }

    init(_ bytes: [UInt8]) throws(PropertyListCheck.Problem) {
        // Behind the objects: six unused bytes, two sizes, and three numbers of eight bytes.
        guard bytes.count >= 8 + 32 else { throw .malformed }
        let trailer = bytes.count - 32
        self.bytes = bytes
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        func number(_ place: Int) -> Int { Self.number(bytes[place..<place + 8]) }
        (count, top, table) = (number(trailer + 8), number(trailer + 16), number(trailer + 24))
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), top < count, table >= 8, table <= trailer,
            count <= (trailer - table) / offsetSize
        else { throw .malformed }
        depths = Array(repeating: 0, count: count)
        expandedSizes = Array(repeating: 0, count: count)
        sizeLimit = max(16 << 20, 32 * bytes.count)
    }

    mutating func check() throws(PropertyListCheck.Problem) {
        var open = [try openObject(top)]
        var isOpen: Set<Int> = [top]
        while var last = open.popLast() {
            guard last.next < last.end else {
                depths[last.object] = last.depth
                expandedSizes[last.object] = last.expandedSize
                isOpen.remove(last.object)
                if let parent = open.indices.last { try add(last.object, to: &open[parent]) }
                continue
            }
            let child = Self.number(bytes[last.next..<last.next + referenceSize])
            last.next += referenceSize
            guard child < count else { throw .malformed }
            if isOpen.contains(child) {
                throw PropertyListCheck.Problem(description: "an object of the property list contains itself")
            }
            let depth = depths[child]
            if depth > 0 { try add(child, to: &last) }
            open.append(last)
            if open.count + Int(max(depth, 1)) > PropertyListCheck.maximumDepth + 1 { throw .tooDeep }
            if depth == 0 {
                open.append(try openObject(child))
                isOpen.insert(child)
            }
        }
    }

    private func add(_ child: Int, to object: inout OpenObject) throws(PropertyListCheck.Problem) {
        object.depth = max(object.depth, depths[child] + 1)
        // Objects that are used many times can stand for more than memory holds. Both sizes are below the limit.
        object.expandedSize += expandedSizes[child]
        if object.expandedSize > sizeLimit { throw .tooLarge(sizeLimit) }
    }

    /// Begins to follow the references of an object.
    private mutating func openObject(_ object: Int) throws(PropertyListCheck.Problem) -> OpenObject {
        let entry = table + object * offsetSize
        var place = Self.number(bytes[entry..<entry + offsetSize])
        guard place >= 8, place < table else { throw .malformed }
        let marker = bytes[place]
        place += 1
        let (kind, low) = (marker >> 4, Int(marker & 0xF))
        // Data, text in two forms, array, ordered set, set and dictionary have a number of elements, the others a size.
        guard [0x4, 0x5, 0x6, 0x7, 0xA, 0xB, 0xC, 0xD].contains(kind) else {
            return OpenObject(object: object, next: place, end: place, expandedSize: 16)
        }
        var elements = low
        if low == 0xF {
            guard place < table, bytes[place] >> 4 == 0x1, bytes[place] & 0xF <= 3 else { throw .malformed }
            let length = 1 << Int(bytes[place] & 0xF)
            place += 1
            guard length <= table - place else { throw .malformed }
            elements = Self.number(bytes[place..<place + length])
            place += length
        }
        let elementSize: Int
        switch kind {
        case 0x4, 0x5, 0x7: elementSize = 1
        case 0x6: elementSize = 2
        case 0xD: elementSize = 2 * referenceSize
        default: elementSize = referenceSize
        }
        guard elements <= (table - place) / elementSize else { throw .malformed }
        let end = place + elements * elementSize
        // Objects whose bytes overlap would cost time for each of them.
        followed += end - place
        guard followed <= bytes.count else { throw .malformed }
        return OpenObject(object: object, next: kind < 0xA ? end : place, end: end, expandedSize: 16 + end - place)
    }

    /// Returns the number that at most eight bytes are, the most significant first.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        Int(clamping: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
