import Foundation
import TernXML

extension FuzzTarget {
    /// XML documents.
    static let xml = [
        FuzzTarget(
            name: "xml", seeds: { _ in XMLFuzzing.seeds.map { Array($0.utf8) } + XMLFuzzing.wideSeeds },
            tokens: XMLFuzzing.tokens, run: { input, _ in try XMLFuzzing.check(input) })
    ]
}

private enum XMLFuzzing {
    static let seeds = [
        "<?x?><a/>", "<!DOCTYPE a [<!ATTLIST a q CDATA #IMPLIED>]><a/>", "<!DOCTYPE a [<!NOTATION n SYSTEM 'x'>]><a/>",
        "<!DOCTYPE a PUBLIC \"x\" 'y'><a b=\"1\" c='&lt;&#x20AC;&#65;'>t<b/>u<![CDATA[<&>]]>v</a><!-- z -->",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a xmlns=\"one\" xmlns:p='two'><p:b p:c='' xml:lang='en'/><c xmlns=''/></a>",
        "<?xml version='1.0' encoding='iso-8859-1'?><a>\u{E9}</a>", "<!DOCTYPE a SYSTEM 'x'><a>&nope;</a>",
        "<!DOCTYPE a [<!ENTITY x 'aa'><!ENTITY y '&x;&x;'>]><a b='&y;'>&y;</a>",
        "<rss version='2.0'><channel><item><title>\u{C4} &amp;</title></item><?go on?></channel></rss>\n",
        String(repeating: "<a>", count: 199) + String(repeating: "</a>", count: 199),
    ]
    static let wideSeeds: [[UInt8]] = ["<a b='c'>\u{E9}</a>"].flatMap { text in
        [
            [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] },
            [0xFE, 0xFF] + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
            text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] },
        ]
    }
    static let tokens = [
        "<", ">", "/>", "</", "<a>", "</a>", "<?", "?>", "<!--", "-->", "<![CDATA[", "]]>", "<!DOCTYPE a ", "[", "]>",
        "<!ENTITY x 'y'>", "<!ATTLIST a b CDATA 'c'>", "<!NOTATION n SYSTEM 'x'>", "<!ELEMENT a ANY>", "&x;", "&#0;",
        "&#x10FFFF;",
        "&lt;", "xmlns", "xmlns:p='q'", "p:", " b='c'", "\"", "'", "=", ":", "<?xml version='1.0' encoding='utf-16'?>",
        "encoding='utf-7'", "\u{FEFF}", "\0", "\u{80}", "%x;", "<![INCLUDE[", "]]",
    ]

    static func check(_ input: Data) throws -> String {
        let tree: XMLTree
        do {
            tree = try XMLTree(parsing: input)
        } catch {
            // Not all of it: the name of an unknown encoding differs from input to input.
            return "rejected \(error.reason.prefix(40))"
        }
        try check(tree, depth: 1)
        // Decoding to UTF-8 makes at most three bytes of one.
        try require(tree.text.utf8.count <= 3 * input.count, "more text than bytes")
        var text = ""
        write(tree, to: &text)
        let again = try XMLTree(parsing: Data(text.utf8))
        try require(again == tree, "\(again), written as \(text)")
        return "accepted \(min(tree.nodes.count, 8)) \(tree.namespace != nil) \(min(tree.attributes.count, 4))"
    }

    private static func check(_ tree: XMLTree, depth: Int) throws {
        try require(depth <= XMLTree.maximumDepth, "\(depth) levels")
        try require(!tree.name.isEmpty && !tree.name.utf8.contains(UInt8(ascii: ":")), "the name \(tree.name)")
        try require(tree.attributes.count <= 1_000, "\(tree.attributes.count) attributes")
        try require(tree.namespace != "", "an empty namespace")
        var wasText = false
        for node in tree.nodes {
            switch node {
            case .text(let text):
                try require(!wasText && !text.isEmpty, "two texts side by side")
                wasText = true
            case .element(let element):
                wasText = false
                try check(element, depth: depth + 1)
            }
        }
    }

    private static func write(_ tree: XMLTree, to text: inout String) {
        text += "<\(tree.name) xmlns=\"\(escaped(tree.namespace ?? ""))\""
        var prefixes: Set<Substring> = ["xml"]
        for (name, value) in tree.attributes {
            if let colon = name.firstIndex(of: ":"), prefixes.insert(name[..<colon]).inserted {
                text += " xmlns:\(name[..<colon])=\"urn:\(name[..<colon])\""
            }
            text += " \(name)=\"\(escaped(value))\""
        }
        text += ">"
        for node in tree.nodes {
            switch node {
            case .text(let content): text += escaped(content)
            case .element(let element): write(element, to: &text)
            }
        }
        text += "</\(tree.name)>"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "<", "&", ">", "\"", "\t", "\n", "\r": result += "&#\(scalar.value);"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
