#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Identifies the user of a session's responses, as a part of the keys of a cache that several sessions or several runs
/// of a program can share.
///
/// The empty name stands for sessions without anything that distinguishes users; they all share. Any other name is a
/// digest, so that it can be written to the disk.
package struct CachePartition: Sendable, Hashable {
    /// Empty, or 32 hexadecimal digits.
    package let name: String

    /// The partition of sessions without anything that distinguishes users.
    package static let common = CachePartition(name: "")

    /// Derives the partition of a session.
    ///
    /// - Parameters:
    ///   - cookies: The store whose cookies the requests send; nil when they send none.
    ///   - owner: The session or hook that uses this partition alone, if the user is unknown before a request.
    ///   - hasRequestHook: Whether something other than the session's own parts, such as a hook, changes the requests.
    init(
        _ configuration: Session.Configuration, cookies: CookieStore?, owner: String, hasRequestHook: Bool = false
    ) {
        var fields: [String] = []
        if let partition = configuration.partition {
            fields += ["named", partition]
            if cookies != nil { fields.append("cookies") }
        } else if hasRequestHook || configuration.isUserKnownOnlyLater {
            fields += ["own", Self.process, owner]
            if cookies != nil { fields.append("cookies") }
        } else {
            fields += Self.headers(configuration.headers)
            if let fixed = configuration.credentials as? FixedCredentials { fields += ["credentials"] + fixed.identity }
            if let cookies { fields += ["cookies"] + Self.identity(of: cookies) }
            fields += Self.clientCertificates(of: configuration.trust)
            if let path = configuration.unixSocketPath { fields += ["socket", path] }
        }
        if configuration.trust.all.contains(where: \.canAcceptUntrusted) { fields.append("certificates") }
        name = fields.isEmpty ? "" : Self.digest(fields)
    }

    private init(name: String) { self.name = name }

    /// Returns the names of all partitions of the sessions whose configuration names this one.
    package static func names(of partition: String) -> [String] {
        var lists = [["named", partition], ["named", partition, "cookies"]]
        lists += lists.map { $0 + ["certificates"] }
        return lists.map { digest($0) }
    }

    /// A value that differs in each run of the program.
    static let process = "\(UInt64.random(in: 0 ... .max)) \(UInt64.random(in: 0 ... .max))"

    /// Headers that do not identify a user, so that cached images stay valid after a new version of the program or a
    /// change of the user's language.
    private static let neutralHeaders =
        Headers.tracingNames + [
            "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "User-Agent", "Cache-Control", "Pragma",
            "DNT", "Sec-GPC", "Upgrade-Insecure-Requests",
        ]

    private static func headers(_ headers: Headers) -> [String] {
        headers.filter { field in !neutralHeaders.contains { Headers.namesMatch($0, field.name) } }
            .map { "header \($0.name.lowercased()): \($0.value)" }.sorted()
    }

    /// Returns the identity of a store. The cookies in it change with every response; the identity does not.
    static func identity(of store: CookieStore) -> [String] {
        switch store.identity {
        case .file(let path): ["file", path]
        case .memory(let number): ["memory", process, "\(number)"]
        }
    }

    private static func clientCertificates(of trust: TrustPolicies) -> [String] {
        var policies = trust.hosts.map { ($0.key.lowercased(), $0.value) }.sorted { $0.0 < $1.0 }
        if let standard = trust.standard { policies.append(("", standard)) }
        return policies.flatMap { host, policy in policy.identity.map { ["client", host, $0.digest] } ?? [] }
    }

    /// Hashes each field with its length before it, so that no two lists give the same bytes.
    static func digest(_ fields: [String]) -> String {
        var function = DigestFunction(.sha256)
        for field in fields { function.update("\(field.utf8.count):\(field)".utf8) }
        return function.finalize().prefix(16).hexadecimal
    }
}

extension Session.Configuration {
    /// Whether the user is known only after a request is sent.
    fileprivate var isUserKnownOnlyLater: Bool {
        if policy != nil { return true }
        if let credentials, !(credentials is FixedCredentials) { return true }
        return interceptors.contains { $0.changesRequests }
    }
}

extension Session.Configuration {
    /// Whether the session's partition is valid in this process only, so that no other process can find its responses.
    package var hasPartitionOfProcess: Bool { partition == nil && isUserKnownOnlyLater }

    /// Whether the name of the partition takes the place of credentials in the keys of an `HTTPCache`.
    var hasPartitionForCredentials: Bool { partition != nil && partitionReplacesCredentials }

    /// Whether a policy, an interceptor or a provider of credentials decides on the user of a request when it is sent.
    var hasUnknownUser: Bool { isUserKnownOnlyLater }

    /// Whether other processes may use the responses to the session's requests: it sends no credentials, and reaches
    /// the servers that each session with the default settings reaches.
    package var allowsSharedResponses: Bool {
        guard case .system = authorities, trust == TrustPolicies(), hostAddresses.isEmpty, unixSocketPath == nil else {
            return false
        }
        return credentials == nil && !isUserKnownOnlyLater && !headers.contains { Headers.isSecret($0.name) }
    }
}

extension ClientIdentity {
    /// Identifies the certificate. For PEM, the key does not count.
    var digest: String {
        let bytes =
            switch content {
            case .pem(let certificates, _): certificates
            case .pkcs12(let bytes): bytes
            }
        return DigestFunction.hash(Array(bytes), .sha256).hexadecimal
    }
}

extension FixedCredentials {
    /// The origin, user and secret of each credential, in a fixed order.
    fileprivate var identity: [String] {
        byOrigin.sorted { $0.key < $1.key }.flatMap { origin, credential in
            switch credential.content {
            case .password(let user, let password): [origin, "user", user, password]
            case .token(let token): [origin, "token", token]
            }
        }
    }
}

extension Sequence<UInt8> {
    /// Two lower-case digits for each byte.
    package var hexadecimal: String {
        let digits = Array("0123456789abcdef")
        return String(flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
