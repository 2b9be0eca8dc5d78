/// Answers one Digest challenge any number of times: holds the server's nonce, the client's nonce and the count of
/// their uses (RFC 7616 §3.4).
struct DigestSession: Sendable {
    private(set) var challenge: DigestChallenge
    private let user: String
    private let password: String
    /// The client's nonce, the same for all answers to one nonce: the key of a `-sess` algorithm depends on it.
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

    /// The algorithm to hash the body with; nil if the answer does not depend on the body.
    var bodyDigest: DigestFunction.Algorithm? { challenge.protection == .authInt ? challenge.algorithm : nil }

    /// Changes to the nonce that the server wants for its next requests (RFC 7616 §3.5).
    mutating func renew(nonce: String) {
        challenge.nonce = nonce
        clientNonce = makeNonce()
        count = 0
    }

    /// Reserves the next use for another request.
    mutating func reserveUse() { count &+= 1 }

    /// Returns the value of the field that answers the challenge.
    ///
    /// - Parameters:
    ///   - uri: The request target as it is sent.
    ///   - bodyHash: The hash of the body in lower-case hexadecimal. Only `auth-int` needs it.
    mutating func answer(method: Request.Method, uri: String, bodyHash: String) -> String {
        count &+= 1
        let hexCount = String(count, radix: 16)
        let nonceCount = String(repeating: "0", count: 8 - hexCount.count) + hexCount
        var fields = userField
        fields.append(("realm", quoted(challenge.realm)))
        fields.append(("nonce", quoted(challenge.nonce)))
        fields.append(("uri", quoted(uri)))
        fields.append(
            ("response", quoted(response(method: method, uri: uri, nonceCount: nonceCount, bodyHash: bodyHash))))
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
        method: Request.Method, uri: String, nonceCount: String, bodyHash: String
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

    /// The `username` parameter. A name that a quoted string cannot hold is sent in the form of RFC 8187, unless it is
    /// hashed.
    private var userField: [(String, String)] {
        if challenge.hashesUser { return [("username", quoted(hash("\(user):\(challenge.realm)")))] }
        if user.utf8.allSatisfy({ $0 < 0x80 }) { return [("username", quoted(user))] }
        return [("username*", "UTF-8''" + user.percentEncoded(except: .unreserved))]
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

/// Writes bytes as hexadecimal digits.
package enum Hexadecimal {
    /// Returns two digits for each byte.
    package static func lowercase(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

/// A challenge of the scheme Digest (RFC 7616 §3.3).
struct DigestChallenge: Sendable, Hashable {
    enum Protection: String, Sendable {
        /// Protects method and target.
        case auth
        /// Protects the body, too.
        case authInt = "auth-int"
    }

    let realm: String
    var nonce: String
    let opaque: String?
    let algorithm: DigestFunction.Algorithm
    /// A Boolean value that indicates the algorithm's `-sess` variant, whose key is made once for each nonce.
    let isSession: Bool
    /// The protection to use; nil if the server implements only RFC 2069.
    let protection: Protection?
    /// Whether the user name is sent hashed.
    let hashesUser: Bool
    /// Whether the nonce was valid once, so that the credential is not refused.
    let isStale: Bool
    /// The algorithm as the server wrote it; nil if the server named none.
    let writtenAlgorithm: String?

    /// Creates a challenge; nil if a parameter is missing or unknown.
    init?(_ offer: AuthenticationChallenge.Offer) {
        guard Headers.namesMatch(offer.scheme, "Digest"), let nonce = offer.parameters["nonce"] else { return nil }
        self.nonce = nonce
        realm = offer.parameters["realm"] ?? ""
        opaque = offer.parameters["opaque"]
        writtenAlgorithm = offer.parameters["algorithm"]
        var name = (writtenAlgorithm ?? "MD5").uppercased()
        isSession = name.hasSuffix("-SESS")
        if isSession { name.removeLast(5) }
        guard let algorithm = DigestFunction.Algorithm(rawValue: name) else { return nil }
        self.algorithm = algorithm
        let list = offer.parameters["qop"] ?? ""
        let words = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
        if words.isEmpty {
            // Servers of RFC 2069 send no list, and some an empty one.
            protection = nil
        } else {
            guard let known = words.contains("auth") ? "auth" : words.first(where: { $0 == "auth-int" }) else {
                return nil
            }
            protection = Protection(rawValue: known)
        }
        hashesUser = offer.parameters["userhash"]?.lowercased() == "true"
        isStale = offer.parameters["stale"]?.lowercased() == "true"
    }

    /// The rank among offers. A higher number is stronger.
    var strength: Int {
        switch algorithm {
        case .md5: 1
        case .sha256: 2
        case .sha512Of256: 3
        }
    }
}
