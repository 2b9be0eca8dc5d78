import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options of `tern get` that say what is sent.
struct SendOptions: ParsableArguments {
    @Option(
        name: [.customShort("X"), .customLong("method"), .customLong("request")],
        help: "The method; GET, or POST where there is a body.",
        transform: { Request.Method($0) })
    var method: Request.Method?

    @Flag(name: [.customShort("I"), .long], help: "Send HEAD, and write the head of the response to standard output.")
    var head = false

    @Option(
        name: [.customShort("d"), .long, .customLong("data-binary")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A body to send, or @FILE or @- for its bytes, as application/x-www-form-urlencoded unless -H says otherwise. Several are joined by &.",
            valueName: "data"))
    var data: [String] = []

    @Option(
        name: .customLong("data-raw"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("As -d, where a @ at the beginning has no meaning.", valueName: "data"))
    var rawData: [String] = []

    @Option(
        name: .customLong("data-urlencode"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("As -d, with the text behind 'name=' escaped.", valueName: "data"))
    var encodedData: [String] = []

    @Flag(
        name: [.customShort("G"), .customLong("get")],
        help: "Send the data of -d and --data-urlencode as the query of the URL.")
    var isQuery = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A body of JSON to send, or @FILE or @-. The items of HTTPie are JSON without it.", valueName: "json"))
    var json: String?

    @Option(
        name: [.customShort("F"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field of a form (multipart/form-data): name=text, name=@file or name=<file, with ;type= and ;filename= behind a file.",
            valueName: "name=content"))
    var form: [String] = []

    @Option(
        name: .customLong("form-string"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("As -F, where a @ or < at the beginning has no meaning.", valueName: "name=text"))
    var literalForm: [String] = []

    @Flag(
        name: [.customShort("f"), .long],
        help: "As in curl, write no body of a response with the status of an error. As in HTTPie, send items as a form."
    )
    var fail = false

    @Option(
        name: [.customShort("A"), .long], parsing: .unconditional,
        help: ArgumentHelp("The field User-Agent.", valueName: "name"))
    var userAgent: String?

    @Option(
        name: [.customShort("e"), .long], parsing: .unconditional,
        help: ArgumentHelp("The field Referer.", valueName: "url"))
    var referer: String?

    @Option(
        name: [.customShort("b"), .long], parsing: .unconditional,
        help: ArgumentHelp("The field Cookie.", valueName: "name=value; …"))
    var cookie: String?

    @Flag(
        name: [
            .customShort("j"), .customShort("N"), .customLong("compressed"), .customLong("no-buffer"),
            .customLong("fail-with-body"), .customLong("http2"),
        ],
        help: ArgumentHelp(
            "Options of curl and HTTPie for what is so without them: JSON, compressed bodies, no buffer, a body also of an error, HTTP/2.",
            visibility: .hidden))
    var asAlways = false

    func validate() throws {
        let kinds = [!pieces.isEmpty, json != nil, !form.isEmpty || !literalForm.isEmpty].count { $0 }
        if kinds > 1 { throw ValidationError("-d, --json and -F exclude each other: a request has one body") }
        if head, kinds > 0, !isQuery { throw ValidationError("-I sends HEAD, which has no body") }
        if isQuery, json != nil || !form.isEmpty || !literalForm.isEmpty {
            throw ValidationError("-G is for -d and --data-urlencode")
        }
        _ = try fields
    }

    private var pieces: [DataPiece] {
        data.map { DataPiece($0) } + rawData.map { .text($0) } + encodedData.map { DataPiece(encoding: $0) }
    }

    private var fields: [FormField] {
        get throws { try form.map { try FormField($0) } + literalForm.map { try FormField($0, isLiteral: true) } }
    }

    /// Returns the request for the words of the command and its options, and its body.
    func request(_ words: RequestWords, headers: Headers) throws -> (Request, SentBody?) {
        let itemsBody = ItemsBody(words.items, isForm: fail)
        let body = try optionsBody() ?? itemsBody.body()
        var url = words.url
        if isQuery { Self.add(try queryText(), to: &url) }
        var query = Request.Query()
        for case .query(let name, let value) in words.items { query.append(name, value) }
        let method = head ? .head : method ?? words.method ?? (body == nil ? .get : .post)
        let request = try Client().request(
            method, url, query: query, headers: fields(of: words, headers: headers, body), body: body?.body ?? .none)
        return (request, body)
    }

    /// Checks that options and items do not give two bodies.
    func check(_ words: RequestWords) throws {
        let hasItems = words.items.contains { $0.isBody }
        guard hasItems else { return }
        if head { throw ValidationError("-I sends HEAD, which has no body") }
        if json != nil {
            throw ValidationError("--json has a body, and the items are another: without --json, items are JSON")
        }
        if !pieces.isEmpty && !isQuery || !form.isEmpty || !literalForm.isEmpty {
            throw ValidationError("-d and -F have a body, and the items are another")
        }
    }

    private func optionsBody() throws -> SentBody? {
        if let json {
            return try SentBody(pieces: [DataPiece(json)], contentType: "application/json")
        }
        let fields = try fields
        if !fields.isEmpty { return try SentBody(form: fields) }
        let pieces = pieces
        return pieces.isEmpty || isQuery ? nil : try SentBody(pieces: pieces, contentType: SentBody.formType)
    }

    private func queryText() throws -> String {
        try pieces.map { String(decoding: try $0.bytes(), as: UTF8.self) }.joined(separator: "&")
    }

    /// Adds a query that is escaped already.
    private static func add(_ query: String, to url: inout String) {
        if query.isEmpty { return }
        let end = url.firstIndex(of: "#") ?? url.endIndex
        url.insert(contentsOf: (url[..<end].contains("?") ? "&" : "?") + query, at: end)
    }

    /// Returns the header fields: those of -H, those with options of their own, and those of items.
    private func fields(of words: RequestWords, headers: Headers, _ body: SentBody?) -> Headers {
        var headers = headers
        for (name, value) in [("User-Agent", userAgent), ("Referer", referer), ("Cookie", cookie)] {
            if let value, !headers.contains(name) { headers[name] = value }
        }
        for case .header(let name, let value) in words.items { headers.append(name: name, value: value) }
        if body?.contentType == "application/json", !headers.contains("Accept") {
            headers["Accept"] = json == nil ? "application/json, */*;q=0.5" : "application/json"
        }
        return headers
    }
}
