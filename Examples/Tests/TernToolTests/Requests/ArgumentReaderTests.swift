#if os(Linux)
import Foundation
import Tern
import Testing

@testable import TernTool

/// The arguments as curl and HTTPie write them, and the errors for those that are not known.
struct ArgumentReaderTests {
    @Test(arguments: [
        ("http://a", "get http://a"), ("-v a.test", "get -v a.test"), ("get a", "get a"), ("download a", "download a"),
        ("-fsSL a", "get -f -s -S -L a"), ("-sXPOST a", "get -s -X POST a"), ("-Fname=@x a", "get -F name=@x a"),
        ("-sSo file a", "get -s -S -o file a"), ("-d -fsSL a", "get -d -fsSL a"), ("-o=file a", "get -o=file a"),
        ("-kI -- -fsS", "get -k -I -- -fsS"), ("download -sL a", "download -s -L a"),
        ("queue add -oa b", "queue add -o a b"),
        ("-sZ a", "get -sZ a"), ("--help", "--help"), ("--version", "--version"), ("help get", "help get"),
        ("--generate-completion-script bash", "--generate-completion-script bash"), ("", ""), ("-", "get -"),
    ])
    func argumentsAreCompleted(arguments: String, completed: String) {
        let words = arguments.split(separator: " ").map(String.init)
        #expect(ArgumentReader.completed(words).joined(separator: " ") == completed)
    }

    @Test(arguments: [
        ("get --silant a", "Unknown option '--silant'. Did you mean '--silent'?"),
        ("get --ouput=x a", "Unknown option '--ouput'. Did you mean '--output'?"),
        ("get --max 1 a", "Unknown option '--max'. Did you mean '--max-time'?"),
        ("get --segments 2 a", "Unknown option '--segments'. 'tern download' has it."),
        ("get -l a", "Unknown option '-l'. Did you mean '-L'?"),
        ("get -sZ a", "Unknown option '-Z'."),
        ("get -C - a", "Unknown option '-C': 'tern download -c' continues a file."),
        ("get --upload-file x a", "Unknown option '--upload-file': 'tern upload URL FILE' sends a file."),
        ("queue add --chekcsum x a", "Unknown option '--chekcsum'. Did you mean '--checksum'?"),
        ("get --zzzzzzzz a", "Unknown option '--zzzzzzzz'."),
        ("get --\u{1B}[2J a", "Unknown option '--\u{FFFD}[2J'."),
    ])
    func unknownOptionNamesTheNearest(arguments: String, complaint: String) {
        let words = arguments.split(separator: " ").map(String.init)
        #expect(ArgumentReader.complaint(about: words) == complaint)
    }

    @Test(arguments: [
        "get -d --silant a", "get -- --silant", "get -fsSL a", "get -Xsilant a", "get --output=--silant a",
    ])
    func valuesAreNoOptions(arguments: String) {
        #expect(ArgumentReader.complaint(about: arguments.split(separator: " ").map(String.init)) == nil)
    }

    @Test(arguments: [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ouput", "output", 1), ("tset", "test", 1)])
    func distanceCountsChangedLetters(one: String, other: String, distance: Int) {
        #expect(OptionTable.distance(one, other) == distance)
        #expect(OptionTable.distance(other, one) == distance)
    }

    @Test(arguments: ["get", "download", "events", "ws", "upload", "image", "cache"])
    func everyShortOptionOfACommandHasOneMeaning(name: String) throws {
        let names = try #require(ArgumentReader.table(of: name)).options.flatMap(\.names)
        #expect(!names.isEmpty && Set(names).count == names.count, "\(names)")
    }

    // MARK: Words

    @Test(arguments: [
        ("a.test", "- https://a.test"), ("POST a.test", "POST https://a.test"),
        ("post localhost/x", "POST http://localhost/x"),
        ("PURGE :80", "PURGE http://localhost:80"), ("localhost a=b", "- http://localhost"), ("GET", "- https://GET"),
        ("host q==1", "- https://host"),
    ])
    func methodIsTheFirstWord(words: String, expected: String) throws {
        let words = try RequestWords(words.split(separator: " ").map(String.init))
        #expect("\(words.method?.rawValue ?? "-") \(words.url)" == expected)
    }

    @Test(arguments: [
        ("a:b", RequestItem.header(name: "a", value: "b")), ("a==b", .query(name: "a", value: "b")),
        ("a=b", .text(name: "a", value: "b")), ("a:=1", .json(name: "a", value: "1")),
        ("a@b", .file(name: "a", path: "b")),
        ("a=@b", .textFile(name: "a", path: "b")), ("a:=@b", .jsonFile(name: "a", path: "b")),
        ("a=b=c:d@e", .text(name: "a", value: "b=c:d@e")), ("a\\:b=c", .text(name: "a:b", value: "c")),
        ("a\\\\=c", .text(name: "a\\", value: "c")), ("a=", .text(name: "a", value: "")),
        ("a\\n=c", .text(name: "a\\n", value: "c")),
        ("Authorization:Basic a=", .header(name: "Authorization", value: "Basic a=")),
    ])
    func itemIsSplitAtItsFirstSeparator(word: String, item: RequestItem) throws {
        #expect(try RequestItem(word) == item)
    }

    @Test(arguments: [
        ("donwload a.test/x", "there is no command 'donwload'. Did you mean 'download'?"),
        ("downlod", "there is no command 'downlod'. Did you mean 'download'?"),
        ("http://a http://user:secret@b/x?token=secret", "is a second URL: 'tern download' takes several"),
        ("a.test b", "'b' is no part of a request"), ("a.test =b", "is no part of a request"),
        ("POST download a=b", "'download' is a command: write it first"),
    ])
    func wordsThatMakeNoRequestAreExplained(words: String, text: String) {
        do {
            _ = try RequestWords(words.split(separator: " ").map(String.init))
            #expect(Bool(false), "no error")
        } catch {
            #expect("\(error)".contains(text) && !"\(error)".contains("secret"), "\(error)")
        }
    }

    // MARK: Values

    @Test(arguments: [
        ("name=text", FormField(name: "name", content: .text("text"))),
        ("a==b", FormField(name: "a", content: .text("=b"))),
        ("a=@b;type=c/d;filename=e", FormField(name: "a", content: .file(path: "b", name: "e", type: "c/d"))),
        ("a=@\"b;\\\"c\"; filename=\"d e\"", FormField(name: "a", content: .file(path: "b;\"c", name: "d e"))),
        ("a=<b;c", FormField(name: "a", content: .textFile(path: "b;c"))),
        ("a=", FormField(name: "a", content: .text(""))),
    ])
    func formFieldsAreThoseOfCurl(text: String, field: FormField) throws { #expect(try FormField(text) == field) }

    @Test(arguments: ["name", "=text", "", "a=@b;color=red"])
    func otherFormFieldsAreRefused(text: String) { #expect(throws: (any Error).self) { try FormField(text) } }

    @Test(arguments: [
        ("a b", DataPiece.text("a%20b")), ("=a&b", .text("a%26b")), ("a=\u{E4}", .text("a=%C3%A4")),
        ("@f", .encodedFile(prefix: "", path: "f")), ("a@f", .encodedFile(prefix: "a=", path: "f")),
    ])
    func encodedDataIsThatOfCurl(text: String, piece: DataPiece) { #expect(DataPiece(encoding: text) == piece) }

    @Test(arguments: [
        ("a", "\"a\""), ("\"\\\n\t\r\u{1}", "\"\\\"\\\\\\n\\t\\r\\u0001\""),
        ("\u{E4}\u{1F600}\u{301}", "\"\u{E4}\u{1F600}\u{301}\""),
    ])
    func textsAreQuotedAsJSON(text: String, json: String) { #expect(JSONText.string(text) == json) }

    @Test(arguments: [
        ("host", "http proxy host:1080"), ("host:3128", "http proxy host:3128"), ("https://h", "https proxy h:443"),
        ("socks5h://u:p%40@h:1/", "socks5 proxy h:1"), ("socks5://[::1]:9", "socks5WithLocalNames proxy ::1:9"),
        ("all:http://h:8", "http proxy h:8"),
    ])
    func proxiesAreThoseOfCurl(text: String, proxy: String) throws {
        guard case .only(let found, _) = try ProxyText.proxies(text) else { return #expect(Bool(false)) }
        #expect(found.description == proxy)
    }

    @Test(arguments: ["ftp://u:secret@h", "u:secret@", "u:secret@h:0", "u:secret@h:x", "socks4://u:secret@h"])
    func otherProxiesAreRefusedWithoutTheirPasswords(text: String) {
        do {
            _ = try ProxyText.proxies(text)
            #expect(Bool(false), "no error")
        } catch {
            #expect(!"\(error)".contains("secret"))
        }
    }

    @Test func proxyCanBeForOneScheme() throws {
        guard case .schemes(let http, let https, _) = try ProxyText.proxies("https:http://h:8") else {
            return #expect(Bool(false))
        }
        #expect(http == nil && https?.port == 8)
        #expect(try ProxyText.proxies("") == .none)
    }
}
#endif
