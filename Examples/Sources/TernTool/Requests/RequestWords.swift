import ArgumentParser
// JSONSerialization checks JSON that a user types.
import Foundation
import Tern

/// The arguments of `tern get` that are not options: `[METHOD] URL [ITEM …]`, as in HTTPie. Pure.
struct RequestWords {
    /// The methods that may be written in lower case. Any other word in lower case can be a host.
    private static let methods: Set<String> = [
        "get", "head", "post", "put", "patch", "delete", "options", "trace", "query",
    ]

    let method: Request.Method?
    /// The URL, with a scheme.
    var url: String
    let items: [RequestItem]

    init(_ words: [String]) throws {
        var words = words[...]
        if words.count > 1, let first = words.first, Self.isMethod(first) {
            method = Request.Method(first.uppercased())
            words.removeFirst()
        } else {
            method = nil
        }
        guard let url = words.popFirst(), !url.isEmpty else { throw ValidationError("give a URL") }
        self.url = URLText.complete(url)
        try Self.checkCommand(url, isAlone: words.isEmpty)
        items = try words.map { try RequestItem($0) }
    }

    private static func isMethod(_ word: String) -> Bool {
        if methods.contains(word.lowercased()) { return true }
        return word.utf8.count > 2 && word.utf8.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
    }

    /// Throws an error for a word that is or resembles the name of a command and names no host.
    private static func checkCommand(_ word: String, isAlone: Bool) throws(ValidationError) {
        guard word.allSatisfy({ $0.isASCII && $0.isLetter }), word != "localhost",
            let name = ArgumentReader.command(near: word)
        else { return }
        if name == word { throw ValidationError("'\(name)' is a command: write it first, 'tern \(name) …'") }
        if isAlone, OptionTable.distance(name, word) > 1 { return }
        throw ValidationError(
            "there is no command '\(word)'. Did you mean '\(name)'? A host is written as https://\(word)")
    }
}

/// A part of a request that is written in one word, as in HTTPie: `Name:value`, `name==value`, `name=value`,
/// `name:=json`, `name@file`, `name=@file` and `name:=@file`. Pure.
enum RequestItem: Equatable {
    /// A header field.
    case header(name: String, value: String)
    /// A parameter of the query.
    case query(name: String, value: String)
    /// A text of the body.
    case text(name: String, value: String)
    /// A value of JSON in the body.
    case json(name: String, value: String)
    /// A file of a form.
    case file(name: String, path: String)
    /// A text of the body that is in a file.
    case textFile(name: String, path: String)
    /// A value of JSON in the body that is in a file.
    case jsonFile(name: String, path: String)

    /// The longer of two that begin at one place comes first.
    private static let separators = [":=@", ":=", "==", "=@", "=", "@", ":"]

    init(_ word: String) throws(ValidationError) {
        if word.hasPrefix("http://") || word.hasPrefix("https://") {
            throw ValidationError("'\(URLText.shown(word))' is a second URL: 'tern download' takes several")
        }
        guard let (name, separator, value) = Self.split(word), !name.isEmpty else {
            // An address with a password is no item either.
            let shown = Terminal.plain(word.contains("@") ? URLText.shown(word) : word)
            throw ValidationError(
                "'\(shown)' is no part of a request: write Name:value, name==value, name=value, name:=json or name@file"
            )
        }
        self =
            switch separator {
            case ":": .header(name: name, value: value)
            case "==": .query(name: name, value: value)
            case "=": .text(name: name, value: value)
            case ":=": .json(name: name, value: value)
            case "@": .file(name: name, path: value)
            case "=@": .textFile(name: name, path: value)
            default: .jsonFile(name: name, path: value)
            }
    }

    /// Splits a word at its first separator that has no backslash before it.
    private static func split(_ word: String) -> (name: String, separator: String, value: String)? {
        var name = ""
        var rest = word[...]
        while let character = rest.first {
            if character == "\\", let next = rest.dropFirst().first, "\\:=@".contains(next) {
                name.append(next)
                rest = rest.dropFirst(2)
            } else if let separator = separators.first(where: { rest.hasPrefix($0) }) {
                return (name, separator, String(rest.dropFirst(separator.count)))
            } else {
                name.append(character)
                rest.removeFirst()
            }
        }
        return nil
    }

    /// Whether the item is a part of the body.
    var isBody: Bool {
        switch self {
        case .header, .query: false
        case .text, .json, .file, .textFile, .jsonFile: true
        }
    }
}

/// The body that items make: an object of JSON, or a form. Pure, but for the files that the items name.
struct ItemsBody {
    private let items: [RequestItem]
    private let isForm: Bool

    /// - Parameter isForm: Whether the items are the fields of a form. A file always makes one.
    init(_ items: [RequestItem], isForm: Bool) {
        self.items = items.filter(\.isBody)
        self.isForm = isForm
    }

    /// The body; nil without items.
    func body() throws -> SentBody? {
        if items.isEmpty { return nil }
        let hasFiles = items.contains { if case .file = $0 { true } else { false } }
        if hasFiles { return try SentBody(form: fields()) }
        guard isForm else { return try SentBody(json: object()) }
        let pairs = try fields().map { field in
            guard case .text(let value) = field.content else { return "" }
            return "\(PercentText.encoded(field.name))=\(PercentText.encoded(value))"
        }
        return SentBody(text: pairs.joined(separator: "&"), contentType: SentBody.formType)
    }

    private func fields() throws -> [FormField] {
        try items.compactMap { item in
            switch item {
            case .text(let name, let value): return FormField(name: name, content: .text(value))
            case .textFile(let name, let path): return FormField(name: name, content: .text(try Self.text(path)))
            case .file(let name, let path): return FormField(name: name, content: .file(path: path))
            case .json(let name, _), .jsonFile(let name, _):
                throw ValidationError("'\(name):=' is JSON, and a form has texts: write '\(name)='")
            case .header, .query: return nil
            }
        }
    }

    /// The object of JSON, with its names in the order of the items.
    private func object() throws -> String {
        let pairs = try items.compactMap { item -> (name: String, json: String)? in
            switch item {
            case .text(let name, let value): return (name, JSONText.string(value))
            case .textFile(let name, let path): return (name, JSONText.string(try Self.text(path)))
            case .json(let name, let value): return (name, try JSONText.checked(value, of: name))
            case .jsonFile(let name, let path): return (name, try JSONText.checked(try Self.text(path), of: name))
            case .file, .header, .query: return nil
            }
        }
        return "{" + pairs.map { "\(JSONText.string($0.name)):\($0.json)" }.joined(separator: ",") + "}"
    }

    private static func text(_ path: String) throws -> String {
        String(decoding: try FileText.bytes(of: path), as: UTF8.self)
    }
}

/// JSON that is written from texts. Pure.
enum JSONText {
    /// Returns a text as a string of JSON.
    static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case "\u{0}"..<" ":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Returns a text that is JSON as it is.
    static func checked(_ text: String, of name: String) throws(ValidationError) -> String {
        // The reason is not needed: the text is short, and the user has just typed it.
        guard (try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)) != nil else {
            throw ValidationError("the value of '\(Terminal.plain(name)):=' is no JSON: a text needs quotes")
        }
        return text
    }
}

/// The escapes of forms and queries. Pure.
enum PercentText {
    /// Returns a text in which only the unreserved characters (RFC 3986 §2.3) stay.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let character = Character(UnicodeScalar(byte))
            if byte < 0x80, character.isLetter || character.isASCIIDigit || "-._~".contains(character) {
                result.append(character)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                result += "%" + (digits.count < 2 ? "0" : "") + digits
            }
        }
        return result
    }
}
