import Testing

@testable import Tern

/// The examples of RFC 7616 §3.9, RFC 2617 §3.5 and RFC 2069 §2.4, and the cases that they leave open.
@Suite("Digest")
struct DigestTests {
    private func session(
        _ challenge: String, user: String = "Mufasa", password: String = "Circle of Life", nonce: String
    ) throws -> DigestSession {
        let offer = try #require(ChallengeParser.offers(in: [challenge]).first)
        return DigestSession(
            try #require(DigestChallenge(offer)), user: user, password: password, makeNonce: { nonce })
    }

    private func parameters(_ field: String) throws -> [String: String] {
        try #require(ChallengeParser.offers(in: [field]).first).parameters
    }

    private static let rfc7616 = """
        Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=ALGORITHM, \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """

    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("sha-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func exampleOfRFC7616Matches(algorithm: String, response: String) throws {
        let challenge = Self.rfc7616.replacing("ALGORITHM", with: algorithm)
        var session = try session(challenge, nonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        let fields = try parameters(session.answer(method: .get, uri: "/dir/index.html", bodyHash: ""))
        #expect(fields["response"] == response)
        #expect(
            fields
                == [
                    "username": "Mufasa", "realm": "http-auth@example.org", "uri": "/dir/index.html", "qop": "auth",
                    "algorithm": algorithm, "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "nc": "00000001",
                    "cnonce": "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", "response": response,
                    "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
                ])
    }

    /// As corrected by erratum 4897: the example in the text truncates SHA-512 instead.
    @Test func exampleWithHashedUserAndSHA512Of256Matches() throws {
        let challenge = """
            Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, charset=UTF-8, userhash=true, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS"
            """
        var session = try session(
            challenge, user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?",
            nonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v")
        let fields = try parameters(session.answer(method: .get, uri: "/doe.json", bodyHash: ""))
        #expect(fields["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(fields["response"] == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5")
        #expect(fields["userhash"] == "true")
    }

    @Test func exampleOfRFC2617Matches() throws {
        let challenge = """
            Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
            opaque="5ccc069c403ebaf9f0171e9517f40e41"
            """
        var session = try session(challenge, password: "Circle Of Life", nonce: "0a4f113b")
        let fields = try parameters(session.answer(method: .get, uri: "/dir/index.html", bodyHash: ""))
        #expect(fields["response"] == "6629fae49393a05397450978507c4ef1")
        #expect(fields["algorithm"] == nil)
    }

    @Test func exampleOfRFC2069HasNoCount() throws {
        let challenge = """
            Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
            opaque="5ccc069c403ebaf9f0171e9517f40e41"
            """
        var session = try session(challenge, password: "CircleOfLife", nonce: "0a4f113b")
        let fields = try parameters(session.answer(method: .get, uri: "/dir/index.html", bodyHash: ""))
        #expect(fields["response"] == "1949323746fe6a43ef61f9606e7febea")
        #expect(fields.keys.sorted() == ["nonce", "opaque", "realm", "response", "uri", "username"])
    }

    /// The definitions of §3.4.1 to §3.4.3, written out.
    @Test(arguments: ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256-SESS"], ["auth", "auth-int"])
    func responsesFollowTheDefinitions(algorithm: String, protection: String) throws {
        var session = try session(
            "Digest realm=\"r\", nonce=\"n\", algorithm=\(algorithm), qop=\"\(protection)\"", user: "u", password: "p",
            nonce: "c")
        let digest: DigestFunction.Algorithm =
            algorithm.hasPrefix("MD5") ? .md5 : algorithm.hasPrefix("SHA-256") ? .sha256 : .sha512Of256
        func hash(_ text: String) -> String { Hexadecimal.lowercase(DigestFunction.hash(Array(text.utf8), digest)) }
        #expect((session.bodyDigest != nil) == (protection == "auth-int"))
        let body = hash("body")
        for count in ["00000001", "00000002", "00000003"] {
            let fields = try parameters(session.answer(method: .post, uri: "/x?y=%20", bodyHash: body))
            let key = algorithm.lowercased().hasSuffix("-sess") ? hash(hash("u:r:p") + ":n:c") : hash("u:r:p")
            let action = protection == "auth" ? "POST:/x?y=%20" : "POST:/x?y=%20:" + body
            #expect(fields["response"] == hash("\(key):n:\(count):c:\(protection):\(hash(action))"))
            #expect(fields["nc"] == count)
            #expect(fields["cnonce"] == "c")
            #expect(fields["qop"] == protection)
        }
    }

    @Test func quotesAndForeignLettersAreSentSafely() throws {
        var quoted = try session("Digest realm=\"a\\\"b\", nonce=\"n\"", user: "x\"y\\z", nonce: "c")
        let field = quoted.answer(method: .get, uri: "/", bodyHash: "")
        #expect(field.contains("username=\"x\\\"y\\\\z\"") && field.contains("realm=\"a\\\"b\""))
        #expect(try parameters(field)["username"] == "x\"y\\z")
        var foreign = try session("Digest realm=\"r\", nonce=\"n\"", user: "J\u{E4}s 1", nonce: "c")
        let other = try parameters(foreign.answer(method: .get, uri: "/", bodyHash: ""))
        #expect(other["username*"] == "UTF-8''J%C3%A4s%201")
        #expect(other["username"] == nil)
    }

    @Test func nextNonceStartsItsOwnCount() throws {
        var session = try session("Digest realm=\"r\", nonce=\"n1\", qop=auth", nonce: "c")
        _ = session.answer(method: .get, uri: "/", bodyHash: "")
        session.renew(nonce: "n2")
        let fields = try parameters(session.answer(method: .get, uri: "/", bodyHash: ""))
        #expect(fields["nonce"] == "n2")
        #expect(fields["nc"] == "00000001")
    }

    @Test(arguments: [
        "Digest realm=\"r\"", "Digest nonce=n, algorithm=SHA-1", "Digest nonce=n, algorithm=MD4-sess",
        "Digest nonce=n, qop=\"other\"", "Basic nonce=n", "Digest",
    ])
    func unanswerableOfferIsNotAChallenge(field: String) throws {
        #expect(DigestChallenge(try #require(ChallengeParser.offers(in: [field]).first)) == nil)
    }

    /// psf/requests #2916: servers that protect nothing send an empty list.
    @Test(arguments: ["\"\"", "", "\" , \""]) func anEmptyListOfProtectionsIsNone(list: String) throws {
        let challenge = "Digest realm=\"foobar_api_auth\", nonce=\"a12059eaaad0b86e\", algorithm=\"MD5\""
        var plain = try session(challenge, nonce: "c")
        var listed = try session("\(challenge), qop=\(list)", nonce: "c")
        let answer = listed.answer(method: .get, uri: "/", bodyHash: "")
        #expect(answer == plain.answer(method: .get, uri: "/", bodyHash: ""))
    }

    @Test(arguments: [("auth-int", true), ("auth-int, auth", false), ("AUTH", false), ("auth-conf,auth-int", true)])
    func authIsPreferred(list: String, coversBody: Bool) throws {
        let session = try session("Digest nonce=n, qop=\"\(list)\"", nonce: "c")
        #expect((session.bodyDigest != nil) == coversBody)
    }

    @Test(arguments: [
        (
            "", "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a"
        ),
        (
            "abc", "900150983cd24fb0d6963f7d28e17f72",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"
        ),
    ])
    func hashFunctionsMatchPublishedValues(text: String, md5: String, sha256: String, sha512: String) {
        func hash(_ algorithm: DigestFunction.Algorithm) -> String {
            Hexadecimal.lowercase(DigestFunction.hash(Array(text.utf8), algorithm))
        }
        #expect(hash(.md5) == md5)
        #expect(hash(.sha256) == sha256)
        #expect(hash(.sha512Of256) == sha512)
    }

    /// Compares the hash of the hashes of all lengths from 0 to 300 with that of Python's hashlib: each padding occurs.
    @Test(arguments: [
        (DigestFunction.Algorithm.md5, "a9cf41e638496a4d8f14abe6ae258128"),
        (.sha256, "60d63ff40b5558727a9b786ac0be9300f7ca58fd9ddd3b2f3681b369018a87dc"),
        (.sha512Of256, "269c8df4ed9dc95eb220e0cb62dd8db46ae5d865dd2ed2097fc3a4e85c139a20"),
    ])
    func hashFunctionsPadEveryLength(algorithm: DigestFunction.Algorithm, expected: String) {
        var all = DigestFunction(algorithm)
        for length in 0...300 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) }
            var pieces = DigestFunction(algorithm)
            pieces.update(bytes.prefix(length / 3))
            pieces.update(bytes.dropFirst(length / 3))
            let hash = pieces.finalize()
            #expect(hash == DigestFunction.hash(bytes, algorithm))
            all.update(hash)
        }
        #expect(Hexadecimal.lowercase(all.finalize()) == expected)
    }
}
