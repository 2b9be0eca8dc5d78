import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension XMLTree {
    /// An error that explains why bytes are not XML. Its text does not quote them.
    public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// A sentence that describes the problem.
        public let reason: String
        /// The line of the document at which the parser found the problem, from 1; nil if there is no meaningful line.
        public let line: Int?

        /// The reason and the line.
        public var description: String { line.map { "\(reason), on line \($0)" } ?? reason }
    }

    /// The maximum depth of nested elements. Deeper documents could overflow the stack of code that walks the tree.
    public static let maximumDepth = 200

    /// Parses a document (XML 1.0, Namespaces in XML 1.0) and creates its outermost element.
    ///
    /// The document is read in the encoding of its byte order mark or of its declaration, otherwise as UTF-8, and every
    /// byte must be text in it. External entities are never fetched, and no document type is loaded from anywhere.
    /// Takes time in proportion to the size of the document.
    ///
    /// - Throws: `XMLTree.Problem` for a document that is not well-formed; that uses a prefix of a namespace which it
    ///   does not declare; whose document type has declarations of its own (an internal subset), because few of them
    ///   can stand for gigabytes, or that refers to an entity that XML itself does not define; that nests deeper than
    ///   ``maximumDepth``; that has more than 4,000,000 elements and texts, or an element with more than 1,000
    ///   attributes; that has a name of more than 1,024 bytes; and that is larger than 256 MiB.
    public init(parsing data: Data) throws(Problem) {
        if data.isEmpty { throw Problem(reason: "the document is empty", line: nil) }
        try XMLProlog.checkSize(data)
        let document: Data
        do {
            document = try XMLEncoding.utf8(data)
        } catch {
            throw Problem(reason: "the document is not well-formed: \(error)", line: nil)
        }
        self = try DocumentParser.tree(of: try XMLProlog.checked(document))
    }
}

/// Checks a document in UTF-8 before a parser of the system reads it.
enum XMLProlog {
    /// The greatest size of a document in bytes.
    static let maximumSize = 256 << 20

    static func checkSize(_ document: Data) throws(XMLTree.Problem) {
        guard document.count <= maximumSize else {
            throw XMLTree.Problem(reason: "the document is larger than \(maximumSize) bytes", line: nil)
        }
    }

    /// Returns a document for the parser: text, without the place of its document type. Nothing is loaded from there,
    /// and a parser that knows of one leaves out the entities that it could have declared, without an error.
    static func checked(_ document: Data) throws(XMLTree.Problem) -> Data {
        // The conversion to UTF-8 can make three bytes of one.
        try checkSize(document)
        guard String(validating: document, as: UTF8.self) != nil else {
            throw XMLTree.Problem(reason: "the document is not well-formed: the bytes are not text in UTF-8", line: nil)
        }
        guard let place = try placeOfDocumentType(in: Array(document)) else { return document }
        let start = document.startIndex
        var result = document
        let blank = document[(start + place.lowerBound)..<(start + place.upperBound)]
            .map { $0 == 0x0A || $0 == 0x0D ? $0 : UInt8(ascii: " ") }
        result.replaceSubrange((start + place.lowerBound)..<(start + place.upperBound), with: blank)
        return result
    }

    /// Returns where the place of the document type is before the first element; nil for none.
    private static func placeOfDocumentType(in bytes: [UInt8]) throws(XMLTree.Problem) -> Range<Int>? {
        // A byte order mark can stand before everything.
        var index = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        while true {
            index = skipSpaces(in: bytes, from: index)
            // Nothing but declarations is before the first element. EBCDIC begins with another byte.
            guard index < bytes.count, bytes[index] == UInt8(ascii: "<") else { throw malformed(bytes, index) }
            let rest = bytes[(index + 1)...]
            if rest.starts(with: "?".utf8) {
                index = try end(of: "?>", in: bytes, from: index + 2)
            } else if rest.starts(with: "!--".utf8) {
                index = try end(of: "-->", in: bytes, from: index + 4)
            } else if rest.starts(with: "!DOCTYPE".utf8) {
                // The parser refuses a second one.
                return try place(in: bytes, from: index + 9)
            } else if rest.starts(with: "!".utf8) {
                throw malformed(bytes, index)
            } else {
                return nil
            }
        }
    }

    /// Reads a document type (XML 1.0, rules 28 and 75) after its first word, and returns the bytes behind its name.
    private static func place(in bytes: [UInt8], from start: Int) throws(XMLTree.Problem) -> Range<Int> {
        let name = skipSpaces(in: bytes, from: start)
        let nameEnd = bytes[name...].firstIndex { isSpace($0) || $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "[") }
        guard name > start, let nameEnd, nameEnd > name else { throw malformed(bytes, name) }
        var index = skipSpaces(in: bytes, from: nameEnd)
        let keyword = bytes[index...]
        let isPublic = keyword.starts(with: "PUBLIC".utf8)
        if isPublic || keyword.starts(with: "SYSTEM".utf8) {
            for literal in isPublic ? 0..<2 : 1..<2 {
                let quote = skipSpaces(in: bytes, from: literal == 0 || !isPublic ? index + 6 : index)
                guard quote > index, quote < bytes.count, isSpace(bytes[quote - 1]),
                    bytes[quote] == UInt8(ascii: "\"") || bytes[quote] == UInt8(ascii: "'"),
                    let close = bytes[(quote + 1)...].firstIndex(of: bytes[quote]),
                    bytes[(quote + 1)..<close].allSatisfy(literal == 0 ? isPublicIdentifier : isCharacter)
                else { throw malformed(bytes, quote) }
                index = close + 1
            }
            index = skipSpaces(in: bytes, from: index)
        }
        if index < bytes.count, bytes[index] == UInt8(ascii: "[") {
            throw XMLTree.Problem(
                reason: "the document type has declarations, which are not supported", line: line(bytes, index))
        }
        guard index < bytes.count, bytes[index] == UInt8(ascii: ">") else { throw malformed(bytes, index) }
        return nameEnd..<index
    }

    private static func isSpace(_ byte: UInt8) -> Bool { XMLEncoding.isSpace(byte) && byte != 0x0C }

    private static func isCharacter(_ byte: UInt8) -> Bool { byte >= 0x20 || isSpace(byte) }

    /// XML 1.0, rule 13.
    private static func isPublicIdentifier(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), 0x20, 0x0D, 0x0A:
            true
        default: "-'()+,./:=?;!*#@$_%".utf8.contains(byte)
        }
    }

    private static func skipSpaces(in bytes: [UInt8], from start: Int) -> Int {
        var index = start
        while index < bytes.count, isSpace(bytes[index]) { index += 1 }
        return index
    }

    /// Returns the position after a mark. Byte by byte: the general search is quadratic for many beginnings of the
    /// mark.
    private static func end(of mark: String, in bytes: [UInt8], from start: Int) throws(XMLTree.Problem) -> Int {
        let mark = Array(mark.utf8)
        var index = start
        while index + mark.count <= bytes.count {
            if bytes[index] == mark[0], bytes[index..<index + mark.count].elementsEqual(mark) {
                return index + mark.count
            }
            index += 1
        }
        throw malformed(bytes, bytes.count)
    }

    private static func malformed(_ bytes: [UInt8], _ index: Int) -> XMLTree.Problem {
        XMLTree.Problem(reason: "the document is not well-formed", line: line(bytes, index))
    }

    private static func line(_ bytes: [UInt8], _ index: Int) -> Int { 1 + bytes[..<index].count { $0 == 0x0A } }
}
