import Testing

@testable import TernEngine

/// Checks the malformed and unusual responses that the tests and the documentation of llhttp, curl, hyper and Go
/// discuss, each whole, byte by byte and at every split.
@Suite struct HTTP1ParserTests {
    private static let length = "Content-Length: 5\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    private func refuse(
        _ text: String, request: HTTP1Parser.Request = .test(), kind: EngineError.Kind = .malformedResponse,
        reason: String = "", location: SourceLocation = #_sourceLocation
    ) {
        let (whole, different) = ParsedResponse.everySplit(Array(latin: text), request: request, ends: true)
        #expect(different == nil, "\(text.debugDescription)", sourceLocation: location)
        #expect(whole.error?.kind == kind, "\(text.debugDescription): \(whole)", sourceLocation: location)
        let said = whole.error?.reason ?? ""
        #expect(reason.isEmpty || said.contains(reason), "\(text.debugDescription): \(said)", sourceLocation: location)
        #expect(!said.contains { $0.isNewline || $0 == "\u{1B}" }, sourceLocation: location)
    }

    @discardableResult
    private func accept(
        _ text: String, body: String, isReusable: Bool = true, request: HTTP1Parser.Request = .test(),
        location: SourceLocation = #_sourceLocation
    ) -> ParsedResponse {
        let (whole, different) = ParsedResponse.everySplit(Array(latin: text), request: request, ends: true)
        #expect(different == nil, "\(text.debugDescription)", sourceLocation: location)
        #expect(
            whole.end == .complete(isReusable: isReusable), "\(text.debugDescription): \(whole)",
            sourceLocation: location)
        #expect(whole.text == body, "\(text.debugDescription)", sourceLocation: location)
        return whole
    }

    // MARK: The status line (RFC 9112 §4)

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200), ("HTTP/1.1 200 ", 200), ("HTTP/1.1 200", 200), ("HTTP/1.0 404 Not Found", 404),
        ("HTTP/1.1  200 OK", 200), ("HTTP/1.1    999 \t x", 999), ("HTTP/1.1 600 caf\u{E9} \u{80}\u{FF}", 600),
        ("HTTP/1.1 299 Fine, thank you: yes", 299),
    ])
    func statusLinesOfTheRFCAreAccepted(line: String, status: Int) {
        let result = accept(
            "\(line)\r\n\(Self.length)\r\nfirst", body: "first", isReusable: line.hasPrefix("HTTP/1.1"))
        #expect(result.head?.status == status)
        #expect(result.head?.bytes == Array(latin: "\(line)\r\n\(Self.length)\r\n"))
    }

    @Test(arguments: [
        "HTTP/1.1 200OK", "HTTP/1.1 099 OK", "HTTP/1.1 20 OK", "HTTP/1.1 ", "HTTP/1.1 2x0 OK", "HTTP/1.1 2000 OK",
        "HTTP/1.1 -20 OK", "HTTP/1.1 +20 OK", "HTTP/1.1 20", "HTTP/1.1 abc", "HTTP/1.1 \u{1B}[31m200 OK",
        "HTTP/1.1 200\tOK", "HTTP/1.1 \t200 OK", "HTTP/1.1 200 O\0K", "HTTP/1.1 200 O\rK", "HTTP/1.1 200\u{B}OK",
        "HTTP/1.1 200 OK\r", "HTTP/1.1 200 \u{7F}", "HTTP/1.1 \u{B2}00 OK", "http/1.1 200 OK", "HTTP 200 OK",
        " HTTP/1.1 200 OK", "\tHTTP/1.1 200 OK", "ICY 200 OK", "HTTPS/1.1 200 OK", "garbage", "SSH-2.0-OpenSSH_9.2",
        "\u{1}\u{2}\u{3}\u{4}", "\u{FEFF}HTTP/1.1 200 OK", "\0HTTP/1.1 200 OK", "hTTP/1.1 200 OK", "HTPP/1.1 200 OK",
        "<html>", "HTTP:/1.1 200 OK",
    ])
    func malformedStatusLinesAreRefused(line: String) {
        refuse("\(line)\r\n\(Self.length)\r\nfirst", reason: "status line is malformed (RFC 9112 §4)")
    }

    @Test(arguments: [
        "HTTP/2 200 ", "HTTP/2 200 OK", "HTTP/2.0 200 OK", "HTTP/3 200", "HTTP/1.2 200 OK", "HTTP/1 200 OK",
        "HTTP/0.9 200 OK", "HTTP/11.1 200 OK", "HTTP/1.11 200 OK", "HTTP/1.1", "HTTP/01.1 200 OK", "HTTP/1,1 200 OK",
        "HTTP/1.1\t200 OK", "HTTP/1.1200 OK", "HTTP/7.0 200 OK", "HTTP/\u{1B}[31m9.9 200 OK", "HTTP/1.x 200 OK",
        "HTTP/ 1.1 200 OK", "HTTP/", "HTTP/1.1.1 200 OK", "HTTP/-1.1 200 OK",
    ])
    func otherVersionsAreRefused(line: String) {
        refuse("\(line)\r\n\(Self.length)\r\nfirst", reason: "names no version of HTTP that was asked for")
    }

    @Test(arguments: ["\r\n", "\n", "\r\n\r\n", "\r\n X: 1\r\n", "\r", "\r\r\n"])
    func aBlankFirstLineIsRefused(start: String) {
        refuse(start + "HTTP/1.1 200 OK\r\n\(Self.length)\r\nfirst", reason: "begins with a blank line")
    }

    @Test func firstBytesThatAreNotHTTPAreRefusedAtOnce() {
        for text in ["G", "HTT ", "HTTPS", "\r", "\u{16}\u{3}\u{1}"] {
            #expect(ParsedResponse(Array(latin: text)).error?.kind == .malformedResponse)
        }
    }

    // MARK: Fields (RFC 9112 §5)

    @Test(arguments: [
        "Content-Length : 5", "Content-Length\t: 5", "Transfer-Encoding : chunked", "X Y: 1", "X(y): 1",
        "X\u{1}: 1", "X\u{E9}: 1", "\"X\": 1", ": 1", "X", "X;y", "Content-Length\r: 5", "X\r", "\rX: 1", "X\0: 1",
        "{X}: 1", "X/y: 1", "X@y: 1", "[X]: 1", "X=y: 1", "X,y: 1", "X\\y: 1", "X\u{7F}: 1", "::", "\u{1B}[31m: a",
        "(X): 1", "X<: 1", "X>: 1", "X?: 1", "HTTP/1.1 200 OK",
    ])
    func fieldNamesThatAreNotTokensAreRefused(line: String) {
        let reason = "not a name, a colon and a value (RFC 9112 §5.1)"
        refuse("HTTP/1.1 200 OK\r\n\(line)\r\n\(Self.length)\r\nfirst", reason: reason)
        refuse("HTTP/1.1 200 OK\r\n\(Self.length)\(line)\r\n\r\nfirst", reason: reason)
        refuse("HTTP/1.1 103 Hints\r\n\(line)\r\n\r\nHTTP/1.1 200 OK\r\n\(Self.length)\r\nfirst", reason: reason)
        refuse("\(Self.chunked)5\r\nfirst\r\n0\r\nX-First: 1\r\n\(line)\r\n\r\n", reason: reason)
    }

    @Test(arguments: [
        ("X: \0", "control"), ("X: a\u{1}b", "control"), ("X: a\u{7F}", "control"), ("X: \u{1B}[31m", "control"),
        ("X: 12345678\u{8}12345678", "control"), ("X: a\u{B}b", "control"), ("X: a\u{C}", "control"),
        ("X: a\rb", "CR without"), ("X: \r", "CR without"), ("X: a\r", "CR without"), ("X:\r\r", "CR without"),
        ("Content-Length: 5\r", "CR without"), ("Content-Length: 5\0", "control"),
    ])
    func controlsInValuesAreRefused(line: String, reason: String) {
        refuse("HTTP/1.1 200 OK\r\n\(line)\r\n\(Self.length)\r\nfirst", reason: reason)
        refuse("HTTP/1.1 200 OK\r\nA: b\r\n \(line)\r\n\(Self.length)\r\nfirst", reason: reason)
        refuse("\(Self.chunked)5\r\nfirst\r\n0\r\n\(line)\r\n\r\n", reason: reason)
    }

    @Test func everyControlInAValueIsRefused() {
        for byte in UInt8.min...UInt8.max {
            for count in 0..<17 {
                let value = [UInt8](repeating: 0x61, count: count) + [byte] + [UInt8](repeating: 0x62, count: 9)
                let bytes = Array("HTTP/1.1 200 OK\r\nX:".utf8) + value + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
                // LF ends the line; the rest of the value is no field.
                let isRefused = (byte < 0x20 && byte != 0x09) || byte == 0x7F
                #expect((ParsedResponse(bytes).error != nil) == isRefused, "\(byte) at \(count)")
            }
        }
    }

    @Test func everyByteOfANameIsCheckedAgainstTheRFC() {
        let others = Array("!#$%&'*+-.^_`|~".utf8)
        for byte in UInt8.min...UInt8.max where byte != 0x0A && byte != UInt8(ascii: ":") {
            let bytes = Array("HTTP/1.1 200 OK\r\nX".utf8) + [byte] + Array(": 1\r\nContent-Length: 0\r\n\r\n".utf8)
            let character = Character(Unicode.Scalar(byte))
            let isToken = byte < 0x80 && (character.isLetter || character.isNumber || others.contains(byte))
            #expect((ParsedResponse(bytes).error == nil) == isToken, "\(byte)")
        }
    }

    @Test(arguments: [
        " X: 1\r\n\(Self.length)", "\t\r\n\(Self.length)", " \r\n\(Self.length)", " X: 1\r\n",
        "\tContent-Length: 5\r\n",
    ])
    func aFoldedFirstLineIsRefused(fields: String) {
        refuse("HTTP/1.1 200 OK\r\n\(fields)\r\nfirst", reason: "first header field begins with a blank")
        refuse("HTTP/1.1 103 Hints\r\n\(fields)\r\n", reason: "first header field begins with a blank")
        refuse("\(Self.chunked)0\r\n\(fields)\r\n", reason: "first header field begins with a blank")
    }

    @Test(arguments: [
        "Content-Length: 5\r\n 6", "Content-Length:\r\n 5", "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked\r\n , x", "Content-Length: 5\r\n ",
    ])
    func foldedFramingFieldsAreRefused(fields: String) {
        let text = "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nfirst"
        // Some values are refused before their fold.
        let (whole, different) = ParsedResponse.everySplit(Array(text.utf8), ends: true)
        #expect(different == nil && whole.error?.kind == .malformedResponse)
        let isEmptyLength = fields == "Content-Length:\r\n 5"
        #expect(whole.error?.reason.contains(isEmptyLength ? "not one number" : "is folded") == true)
    }

    /// A user agent replaces each fold by a blank (RFC 9112 §5.2). The options of the connection are then read part by
    /// part, so that it carries no further request.
    @Test(arguments: [
        ("Content-Encoding: gzip\r\n , gzip", "Content-Encoding: gzip , gzip", true),
        ("Content-Encoding:\r\n gzip", "Content-Encoding: gzip", true),
        ("Connection: a\r\n\tclose", "Connection: a close", false),
        ("Connection: keep-\r\n alive", "Connection: keep- alive", false),
        ("Keep-Alive: timeout=5,\r\n max=2", "Keep-Alive: timeout=5, max=2", false),
        ("Set-Cookie: a=b;\r\n Secure", "Set-Cookie: a=b; Secure", true),
    ])
    func otherFoldedFieldsAreJoined(fields: String, joined: String, isReusable: Bool) {
        let text = "HTTP/1.1 200 OK\r\n\(fields)\r\nContent-Length: 5\r\n\r\nfirst"
        let (result, different) = ParsedResponse.everySplit(Array(text.utf8))
        #expect(different == nil && result.error == nil)
        #expect(result.headText == "HTTP/1.1 200 OK\r\n\(joined)\r\nContent-Length: 5\r\n\r\n")
        #expect(result.end == .complete(isReusable: isReusable))
    }

    @Test(arguments: [
        ("X: a\r\n b\r\n\tc", "X: a b c"), ("X:\r\n a", "X: a"), ("X: a \t\r\n \t b", "X: a b"), ("X: a\r\n ", "X: a"),
        ("X: a\r\n \r\n b", "X: a b"), ("X:\r\n \r\n ", "X:"), ("X: a\n b\n\tc \t", "X: a b c"),
    ])
    func foldedLinesAreJoinedByABlank(fields: String, joined: String) {
        for (before, after) in [("", ""), ("A: b\r\n", ""), ("", "C: d\r\n"), ("A: b\r\n", "C: d\r\n")] {
            let result = accept(
                "HTTP/1.1 200 OK\r\n\(Self.length)\(before)\(fields)\r\n\(after)\r\nfirst", body: "first")
            #expect(result.headText == "HTTP/1.1 200 OK\r\n\(Self.length)\(before)\(joined)\r\n\(after)\r\n")
            let trailers = accept("\(Self.chunked)0\r\n\(before)\(fields)\r\n\(after)\r\n", body: "")
            #expect(trailers.trailers == Array("\(before)\(joined)\r\n\(after)".utf8))
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\nX: 1\nContent-Length: 5\n\nfirst", "HTTP/1.1 200 OK\nX: 1\r\nContent-Length: 5\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nX: 1\nContent-Length: 5\r\n\nfirst",
    ])
    func bareLineFeedsEndLinesOfAHead(text: String) {
        let result = accept(text, body: "first")
        #expect(result.headText == "HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 5\r\n\r\n")
    }

    @Test func unusualFieldsAreKeptAsTheyAre() {
        let fields = "!#$%&'*+-.^_`|~09aZ: 1\r\nEmpty:\r\nBlank: \t \r\nX-Latin: caf\u{E9}\r\nA:b:c\r\n: "
        let text = "HTTP/1.1 200\r\n\(fields.dropLast(2))CONTENT-length:\t5 \r\n\r\nfirst"
        let result = accept(text, body: "first")
        #expect(result.head?.bytes == Array(latin: String(text.dropLast(5))))
        #expect(result.head?.contentLength == 5)
    }

    @Test(arguments: [
        ("Set-Cookie: a=b", true, false), ("SET-COOKIE:", true, false), ("Content-Encoding: gzip", false, true),
        ("content-encoding:", false, true), ("Set-Cookie2: a", false, false), ("Set_Cookie: a", false, false),
        ("Content_Encoding: a", false, false), ("XSet-Cookie: a", false, false),
    ])
    func fieldsThatMatterAreNoted(line: String, setsCookies: Bool, isEncoded: Bool) {
        let result = accept("HTTP/1.1 200 OK\r\n\(Self.length)\(line)\r\n\r\nfirst", body: "first")
        #expect(result.head?.setsCookies == setsCookies && result.head?.isEncoded == isEncoded)
    }

    // MARK: Bytes, eight at a time

    /// Every byte at every place of texts of every length up to three words, at every distance from the start of the
    /// memory.
    @Test func classesOfEightBytesAreThoseOfEachByte() {
        for start in 0..<10 {
            for length in 1..<25 {
                for place in [0, length / 2, length - 1] {
                    // The bytes around the text belong to neither class.
                    var bytes =
                        [UInt8](repeating: 0, count: start) + [UInt8](repeating: UInt8(ascii: "-"), count: length)
                    bytes.append(0)
                    for index in 0..<length where index % 3 == 1 { bytes[start + index] = UInt8(ascii: "Z") }
                    for byte in UInt8.min...UInt8.max {
                        bytes[start + place] = byte
                        let (control, end) = unsafe bytes.withUnsafeBytes { memory in
                            guard let base = memory.baseAddress else { return (Int?.none, 0) }
                            return unsafe (
                                HTTPBytes.firstControl(base, in: start..<(start + length)),
                                HTTPBytes.endOfToken(base, in: start..<(start + length))
                            )
                        }
                        let isControl = !HTTPBytes.isText(byte)
                        let isToken = HTTPBytes.isToken(byte)
                        let expected = start + (isToken ? length : place)
                        guard control == (isControl ? start + place : nil), end == expected else {
                            Issue.record(
                                "byte \(byte) at \(place) of \(length) from \(start): \(String(describing: control)), \(end)"
                            )
                            return
                        }
                    }
                }
            }
        }
    }
}
