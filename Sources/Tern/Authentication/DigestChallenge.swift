/// A challenge of the scheme Digest (RFC 7616 §3.3).
struct DigestChallenge: Sendable, Hashable {
    enum Protection: String, Sendable {
        /// Method and target.
        case auth
        /// The body as well.
        case authInt = "auth-int"
    }

    let realm: String
    var nonce: String
    let opaque: String?
    let algorithm: DigestFunction.Algorithm
    /// The algorithm's `-sess` variant: the key is made once per nonce.
    let isSession: Bool
    /// nil: the server speaks RFC 2069.
    let protection: Protection?
    /// The user name is sent hashed.
    let hashesUser: Bool
    /// The nonce was good once: the credential is not refused.
    let isStale: Bool
    /// The algorithm as the server wrote it; nil if it named none.
    let writtenAlgorithm: String?

    /// nil if something is missing or not known.
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
        if let list = offer.parameters["qop"] {
            let words = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
            guard let known = words.contains("auth") ? "auth" : words.first(where: { $0 == "auth-int" }) else {
                return nil
            }
            protection = Protection(rawValue: known)
        } else {
            protection = nil
        }
        hashesUser = offer.parameters["userhash"]?.lowercased() == "true"
        isStale = offer.parameters["stale"]?.lowercased() == "true"
    }

    /// Higher is stronger.
    var strength: Int {
        switch algorithm {
        case .md5: 1
        case .sha256: 2
        case .sha512Of256: 3
        }
    }
}
