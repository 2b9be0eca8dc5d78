#if os(Linux)
import TernEngine

/// The destinations of a session's requests. Confined to the loop's thread.
struct DestinationCache {
    private struct Key: Hashable {
        let origin: String
        /// The bytes of the path, because file systems compare those.
        let unixSocketPath: [UInt8]?
        let policy: TrustPolicy?
        let isForUpgrade: Bool
        var avoidsHTTP2 = false
        var http3: Session.Configuration.HTTP3Use?
    }

    /// Beyond this number of destinations, all are forgotten: a program that visits many hosts comes back to few of
    /// them.
    private static let limit = 1_024

    private let settings: ConnectionSettings
    private var trust: EngineTrust
    private var known: [Key: Destination] = [:]
    /// The destination of the last request, which most often is that of the next one.
    private var last: (origin: String, destination: Destination)?

    init(_ settings: ConnectionSettings) {
        self.settings = settings
        trust = EngineTrust(settings.authorities, keyLog: settings.keyLog)
    }

    /// Takes the attempt, because its request has many fields to copy.
    mutating func destination(for attempt: Attempt) throws(FailureCause) -> Destination {
        let isUsual = attempt.request.goesUsualWay
        if isUsual, let last, last.origin == attempt.request.target.origin { return last.destination }
        return try findDestination(for: attempt.request, isUsual: isUsual)
    }

    private mutating func findDestination(
        for request: WireRequest, isUsual: Bool
    ) throws(FailureCause) -> Destination {
        let key = Key(
            origin: request.target.origin, unixSocketPath: request.unixSocketPath.map { Array($0.utf8) },
            policy: request.trust,
            isForUpgrade: request.upgrade != nil, avoidsHTTP2: request.avoidsHTTP2, http3: request.http3)
        let destination: Destination
        if let found = known[key] {
            destination = found
        } else {
            destination = try makeDestination(for: request)
            if known.count >= Self.limit { known.removeAll() }
            known[key] = destination
        }
        if isUsual { last = (request.target.origin, destination) }
        return destination
    }

    /// Returns the destination of ordinary requests to the server of a request that asks for another protocol; nil if
    /// there were none.
    func sharedDestination(for request: WireRequest) -> Destination? {
        known[
            Key(
                origin: request.target.origin, unixSocketPath: request.unixSocketPath.map { Array($0.utf8) },
                policy: request.trust,
                isForUpgrade: false, http3: request.http3)]
    }

    private mutating func makeDestination(for request: WireRequest) throws(FailureCause) -> Destination {
        let target = request.target
        guard let port = UInt16(exactly: target.port) else {
            throw FailureCause(.invalidRequest, "the port \(target.port) is not valid")
        }
        let root = target.rootWithoutZone
        let authority = String(root[(root.firstRange(of: "://")?.upperBound ?? root.startIndex)...])
        var policy: TLSPolicy?
        if target.isSecure {
            guard let own = request.trust ?? (settings.trust ?? TrustPolicies()).policy(for: target.host) else {
                throw TrustPolicies.refusal(of: target.host)
            }
            policy = trust.policy(own)
        }
        // A Unix socket replaces every host and every proxy.
        let proxy = request.unixSocketPath == nil ? settings.proxies.proxy(for: target) : nil
        let http3 = request.http3.map(ConnectionSettings.usable) ?? settings.http3
        let addresses = HostOverride.entry(of: target.host, port: port, in: settings.addresses)
        let destination = Destination(
            origin: target.origin, host: target.host, port: port, authority: authority,
            trust: policy, allowsHTTP2: settings.allowsHTTP2 && !request.avoidsHTTP2,
            assumesHTTP2: settings.usesHTTP2WithoutTLS, usesHTTP3: http3 == .always,
            takesAlternatives: http3 == .whenOffered && !request.avoidsHTTP2, proxy: proxy,
            proxyTrust: proxy?.kind == .https ? trust.policy(TrustPolicy()) : nil,
            addresses: addresses?.map { $0.port == 0 ? $0.with(port: port) : $0 },
            unixSocketPath: request.unixSocketPath,
            localEndpoint: settings.localEndpoint, isForUpgrade: request.upgrade != nil)
        return destination
    }
}

extension WireRequest {
    /// Whether the connections of its origin are those of most requests.
    fileprivate var goesUsualWay: Bool {
        unixSocketPath == nil && trust == nil && upgrade == nil && !avoidsHTTP2 && http3 == nil
    }
}

/// The header fields of the last request in the form in which they are sent. Most requests of a session have the same
/// fields. Confined to the loop's thread.
struct RequestFieldsCache {
    private struct Source {
        let headers: Headers
        let decompresses: Bool
        let sendsDefaults: Bool
        let isForwarded: Bool
    }

    /// The proxy of forwarded requests is the same for all requests of a session.
    private var source: Source?
    private var fields = RequestFields.Shared(RequestFields())

    /// Takes the attempt, because its request has many fields to copy.
    mutating func fields(
        of attempt: Attempt, to destination: Destination
    ) throws(FailureCause) -> RequestFields.Shared {
        if let source, attempt.request.rawCookie == nil,
            source.decompresses == attempt.request.decompresses, source.isForwarded == destination.isForwarded,
            source.sendsDefaults == attempt.request.sendsDefaultFields,
            source.headers.isSameStorage(as: attempt.request.headers)
                || source.headers.isWritten(like: attempt.request.headers)
        {
            return fields
        }
        return try newFields(of: attempt.request, to: destination)
    }

    private mutating func newFields(
        of request: WireRequest, to destination: Destination
    ) throws(FailureCause) -> RequestFields.Shared {
        let isForwarded = destination.isForwarded
        do throws(EngineError) {
            let made = RequestFields.Shared(
                try Self.makeFields(of: request, proxy: isForwarded ? destination.proxy : nil))
            // A raw Cookie field is used for one request only.
            if request.rawCookie == nil {
                fields = made
                source = Source(
                    headers: request.headers, decompresses: request.decompresses,
                    sendsDefaults: request.sendsDefaultFields, isForwarded: isForwarded)
            }
            return made
        } catch {
            throw FailureCause(EngineAttempt.kind(error.kind), error.reason)
        }
    }

    /// - Parameter proxy: The proxy that receives the request whole; nil for none.
    private static func makeFields(
        of request: WireRequest, proxy: ProxyAddress?
    ) throws(EngineError) -> RequestFields {
        var fields = RequestFields()
        for field in request.headers {
            // Credentials for a proxy are never sent to a server, nor to a server behind a tunnel.
            if proxy == nil, Headers.namesMatch(field.name, "Proxy-Authorization") { continue }
            try fields.append(name: field.name, value: field.value)
        }
        if let proxy, let value = ProxyTunnel.basic(proxy), !request.headers.contains("Proxy-Authorization") {
            try fields.append(name: "Proxy-Authorization", value: value)
        }
        if let cookies = request.rawCookie { try fields.append(name: "Cookie", bytes: cookies) }
        guard request.sendsDefaultFields else { return fields }
        if !request.headers.contains("Accept") { try fields.append(name: "Accept", value: "*/*") }
        if request.decompresses, !request.headers.contains("Accept-Encoding") {
            // A range counts the bytes with their coding, from whose middle nothing can be decompressed (RFC 9110
            // §14.2).
            let codings = request.headers.contains("Range") ? "identity" : ContentDecoder.acceptEncoding
            try fields.append(name: "Accept-Encoding", value: codings)
        }
        return fields
    }
}
#endif
