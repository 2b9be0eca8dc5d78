#if os(Linux)
import Foundation
import TernTesting
import Testing

@testable import TernTool

/// A command that fingers know, and the same with `tern`.
struct Reflex: Sendable, CustomTestStringConvertible {
    /// The command of curl or HTTPie. `URL` and `HOST` stand for those of the server.
    let other: String
    let tern: String
    /// The requests that the server receives: method, target, type and body, and the fields that the row is about.
    let requests: [String]
    /// The standard output; nil where programs differ.
    var output: String? = "hello"
    /// The files in the folder afterwards.
    var files: [String] = []
    /// Whether the other program writes the same files where its output is no terminal.
    var isSameInPipe = true
    /// The text of standard input.
    var input = ""

    var testDescription: String { "\(other) = \(tern)" }

    /// Splits a command at blanks, and keeps what is in single quotes together.
    static func words(_ command: String, _ server: LoopbackServer) -> [String] {
        var (words, word, isQuoted) = ([String](), "", false)
        for character in command {
            switch character {
            case "'": isQuoted.toggle()
            case " " where !isQuoted:
                words.append(word)
                word = ""
            default: word.append(character)
            }
        }
        let host = server.url.absoluteString.dropFirst("http://".count).prefix { $0 != "/" }
        return (words + [word]).map {
            $0.replacing("URL", with: "http://\(host)").replacing("HOST", with: host)
                .replacing("PORT", with: "\(server.port)")
        }
    }
}

/// The ten commands of curl and of HTTPie that are used most, and some of their variants. Where the other program is
/// installed, it runs too, and the server must receive the same from it.
@Suite("tern beside curl and HTTPie", .timeLimit(.minutes(2)))
struct ReflexTests {
    private static let form = "application/x-www-form-urlencoded"

    static let curl: [Reflex] = [
        Reflex(other: "curl URL/a", tern: "tern URL/a", requests: ["GET /a"]),
        Reflex(other: "curl HOST/a?b=c", tern: "tern HOST/a?b=c", requests: ["GET /a?b=c"]),
        Reflex(other: "curl localhost:PORT/a", tern: "tern localhost:PORT/a", requests: ["GET /a"]),
        Reflex(
            other: "curl -sS -o file URL/a", tern: "tern -sS -o file URL/a", requests: ["GET /a"], output: "",
            files: ["file"]),
        Reflex(
            other: "curl -sO URL/a/name.txt", tern: "tern -sO URL/a/name.txt", requests: ["GET /a/name.txt"],
            output: "",
            files: ["name.txt"]),
        Reflex(
            other: "curl -sOJ URL/suggested", tern: "tern -sOJ URL/suggested", requests: ["GET /suggested"],
            output: nil,
            files: ["report.txt"]),
        Reflex(other: "curl -sI URL/a", tern: "tern -sI URL/a", requests: ["HEAD /a"], output: nil),
        Reflex(other: "curl -sL URL/moved", tern: "tern -sL URL/moved", requests: ["GET /moved", "GET /a"]),
        Reflex(
            other: "curl -s URL/moved", tern: "tern -s --no-location URL/moved", requests: ["GET /moved"], output: ""),
        Reflex(other: "curl -fsSL URL/moved", tern: "tern -fsSL URL/moved", requests: ["GET /moved", "GET /a"]),
        Reflex(
            other: "curl -sX POST -d a=b -d c=d URL/a", tern: "tern -sX POST -d a=b -d c=d URL/a",
            requests: ["POST /a \(form) a=b&c=d"]),
        Reflex(other: "curl -sXDELETE URL/a", tern: "tern -sXDELETE URL/a", requests: ["DELETE /a"]),
        Reflex(
            other: "curl -s -H 'X-Test: one' -H 'X-Test: two' URL/a",
            tern: "tern -s -H 'X-Test: one' -H 'X-Test: two' URL/a", requests: ["GET /a X-Test: one X-Test: two"]),
        Reflex(
            other: "curl -s -u user:secret URL/a", tern: "tern -s -u user:secret URL/a",
            requests: ["GET /a Authorization: Basic dXNlcjpzZWNyZXQ="]),
        Reflex(
            other: "curl -s http://user:secret@HOST/a", tern: "tern -s http://user:secret@HOST/a",
            requests: ["GET /a Authorization: Basic dXNlcjpzZWNyZXQ="]),
        Reflex(
            other: "curl -s -F text=hello -F 'file=@data;type=text/css' URL/a",
            tern: "tern -s -F text=hello -F 'file=@data;type=text/css' URL/a",
            requests: ["POST /a multipart/form-data text=hello file=data,text/css,one\ntwo\n"]),
        Reflex(
            other: "curl -s --json {\"a\":1} URL/a", tern: "tern -s --json {\"a\":1} URL/a",
            requests: ["POST /a application/json {\"a\":1} Accept: application/json"]),
        Reflex(
            other: "curl -s -x HOST http://name.invalid/a", tern: "tern -s -x HOST http://name.invalid/a",
            requests: ["GET http://name.invalid/a"]),
        Reflex(
            other: "curl -s --data-binary @data URL/a", tern: "tern -s --data-binary @data URL/a",
            requests: ["POST /a \(form) one\ntwo\n"]),
        Reflex(
            other: "curl -s -d @- URL/a", tern: "tern -s -d @- URL/a", requests: ["POST /a \(form) typed"],
            input: "typed"),
        Reflex(
            other: "curl -s -G -d a=b --data-urlencode 'c=d&e' URL/a",
            tern: "tern -s -G -d a=b --data-urlencode 'c=d&e' URL/a",
            requests: ["GET /a?a=b&c=d%26e"]),
        Reflex(
            other: "curl -s -b a=b -A agent -e http://from/ URL/a",
            tern: "tern -s -b a=b -A agent -e http://from/ URL/a",
            requests: ["GET /a Cookie: a=b User-Agent: agent Referer: http://from/"]),
        Reflex(
            other: "curl -s -o /dev/null URL/a", tern: "tern -s -o /dev/null URL/a", requests: ["GET /a"], output: ""),
        Reflex(
            other: "curl -sS --compressed -m 20 --connect-timeout 9 URL/a",
            tern: "tern -sS --compressed -m 20 --connect-timeout 9 URL/a", requests: ["GET /a"]),
    ]

    static let httpie: [Reflex] = [
        Reflex(other: "http URL/a", tern: "tern URL/a", requests: ["GET /a"]),
        Reflex(other: "http :PORT/a", tern: "tern :PORT/a", requests: ["GET /a"]),
        Reflex(other: "http DELETE URL/a", tern: "tern DELETE URL/a", requests: ["DELETE /a"]),
        Reflex(
            other: "http POST URL/a name=John age:=29", tern: "tern POST URL/a name=John age:=29",
            requests: ["POST /a application/json {\"age\":29,\"name\":\"John\"} Accept: application/json, */*;q=0.5"]),
        Reflex(
            other: "http PUT URL/a X-Test:one name=J", tern: "tern PUT URL/a X-Test:one name=J",
            requests: ["PUT /a application/json {\"name\":\"J\"} X-Test: one Accept: application/json, */*;q=0.5"]),
        Reflex(other: "http URL/a q==x z==1", tern: "tern URL/a q==x z==1", requests: ["GET /a?q=x&z=1"]),
        Reflex(
            other: "http -f POST URL/a name=John", tern: "tern -f POST URL/a name=John",
            requests: ["POST /a \(form) name=John"]),
        Reflex(
            other: "http -f POST URL/a text=hello file@data", tern: "tern -f POST URL/a text=hello file@data",
            requests: ["POST /a multipart/form-data text=hello file=data,-,one\ntwo\n"]),
        Reflex(
            other: "http -a user:secret URL/a", tern: "tern -a user:secret URL/a",
            requests: ["GET /a Authorization: Basic dXNlcjpzZWNyZXQ="]),
        Reflex(
            other: "http --download URL/suggested", tern: "tern --download URL/suggested", requests: ["GET /suggested"],
            output: nil, files: ["report.txt"], isSameInPipe: false),
        Reflex(other: "http --follow URL/moved", tern: "tern --follow URL/moved", requests: ["GET /moved", "GET /a"]),
        Reflex(
            other: "http --verify=no URL/a", tern: "tern --verify=no URL/a", requests: ["GET /a"]),
        Reflex(
            other: "http --proxy http:http://HOST http://name.invalid/a",
            tern: "tern --proxy http:http://HOST http://name.invalid/a", requests: ["GET http://name.invalid/a"]),
        Reflex(
            other: "http URL/a text=@data", tern: "tern URL/a text=@data",
            requests: ["POST /a application/json {\"text\":\"one\\ntwo\\n\"} Accept: application/json, */*;q=0.5"]),
    ]

    @Test(arguments: curl) func reflexOfCurlWorks(reflex: Reflex) async throws {
        try await check(reflex, installed: "/usr/bin/curl")
    }

    @Test(arguments: httpie) func reflexOfHTTPieWorks(reflex: Reflex) async throws {
        try await check(reflex, installed: Self.program("http"))
    }

    private func check(_ reflex: Reflex, installed other: String?) async throws {
        let seen = Seen()
        let server = try LoopbackServer { try Self.answer($0, seen) }
        defer { server.stop() }
        for command in [reflex.tern, reflex.other] {
            let tool = try ToolProcess()
            defer { tool.remove() }
            try tool.write("one\ntwo\n".utf8, to: "data")
            let isTern = command == reflex.tern
            guard let program = isTern ? try ToolProcess.path("tern") : other,
                FileManager.default.isExecutableFile(atPath: program)
            else { continue }
            seen.removeAll()
            var words = Array(Reflex.words(command, server).dropFirst())
            // HTTPie reads standard input, which is no terminal here.
            if !isTern, command.hasPrefix("http") { words.insert("--ignore-stdin", at: 0) }
            let result = try await tool.run(program, words, input: reflex.input)
            #expect(result.code == 0, "\(command): \(result.messages)")
            // The table leaves out the fields that each program sends by itself.
            let requests = seen.all.map { Self.shown($0, as: reflex.requests.joined()) }
            #expect(requests == reflex.requests, "\(command)")
            if isTern || reflex.isSameInPipe {
                #expect(try tool.names.filter { $0 != "data" } == reflex.files, "\(command)")
            }
            // HTTPie writes the head too where its output is a terminal.
            if let output = reflex.output { #expect(result.text == output, "\(command)") }
        }
    }

    /// The fields that are compared where a row has them.
    private static let fields = ["X-Test", "Authorization", "Cookie", "User-Agent", "Referer", "Accept"]

    private static func answer(_ exchange: LoopbackServer.Exchange, _ seen: Seen) throws {
        let request = exchange.request
        var parts = ["\(request.method) \(request.target)"]
        let body = String(decoding: try exchange.readBody(), as: UTF8.self)
        if let type = request["Content-Type"] {
            let name = String(type.prefix { $0 != ";" })
            parts.append(name)
            if name == "multipart/form-data" {
                parts.append(Self.formText(body))
            } else {
                parts.append(name == "application/json" ? Self.sortedJSON(body) : body)
            }
        }
        for field in fields { parts += request.values(of: field).map { "\u{1}\(field): \($0)" } }
        seen.add(parts.joined(separator: " "))
        switch request.path {
        case "/moved": try exchange.respond(status: 302, headers: [("Location", "/a")])
        case "/suggested":
            try exchange.respond(
                headers: [("Content-Disposition", "attachment; filename=\"report.txt\"")],
                body: "hello".utf8.map(\.self))
        default: try exchange.respond(text: "hello")
        }
    }

    /// Returns what the server saw, without the fields that the table does not name.
    private static func shown(_ seen: String, as expected: String) -> String {
        seen.split(separator: " \u{1}").enumerated().filter { index, part in
            index == 0 || expected.contains(" " + part.prefix { $0 != ":" } + ":")
        }.map { String($1) }.joined(separator: " ")
    }

    /// Returns the fields of a form: `name=text`, and `name=filename,type,content` for a file.
    private static func formText(_ body: String) -> String {
        guard let end = body.firstRange(of: "\r\n") else { return body }
        return body.split(separator: body[..<end.lowerBound]).compactMap { part -> String? in
            guard let head = part.firstRange(of: "\r\n\r\n") else { return nil }
            let content = part[head.upperBound...].dropLast(1)
            let fields = part[..<head.lowerBound]
            func value(_ name: String, until end: Character) -> Substring? {
                fields.firstRange(of: name).map { fields[$0.upperBound...].prefix { $0 != end } }
            }
            let name = value(" name=\"", until: "\"") ?? "?"
            guard let file = value("filename=\"", until: "\"") else { return "\(name)=\(content)" }
            let type = value("Content-Type: ", until: "\r\n").map(String.init)
            return "\(name)=\(file),\(type == "application/octet-stream" ? "-" : type ?? "-"),\(content)"
        }.joined(separator: " ")
    }

    private static func sortedJSON(_ body: String) -> String {
        guard let value = try? JSONSerialization.jsonObject(with: Data(body.utf8)),  // Shown as it is.
            let data = try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
        else { return body }
        return String(decoding: data, as: UTF8.self)
    }

    /// The path of a program in PATH.
    static func program(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
#endif
