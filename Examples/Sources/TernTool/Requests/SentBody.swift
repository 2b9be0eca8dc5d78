import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A body as the options of `tern get` give it, and the options of curl for the same.
struct SentBody {
    static let formType = "application/x-www-form-urlencoded"

    /// The body.
    let body: Request.Body
    /// The type that is sent with the body; nil if the options of curl set it.
    let contentType: String?
    /// The options of curl that send the body.
    let words: [CurlText.Word]

    private init(_ body: Request.Body, contentType: String?, words: [CurlText.Word]) {
        self.body = body
        self.contentType = contentType
        self.words = words
    }

    /// Creates a body of a text.
    init(text: String, contentType: String) {
        self.init(
            .text(text, contentType: contentType), contentType: contentType,
            words: [CurlText.Word("--data-raw", text, isSecret: true)])
    }

    /// Creates a body of a file.
    init(file path: String) {
        self.init(
            .file(PathText.url(path)), contentType: "application/octet-stream",
            words: [CurlText.Word("--data-binary", "@\(path)")])
    }

    /// Creates a body of JSON.
    init(json: String) { self.init(text: json, contentType: "application/json") }

    /// Creates a body of the pieces of `-d` and similar options, joined by `&` as in curl.
    init(pieces: [DataPiece], contentType: String) throws {
        var bytes = Data()
        for (index, piece) in pieces.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            bytes.append(try piece.bytes())
        }
        self.init(
            .data(bytes, contentType: contentType), contentType: contentType, words: pieces.map(\.word))
    }

    /// Creates a form. Its files are opened now, so that nothing is sent where one of them is missing.
    init(form fields: [FormField]) throws {
        var form = MultipartForm()
        for field in fields { try field.append(to: &form) }
        self.init(.multipart(form), contentType: nil, words: fields.map(\.word))
    }
}

/// A piece of a body.
enum DataPiece: Equatable {
    /// The text itself.
    case text(String)
    /// The bytes of a file; `-` is standard input.
    case file(String)
    /// A name, its `=`, and the text of a file, escaped.
    case encodedFile(prefix: String, path: String)

    /// Creates the piece of `-d`: a text, or `@FILE`.
    init(_ text: String) {
        self = text.hasPrefix("@") ? .file(String(text.dropFirst())) : .text(text)
    }

    /// Creates the piece of `--data-urlencode`: `text`, `=text`, `name=text`, `@FILE` or `name@FILE`, as in curl.
    init(encoding text: String) {
        guard let place = text.firstIndex(where: { $0 == "=" || $0 == "@" }) else {
            self = .text(PercentText.encoded(text))
            return
        }
        let (name, value) = (text[..<place], String(text[text.index(after: place)...]))
        let prefix = name.isEmpty ? "" : "\(name)="
        self =
            text[place] == "="
            ? .text(prefix + PercentText.encoded(value)) : .encodedFile(prefix: prefix, path: value)
    }

    func bytes() throws(FileText.Failure) -> Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .file(let path): try FileText.bytes(of: path)
        case .encodedFile(let prefix, let path):
            Data((prefix + PercentText.encoded(String(decoding: try FileText.bytes(of: path), as: UTF8.self))).utf8)
        }
    }

    /// The option of curl for the same piece.
    var word: CurlText.Word {
        switch self {
        case .text(let text): CurlText.Word("--data-raw", text, isSecret: true)
        case .file(let path): CurlText.Word("--data-binary", "@\(path)")
        case .encodedFile(let prefix, let path):
            CurlText.Word("--data-urlencode", prefix.isEmpty ? "@\(path)" : "\(prefix.dropLast())@\(path)")
        }
    }
}

/// A field of a form, as `-F` takes it: `name=text`, `name=@file` or `name=<file`, with `;type=` and `;filename=` behind
/// a file.
struct FormField: Equatable {
    enum Content: Equatable {
        case text(String)
        /// A file that is sent as one.
        case file(path: String, name: String? = nil, type: String? = nil)
        /// The text of a file.
        case textFile(path: String)
    }

    let name: String
    let content: Content

    init(name: String, content: Content) {
        self.name = name
        self.content = content
    }

    /// - Parameter text: The value of `-F`. With `isLiteral`, a `@` or `<` at its beginning has no meaning.
    init(_ text: String, isLiteral: Bool = false) throws {
        guard let place = text.firstIndex(of: "="), place != text.startIndex else {
            throw ValidationError("-F takes name=text or name=@file")
        }
        name = String(text[..<place])
        let value = text[text.index(after: place)...]
        switch value.first {
        case "@" where !isLiteral: content = try Self.file(value.dropFirst())
        case "<" where !isLiteral: content = .textFile(path: String(value.dropFirst()))
        default: content = .text(String(value))
        }
    }

    /// Reads a path, which may be in quotes, and what follows it.
    private static func file(_ text: Substring) throws -> Content {
        var path = ""
        var rest = text
        if rest.first == "\"" {
            rest.removeFirst()
            while let character = rest.popFirst(), character != "\"" {
                path.append(character == "\\" ? rest.popFirst() ?? character : character)
            }
        } else {
            path = String(rest.prefix { $0 != ";" })
            rest = rest.dropFirst(path.count)
        }
        var (name, type): (String?, String?) = (nil, nil)
        for part in rest.split(separator: ";") {
            let part = part.drop(while: \.isWhitespace)
            if part.hasPrefix("type=") {
                type = String(part.dropFirst("type=".count))
            } else if part.hasPrefix("filename=") {
                name = String(part.dropFirst("filename=".count).filter { $0 != "\"" })
            } else {
                throw ValidationError(
                    "-F knows ;type= and ;filename= behind a file, not ';\(Terminal.plain(String(part)))'")
            }
        }
        return .file(path: path, name: name, type: type)
    }

    func append(to form: inout MultipartForm) throws {
        switch content {
        case .text(let text): form.append(text, named: name)
        case .textFile(let path):
            form.append(String(decoding: try FileText.bytes(of: path), as: UTF8.self), named: name)
        case .file(let path, let filename, let type) where path == "-" || FileText.kind(of: path) == .device:
            form.append(try FileText.bytes(of: path), named: name, filename: filename ?? "-", contentType: type)
        case .file(let path, let filename, let type):
            try FileText.checkReadable(path)
            try form.append(file: PathText.url(path), named: name, filename: filename, contentType: type)
        }
    }

    /// The option of curl for the same field.
    var word: CurlText.Word {
        switch content {
        case .text(let text): CurlText.Word("--form-string", text, isSecret: true, shownPrefix: "\(name)=")
        case .textFile(let path): CurlText.Word("--form", "\(name)=<\(path)")
        case .file(let path, let filename, let type):
            CurlText.Word(
                "--form",
                "\(name)=@\(Self.quoted(path))" + (type.map { ";type=\($0)" } ?? "")
                    + (filename.map { ";filename=\(Self.quoted($0))" } ?? ""))
        }
    }

    /// Puts a path into the quotes that curl needs around some characters.
    private static func quoted(_ path: String) -> String {
        guard path.contains(where: { ";,\"\\".contains($0) }) else { return path }
        return "\"" + path.map { "\"\\".contains($0) ? "\\\($0)" : String($0) }.joined() + "\""
    }
}
