import Tern
import Testing

@Suite("SuggestedFilename")
struct SuggestedFilenameTests {
    @Test(arguments: [
        ("attachment; filename=a.txt", "a.txt"), ("attachment; filename=\"a b.txt\"", "a b.txt"),
        ("ATTACHMENT;FILENAME=a.txt", "a.txt"), ("inline; filename = \"a\\\"b.txt\"", "a_b.txt"),
        ("attachment; filename=\"a;b.txt\"; x=y", "a;b.txt"), ("filename=a.txt", "a.txt"),
        ("attachment; filename=plain.txt; filename*=UTF-8''na%C3%AFve%20%E6%BC%A2.txt", "naïve 漢.txt"),
        ("attachment; filename*=utf-8'en'a%2Fb.txt; filename=x", "a_b.txt"),
        ("attachment; filename*=ISO-8859-1''caf%E9.txt", "café.txt"),
        ("attachment; filename*=koi8-r''x; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''%FF; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8x.txt; filename=fall.txt", "fall.txt"),
        ("attachment; filename=\"../../etc/passwd\"", "_.._etc_passwd"),
        ("attachment; filename=\"C:\\\\Windows\\\\x.exe\"", "C__Windows_x.exe"),
        ("attachment; filename=\"a\u{0}b\u{7}.txt\"", "ab.txt"), ("attachment; filename=\".bashrc\"", "bashrc"),
        ("attachment; filename=naïve.txt", "naïve.txt"), ("attachment; filename=\"unclosed.txt", "unclosed.txt"),
        ("attachment; filename=first; filename=second", "first"),
        // A damaged extended value (RFC 8187 §3.2.1) is ignored if there is another name.
        ("attachment; filename*=UTF-8''a%2; filename=fall.txt", "fall.txt"),
        ("attachment; filename=fall.txt; filename*=UTF-8''%zz%41", "fall.txt"),
        ("attachment; filename*=UTF-8''a%; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''naïve; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''%C3%28x; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=''x; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''..; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''; filename=fall.txt", "fall.txt"),
        ("attachment; filename*=UTF-8''a%2; filename*=UTF-8''b.txt; filename=fall.txt", "b.txt"),
        ("attachment; filename*=UTF-8''b.txt; filename*=UTF-8''c.txt", "b.txt"),
        // Without another one, it gives what can be read of it.
        ("attachment; filename*=UTF-8''na%C3%AFve%2.txt", "naïve%2.txt"),
        ("attachment; filename*=UTF-8''a%FFb.txt", "ab.txt"),
        ("attachment; filename*=UTF-8''naïve.txt", "naïve.txt"), ("attachment; filename*=x.txt", "x.txt"),
        ("attachment; filename*=\"UTF-8''a%20b.txt\"", "a b.txt"),
        ("attachment; filename*=UTF-8''a b (1).txt", "a b (1).txt"),
    ])
    func proposalOfTheServerIsUsed(header: String, expected: String) {
        #expect(SuggestedFilename.name(contentDisposition: header, target: nil) == expected)
    }

    @Test(
        arguments: [
            (nil, "http://h/a/b.iso?x=/y.txt", "b.iso"), (nil, "http://h/a/b.iso/", "b.iso"),
            (nil, "http://h/", "download"),
            (nil, "http://h/a%20b%2Fc.txt", "a b_c.txt"), (nil, "http://h/%C3%A9", "é"),
            (nil, "http://h/%2e%2e", "download"),
            ("attachment", "http://h/x.zip", "x.zip"), ("attachment; filename=\"\"", "http://h/x.zip", "x.zip"),
            ("attachment; filename=\"..\"", "http://h/x.zip", "x.zip"),
            ("attachment; filename=\"/\"", "http://h/x.zip", "x.zip"),
            ("attachment; filename=\" . \"", "http://h/", "download"), ("", "http://h/x", "x"), (nil, nil, "download"),
        ] as [(String?, String?, String)])
    func theURLIsTheFallback(header: String?, url: String?, expected: String) throws {
        let target = try url.map { try Target(absolute: $0) }
        #expect(SuggestedFilename.name(contentDisposition: header, target: target) == expected)
    }

    @Test(
        arguments: [
            ("a", "a"), ("  a.txt  ", "a.txt"), ("a.txt...", "a.txt"), ("...a", "a"), ("a/b\\c:d", "a_b_c_d"),
            ("", nil),
            (".", nil), ("..", nil), ("...", nil), (" ", nil), ("\u{0}\r\n", nil), ("/", nil), ("///", nil),
            ("../", nil),
            ("a\r\nb", "ab"), ("a\u{202E}gpj.exe", "agpj.exe"), ("a\u{2028}b", "ab"), ("tar.gz", "tar.gz"),
            ("-rf", "rf"), ("--", nil), (".-. -a", "a"), ("- .txt", "txt"), ("a-b", "a-b"),
            ("CON", "_CON"), ("nul.txt", "_nul.txt"), ("Aux .tar.gz", "_Aux .tar.gz"), ("COM1", "_COM1"),
            ("lpt9.x", "_lpt9.x"), ("com¹", "_com¹"), ("CONIN$", "_CONIN$"), ("CLOCK$", "_CLOCK$"), (" .con", "_con"),
            ("console", "console"), ("com", "com"), ("comx", "comx"), ("com12", "com12"), ("con_", "con_"),
            ("tern-0123456789abcdef.tern", "_tern-0123456789abcdef.tern"), ("tern-1.tern", "tern-1.tern"),
            ("👨‍👩‍👧.png", "👨‍👩‍👧.png"), ("~", nil), ("~root", "root"), ("-~.~a~", "a~"), ("a~b", "a~b"),
            ("a*?\"<>|b", "a______b"), ("\u{85}x", "x"),
        ] as [(String, String?)])
    func namesAreSanitized(proposed: String, expected: String?) {
        #expect(SuggestedFilename.sanitize(proposed) == expected)
    }

    /// One character can be longer than a name.
    @Test(arguments: [".bashrc", ".tar", ""]) func aCharacterThatIsTooLongIsCut(suffix: String) throws {
        // The last one takes minutes if the time grows with the square of the length.
        for count in [100, 126, 127, 128, 150, 100_000] {
            let name = try #require(
                SuggestedFilename.sanitize("a" + String(repeating: "\u{301}", count: count) + suffix))
            #expect(name.unicodeScalars.first == "a" && name.utf8.count <= 255)
            #expect(name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8))
        }
    }

    /// With a separator before it, an accent is no character of its own.
    @Test(arguments: ["\u{301}", "\u{200D}", "\u{20DD}", "\u{1F3FB}", "\u{0E33}", "\u{FE0F}"])
    func aNameDoesNotBeginWithAnAccent(accent: String) {
        #expect(SuggestedFilename.sanitize("\(accent)x") == "x")
        #expect(SuggestedFilename.sanitize("\(accent).\(accent)x") == "x")
        #expect(SuggestedFilename.sanitize("..\(accent)") == nil)
        #expect(FilePath.folder(of: "/a/\(accent)b") == "/a" && FilePath.name(of: "/a/\(accent)b") == "\(accent)b")
        // File systems allow names of 255 bytes.
        let long = Download.numbered("/tmp/\(String(repeating: "ä", count: 125)).txt", 12)
        #expect(long == "/tmp/\(String(repeating: "ä", count: 124))-12.txt")
        #expect(Download.numbered("/tmp/a.\(String(repeating: "b", count: 253))", 2).utf8.count == 5 + 255)
        let numbered = Download.numbered("/tmp/dl/\(accent)x.txt", 2)
        #expect(Array(numbered.utf8) == Array("/tmp/dl/\(accent)x-2.txt".utf8))
        #expect(FilePath.join("/a", "\(accent)b") == "/a/\(accent)b")
    }

    @Test func shortNamesStayInTheirFolder() {
        let alphabet = [".", "/", "\\", ":", " ", "\0", "a", "_", "\u{202E}", "é", "-", "\u{301}"]
        var names = [""]
        for _ in 1...4 { names += names.flatMap { name in alphabet.map { name + $0 } } }
        for name in Set(names) {
            guard let result = SuggestedFilename.sanitize(name) else { continue }
            let isSafe =
                !result.isEmpty && !result.hasPrefix(".") && !result.hasPrefix("-") && !result.hasSuffix(".")
                && !result.unicodeScalars.contains { "/\\:\0\u{202E}".unicodeScalars.contains($0) }
            if !isSafe { Issue.record("\(name.debugDescription) gives \(result.debugDescription)") }
            #expect(SuggestedFilename.sanitize(result) == result)
        }
    }

    @Test(arguments: ["x", "é", "漢", "👨‍👩‍👧"])
    func longNamesKeepTheirExtension(character: String) throws {
        let name = try #require(SuggestedFilename.sanitize(String(repeating: character, count: 300) + ".tar"))
        #expect(name.utf8.count <= 255)
        #expect(name.utf8.count > 255 - character.utf8.count)
        #expect(name.hasSuffix(".tar"))
        let extensionOnly = try #require(SuggestedFilename.sanitize("a." + String(repeating: character, count: 300)))
        #expect(extensionOnly.utf8.count <= 255)
        let blank = try #require(SuggestedFilename.sanitize(String(repeating: "a", count: 254) + " " + character + "."))
        #expect(blank.utf8.count <= 255 && blank.last?.isWhitespace == false)
    }
}
