import Testing

@testable import TernEngine

@Suite struct AlternativeServiceFieldTests {
    private static func read(_ values: String...) -> AlternativeServiceField? {
        AlternativeServiceField(values.map { Array($0.utf8) })
    }

    private static func offer(
        _ port: UInt16, host: String? = nil, ma: Int64 = 86_400, persist: Bool = false
    ) -> AlternativeServiceField.Offer {
        AlternativeServiceField.Offer(
            AlternativeService(host: host, port: port), lifetime: ma, isPersistent: persist)
    }

    private static let valid: [(String, [AlternativeServiceField.Offer])] = [
        (#"h3=":443""#, [offer(443)]),
        (#"h3=":443"; ma=60"#, [offer(443, ma: 60)]),
        (#" h3=":443" ;ma="60"; persist=1 "#, [offer(443, ma: 60, persist: true)]),
        (#"h3=":443"; persist=2; MA=7; x=y; z="a,b;c\"d""#, [offer(443, ma: 7)]),
        (#"h3="Alt.Example:8443""#, [offer(8443, host: "alt.example")]),
        (#"h3="[2001:DB8::1]:443""#, [offer(443, host: "2001:db8::1")]),
        (
            #"h3=":443", h3=":8443"; ma=5,h2="a:1", , h3=":1""#,
            [offer(443), offer(8443, ma: 5), offer(1)]
        ),
        (#"%68%33=":443", h%33=":444""#, [offer(443), offer(444)]),
        (#"h3=":4\43""#, [offer(443)]),
        // The time is bounded, and no number is too large to read.
        (#"h3=":443"; ma=99999999999999999999999999"#, [offer(443, ma: 2_592_000)]),
        (#"h3=":443"; ma=0"#, [offer(443, ma: 0)]),
    ]

    @Test(arguments: valid)
    func alternativesAreRead(_ value: String, _ offers: [AlternativeServiceField.Offer]) {
        #expect(Self.read(value) == .offered(offers))
    }

    /// A field with valid syntax takes earlier alternatives back, also without one over HTTP/3.
    @Test(arguments: [
        #"h2=":443""#, #"h3-29=":443""#, #"H3=":443""#, #"h33=":443""#, #"%68%3=":443""#, #"%6=":443""#, #"%zz=":443""#,
        #"h3="""#, #"h3="example.com""#, #"h3=":""#, #"h3=":0""#, #"h3=":65536""#, #"h3=":4430000""#, #"h3=":-1""#,
        #"h3=":44 3""#, #"h3="a b:443""#, #"h3="user@a:443""#, #"h3="a/b:443""#, #"h3="::1:443""#, #"h3="[]:443""#,
        #"h3="[fe80::1%25eth0]:443""#, #"h3="é:443""#, #"h3=":443"; ma=x"#, #"h3=":443"; ma=-1"#, #"h3=":443"; ma="""#,
    ])
    func uselessAlternativesAreLeftOut(_ value: String) {
        #expect(Self.read(value) == .offered([]))
        #expect(Self.read(value + #", h3=":1""#) == .offered([Self.offer(1)]))
    }

    @Test(arguments: [
        "", " ", ",", ", ,", "h3", "h3=", "h3=:443", #"h3 =":443""#, #"h3= ":443""#, #"h3=":443"#, #"h3=":443\"#,
        #"=":443""#, #"h3=":443";"#, #"h3=":443"; ma"#, #"h3=":443"; ma="#, #"h3=":443"; ma=""#, #"h3=":443" h2=":1""#,
        #"h3=":443", clear"#, "clear, clear", "Clear", #""clear""#, "clear;", #"h3=":443"; "#,
    ])
    func errorsOfSyntaxCountAsNoField(_ value: String) {
        #expect(Self.read(value) == nil)
    }

    @Test func clearTakesAllBack() {
        #expect(Self.read("clear") == .clear)
        #expect(Self.read(" clear\t") == .clear)
        #expect(Self.read(#"h3=":443""#, "clear") == .clear)
    }

    @Test func severalLinesAreOneList() {
        #expect(Self.read(#"h3=":1""#, #"h3=":2""#) == .offered([Self.offer(1), Self.offer(2)]))
        #expect(Self.read(#"h3=":1""#, "?") == nil)
    }

    @Test func sizesAreBounded() {
        let many = Array(repeating: #"h3=":1""#, count: 900).joined(separator: ",")
        #expect(Self.read(many) == .offered(Array(repeating: Self.offer(1), count: 4)))
        #expect(Self.read(many + String(repeating: ",", count: 8_192 - many.utf8.count)) == nil)
        let name = String(repeating: "a", count: 255)
        #expect(Self.read("h3=\"\(name):1\"") == .offered([Self.offer(1, host: name)]))
        #expect(Self.read("h3=\"\(name)a:1\"") == .offered([]))
    }

    /// Reads every value that begins as a valid one and goes on with any byte.
    @Test func noByteIsTrusted() {
        let value = Array(#"h3="a:1"; ma=6, h3=":2"; x="\"""#.utf8)
        for length in 0...value.count {
            for byte in UInt8.min...UInt8.max {
                guard case .offered(let offers) = AlternativeServiceField([value[..<length] + [byte]]) else { continue }
                #expect(offers.allSatisfy { $0.service.port > 0 })
            }
        }
    }

    // MARK: Heads

    private func alternatives(_ fields: String) -> (field: AlternativeServiceField, age: Int64)? {
        ReceivedHead(status: 200, version: .http11, bytes: Array("HTTP/1.1 200 OK\r\n\(fields)\r\n".utf8)).alternatives
    }

    @Test func fieldsAreFoundInHeads() {
        let found = alternatives("Server: a\r\nALT-svc:  h3=\":1\" \r\nAge: 7\r\nalt-svc: h3=\":2\"\r\nX: y\r\n")
        #expect(found?.field == .offered([Self.offer(1), Self.offer(2)]) && found?.age == 7)
        #expect(alternatives("Alt-Svc: clear\r\n")?.field == .clear)
        #expect(alternatives("Alt-Svc: clear\r\nAge: -1\r\n")?.age == 0)
        #expect(alternatives("Age: 7\r\n") == nil)
        #expect(alternatives("Alt-Svc:\r\n") == nil)
        #expect(alternatives("X-Alt-Svc: clear\r\nAlt-Svc2: clear\r\nAlt-Sv: clear\r\n") == nil)
        #expect(alternatives("") == nil)
        #expect(ReceivedHead(status: 200, version: .http2, bytes: []).alternatives == nil)
    }
}
