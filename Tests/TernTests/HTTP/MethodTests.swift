import Tern
import Testing

@Suite("Request.Method")
struct MethodTests {
    @Test func propertiesFollowTheRFC() {
        let table: [(Request.Method, String, safe: Bool, idempotent: Bool)] = [
            (.get, "GET", true, true), (.head, "HEAD", true, true), (.options, "OPTIONS", true, true),
            (.trace, "TRACE", true, true), (.put, "PUT", false, true), (.delete, "DELETE", false, true),
            (.post, "POST", false, false), (.patch, "PATCH", false, false), (.connect, "CONNECT", false, false),
            ("PURGE", "PURGE", false, false),
        ]
        for (method, name, safe, idempotent) in table {
            #expect(method.rawValue == name)
            #expect(method.description == name)
            #expect(method.isSafe == safe)
            #expect(method.isIdempotent == idempotent)
            #expect(method.isValidToken)
            #expect(Request.Method(rawValue: name) == method)
        }
    }

    @Test func methodsAreCaseSensitive() {
        #expect(Request.Method("get") != .get)
        #expect(!Request.Method("get").isSafe)
    }

    @Test(arguments: ["", "GET ", "GET /\r\n", "É", "A/B", "\0"])
    func methodThatIsNotATokenIsInvalid(name: String) {
        #expect(!Request.Method(name).isValidToken)
    }
}
