/// Answers to one Digest challenge: a nonce, our own, and how often they were used (RFC 7616 §3.4).
struct DigestSession: Sendable {
    private(set) var challenge: DigestChallenge
    private let user: String
    private let password: String
    /// One for all answers to a nonce: the key of a `-sess` algorithm is made of it.
    private var clientNonce: String
    private var count: UInt32 = 0
    private let makeNonce: @Sendable () -> String

    init(
        _ challenge: DigestChallenge, user: String, password: String, makeNonce: @escaping @Sendable () -> String
    ) {
        self.challenge = challenge
        self.user = user
        self.password = password
        self.makeNonce = makeNonce
        clientNonce = makeNonce()
    }

    /// The algorithm that the body is to be hashed with; nil if the body does not matter.
    var bodyDigest: DigestFunction.Algorithm? { challenge.protection == .authInt ? challenge.algorithm : nil }

    /// The server wants its next requests to be made with another nonce (RFC 7616 §3.5).
    mutating func takeNext(nonce: String) {
        challenge.nonce = nonce
        clientNonce = makeNonce()
        count = 0
    }

    /// The next use is somebody's already.
    mutating func skipOneUse() { count &+= 1 }

    /// The value of the field that answers the challenge.
    ///
    /// - Parameters:
    ///   - uri: The request target as it is sent.
    ///   - bodyHash: The hash of the body, in lower-case hexadecimal; needed for `auth-int` alone.
    mutating func answer(method: Request.Method, uri: String, bodyHash: String) -> String {
        count &+= 1
        let hexCount = String(count, radix: 16)
        let nonceCount = String(repeating: "0", count: 8 - hexCount.count) + hexCount
        var fields = userField
        fields.append(("realm", quoted(challenge.realm)))
        fields.append(("nonce", quoted(challenge.nonce)))
        fields.append(("uri", quoted(uri)))
        fields.append(("response", quoted(response(method, uri, nonceCount, bodyHash))))
        if let algorithm = challenge.writtenAlgorithm { fields.append(("algorithm", algorithm)) }
        if challenge.protection != nil || challenge.isSession { fields.append(("cnonce", quoted(clientNonce))) }
        if let opaque = challenge.opaque { fields.append(("opaque", quoted(opaque))) }
        if let protection = challenge.protection {
            fields.append(("qop", protection.rawValue))
            fields.append(("nc", nonceCount))
        }
        if challenge.hashesUser { fields.append(("userhash", "true")) }
        return "Digest " + fields.map { "\($0)=\($1)" }.joined(separator: ", ")
    }

    private func response(
        _ method: Request.Method, _ uri: String, _ nonceCount: String, _ bodyHash: String
    ) -> String {
        var key = hash("\(user):\(challenge.realm):\(password)")
        if challenge.isSession { key = hash("\(key):\(challenge.nonce):\(clientNonce)") }
        guard let protection = challenge.protection else {
            return hash("\(key):\(challenge.nonce):\(hash("\(method.rawValue):\(uri)"))")
        }
        let action =
            protection == .authInt ? "\(method.rawValue):\(uri):\(bodyHash)" : "\(method.rawValue):\(uri)"
        let proof = "\(challenge.nonce):\(nonceCount):\(clientNonce):\(protection.rawValue):\(hash(action))"
        return hash("\(key):\(proof)")
    }

    /// A name that a quoted string cannot hold is sent in the form of RFC 8187, if it is not hashed anyway.
    private var userField: [(String, String)] {
        if challenge.hashesUser { return [("username", quoted(hash("\(user):\(challenge.realm)")))] }
        if user.utf8.allSatisfy({ $0 < 0x80 }) { return [("username", quoted(user))] }
        var encoded: [UInt8] = []
        for byte in user.utf8 {
            if ByteSet.unreserved.contains(byte) { encoded.append(byte) } else { encoded.appendPercentEncoded(byte) }
        }
        return [("username*", "UTF-8''" + String(decoding: encoded, as: UTF8.self))]
    }

    private func hash(_ text: String) -> String {
        Hexadecimal.lowercase(DigestFunction.hash(Array(text.utf8), challenge.algorithm))
    }

    private func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { result += "\\" }
            result.unicodeScalars.append(character)
        }
        return result + "\""
    }
}

enum Hexadecimal {
    static func lowercase(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
