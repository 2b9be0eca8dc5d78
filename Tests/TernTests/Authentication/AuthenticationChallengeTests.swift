import Testing

@testable import Tern

/// Parses `WWW-Authenticate` as RFC 9110 §11.6.1 defines it, and as servers send it.
@Suite("Challenges")
struct AuthenticationChallengeTests {
    /// Returns the challenges as `Scheme token|name=value,…`, with sorted names.
    private func text(_ offer: AuthenticationChallenge.Offer) -> String {
        let parameters = offer.parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return ([offer.scheme, offer.token ?? "-"] + parameters).joined(separator: "|")
    }

    @Test(
        arguments: [
            (["Basic realm=\"a\""], ["Basic|-|realm=a"]),
            (["Basic realm=\"a, b=c\", charset=\"UTF-8\""], ["Basic|-|charset=UTF-8|realm=a, b=c"]),
            (["Basic"], ["Basic|-"]), (["Basic, Bearer"], ["Basic|-", "Bearer|-"]),
            (["Negotiate YII=, Basic realm=x"], ["Negotiate|YII=", "Basic|-|realm=x"]),
            (["NTLM TlRM=="], ["NTLM|TlRM=="]),
            (
                [
                    "Newauth realm=\"apps\", type=1,\n title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\""
                        .filter { $0 != "\n" }
                ],
                ["Newauth|-|realm=apps|title=Login to \"apps\"|type=1", "Basic|-|realm=simple"]
            ),
            (["Digest realm=\"a\"", "Basic realm=\"b\""], ["Digest|-|realm=a", "Basic|-|realm=b"]),
            ([" , ,Basic realm = \"a\" ,, Bearer scope=x,"], ["Basic|-|realm=a", "Bearer|-|scope=x"]),
            (["basic REALM=a"], ["basic|-|realm=a"]),
            (["Digest nonce=abc==, qop=auth"], ["Digest|-|nonce=abc==|qop=auth"]),
            (["Basic realm=\"open"], ["Basic|-|realm=open"]), (["Basic realm=\"a\\"], ["Basic|-|realm=a\\"]),
            (["Basic realm=a, realm=b"], ["Basic|-|realm=a"]), (["Basic realm="], ["Basic|realm="]),
            (["\"x\", Basic realm=a"], ["Basic|-|realm=a"]), (["@, Basic"], ["Basic|-"]), ([""], []), ([",,"], []),
            (["realm=x"], ["realm|-"]), ([], []),
        ] as [([String], [String])])
    func challengesAreParsed(fields: [String], expected: [String]) {
        #expect(ChallengeParser.offers(in: fields).map(text) == expected)
    }

    @Test func parserEndsForEveryField() {
        let pieces = ["Basic", " ", ",", "=", "\"", "\\", "a", "@", "Digest ", "nonce=", "\t", ";", "ü"]
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    for last in pieces { _ = ChallengeParser.offers(in: [first + second + third + last]) }
                }
            }
        }
        let long = String(repeating: "Basic a=\"b\", @\", ", count: 20_000)
        #expect(ChallengeParser.offers(in: [long]).count > 0)
    }
}
