#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The cookies of a store and the rules for them (RFC 6265bis §5.7 and §5.8). Has no lock, clock or file.
package struct CookieJar: Sendable {
    /// The limits on the cookies kept.
    package struct Limits: Sendable {
        /// The number of cookies of one domain. RFC 6265bis §6.1 asks for at least 50.
        package var perDomain = 180
        /// The number of all cookies. RFC 6265bis §6.1 asks for at least 3000.
        package var total = 3_000
        /// The longest time from storing to expiry, in seconds (RFC 6265bis §5.5).
        package var lifetime: TimeInterval = 400 * 86_400
        /// The maximum number of bytes of a `Cookie` field. Servers refuse a request with a longer field.
        package var fieldSize = 8 << 10

        package init() {}
    }

    /// The result of storing a cookie.
    package enum Outcome: Sendable {
        /// The cookie is stored, and replaces one of the same name, domain and path.
        case stored(Cookie)
        /// The cookie was expired. A stored cookie of the same name, domain and path is removed.
        case removed(Cookie)
        case refused(Cookie.Refusal)
    }

    private struct Entry {
        var cookie: Cookie
        var lastAccess: UInt64
        /// The position among all cookies ever stored. Dates can be equal, and clocks can go back.
        var serial: UInt64
    }

    package let limits: Limits
    package let suffixes: PublicSuffixes
    /// The entries by domain: a look-up reads the host and the few domains above it.
    private var entries: [String: [Entry]] = [:]
    package private(set) var count = 0
    /// The number of look-ups and stores, which orders the last accesses.
    private var access: UInt64 = 0
    private var serial: UInt64 = 0

    package init(limits: Limits = Limits(), suffixes: PublicSuffixes = .system) {
        self.limits = limits
        self.suffixes = suffixes
    }

    // MARK: Storing

    /// Stores the cookie of one `Set-Cookie` field of a response from `target`.
    package mutating func store(_ field: String, from target: Target, now: Date) -> Outcome {
        store(bytes: Array(field.utf8), from: target, now: now)
    }

    /// Stores the cookie of one `Set-Cookie` field, given as the bytes from the wire.
    package mutating func store(bytes: [UInt8], from target: Target, now: Date) -> Outcome {
        do throws(Cookie.Refusal) {
            let field = try SetCookieField(bytes: bytes)
            let cookie = try cookie(of: field, from: target, now: now)
            try cookie.checkPrefixes(hasPath: field.path != nil)
            if !cookie.isSecure, !target.isSecure, coversSecureCookie(cookie, now: now) { throw .overwritesSecure }
            return insert(cookie, now: now)
        } catch {
            return .refused(error)
        }
    }

    private func cookie(
        of field: SetCookieField, from target: Target, now: Date
    ) throws(Cookie.Refusal) -> Cookie {
        let host = target.host
        var domain = field.domain
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { throw .nonASCIIDomain }
        if !domain.isEmpty, suffixes.contains(domain) {
            // The host that is itself a public suffix can have a cookie of its own.
            guard domain == host else { throw .publicSuffix }
            domain = ""
        }
        if !domain.isEmpty, !CookieMatching.host(host, isWithin: domain) { throw .foreignDomain }
        if field.isSecure, !target.isSecure { throw .insecureOrigin }
        if field.sameSite == Cookie.SameSite.none, !field.isSecure { throw .sameSiteNone }
        return Cookie(
            name: field.name, value: field.value, domain: domain.isEmpty ? host : domain,
            isHostOnly: domain.isEmpty, path: field.path ?? CookieMatching.defaultPath(of: target.path),
            isSecure: field.isSecure, isHTTPOnly: field.isHTTPOnly, sameSite: field.sameSite,
            expires: expiry(of: field, now: now), creation: now, encoding: field.encoding)
    }

    /// Returns the expiry date. Max-Age takes precedence over Expires, and neither exceeds the longest lifetime.
    private func expiry(of field: SetCookieField, now: Date) -> Date? {
        let latest = now.addingTimeInterval(limits.lifetime)
        if let age = field.maxAge { return age <= 0 ? .distantPast : min(latest, now.addingTimeInterval(Double(age))) }
        return field.expires.map { min(latest, Date(timeIntervalSince1970: Double($0))) }
    }

    /// Returns whether the cookie would hide a Secure cookie of the same name from a host and path that both are sent
    /// to (§5.7, step 16).
    private func coversSecureCookie(_ cookie: Cookie, now: Date) -> Bool {
        entries.values.contains { list in
            list.contains { entry in
                let other = entry.cookie
                return other.isSecure && !other.isExpired(at: now)
                    && (other.hasName(of: cookie) || cookie.impersonatesName(of: other))
                    && (CookieMatching.host(other.domain, isWithin: cookie.domain)
                        || CookieMatching.host(cookie.domain, isWithin: other.domain))
                    && CookieMatching.path(cookie.path, isWithin: other.path)
            }
        }
    }

    /// Stores a cookie that the caller made or a file contained.
    package mutating func insertChecked(_ cookie: Cookie, now: Date) -> Outcome {
        var cookie = cookie
        do throws(Cookie.Refusal) {
            try cookie.checkForm()
            cookie = try cookie.withCanonicalDomain()
            if !cookie.isHostOnly, suffixes.contains(cookie.domain) { throw .publicSuffix }
            try cookie.checkPrefixes(hasPath: true)
        } catch {
            return .refused(error)
        }
        return insert(cookie.endingBy(now.addingTimeInterval(limits.lifetime), creation: now), now: now)
    }

    private mutating func insert(_ new: Cookie, now: Date) -> Outcome {
        var cookie = new
        var list = entries[cookie.domain] ?? []
        let old = list.firstIndex { $0.cookie.replaces(cookie) }
        if cookie.isExpired(at: now) {
            if let old {
                list.remove(at: old)
                count -= 1
                entries[cookie.domain] = list.isEmpty ? nil : list
            }
            return .removed(cookie)
        }
        access += 1
        if let old {
            // The replaced cookie's position in the order is kept (§5.7, step 24).
            cookie.creation = list[old].cookie.creation
            list[old] = Entry(cookie: cookie, lastAccess: access, serial: list[old].serial)
        } else {
            serial += 1
            count += 1
            list.append(Entry(cookie: cookie, lastAccess: access, serial: serial))
        }
        entries[cookie.domain] = list
        if list.count > limits.perDomain || count > limits.total { evict(from: cookie.domain, now: now) }
        return .stored(cookie)
    }

    /// Removes cookies until the jar is within its limits (§5.7): expired ones first, then those of a domain with too
    /// many, cookies without Secure before the others, then any. Among equals, the least recently used goes first.
    private mutating func evict(from domain: String, now: Date) {
        removeAll { $0.isExpired(at: now) }
        while (entries[domain]?.count ?? 0) > limits.perDomain {
            guard var list = entries[domain] else { return }
            let candidates = list.indices.filter { !list[$0].cookie.isSecure }
            let pool = candidates.isEmpty ? Array(list.indices) : candidates
            guard let victim = pool.min(by: { list[$0].lastAccess < list[$1].lastAccess }) else { return }
            list.remove(at: victim)
            count -= 1
            entries[domain] = list
        }
        while count > limits.total {
            var victim: (domain: String, index: Int, access: UInt64)?
            for (domain, list) in entries {
                for index in list.indices where list[index].lastAccess < victim?.access ?? .max {
                    victim = (domain, index, list[index].lastAccess)
                }
            }
            guard let victim else { return }
            entries[victim.domain]?.remove(at: victim.index)
            if entries[victim.domain]?.isEmpty ?? false { entries[victim.domain] = nil }
            count -= 1
        }
    }

    // MARK: Look-up

    /// Returns the cookies for a request in the order in which they are sent (§5.8.3): longer paths first, then older
    /// cookies.
    ///
    /// - Parameters:
    ///   - isCrossSite: Whether a redirect from another site led to this request.
    ///   - taken: The number of bytes of the field that the caller's own cookies use.
    package mutating func cookies(
        for target: Target, method: Request.Method, isCrossSite: Bool, now: Date, taken: Int = 0
    ) -> [Cookie] {
        if count == 0 { return [] }
        let path = target.path
        var found: [Entry] = []
        access += 1
        for domain in CookieMatching.domains(above: target.host) {
            guard let place = entries.index(forKey: String(domain)) else { continue }
            let isHost = domain.utf8.count == target.host.utf8.count
            for index in entries.values[place].indices {
                let cookie = entries.values[place][index].cookie
                guard isHost || !cookie.isHostOnly, target.isSecure || !cookie.isSecure,
                    !cookie.isExpired(at: now), CookieMatching.path(path, isWithin: cookie.path),
                    !isCrossSite || cookie.isSentAcrossSites(method)
                else { continue }
                // In its place: a copy of the list would cost more than all the rest.
                entries.values[place][index].lastAccess = access
                found.append(entries.values[place][index])
            }
        }
        removeCookies(from: &found, room: limits.fieldSize - (taken > 0 ? taken + 2 : 0))
        found.sort { left, right in
            let (long, short) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return long == short ? left.serial < right.serial : long > short
        }
        return found.map(\.cookie)
    }

    /// Removes cookies until the others, joined by `; `, fit. Keeps Secure cookies longest, then host-only ones, then
    /// the newest. A server without TLS or another host of the domain cannot displace a cookie that is both.
    private func removeCookies(from found: inout [Entry], room: Int) {
        var size = found.reduce(-2) { $0 + $1.cookie.wireCount + 2 }
        guard size > room else { return }
        found.sort { left, right in
            if left.cookie.isSecure != right.cookie.isSecure { return left.cookie.isSecure }
            if left.cookie.isHostOnly != right.cookie.isHostOnly { return left.cookie.isHostOnly }
            return left.serial > right.serial
        }
        while size > room, let oldest = found.popLast() { size -= oldest.cookie.wireCount + 2 }
    }

    /// Returns the value of the `Cookie` field; nil if there is no cookie to send.
    package mutating func header(
        for target: Target, method: Request.Method, isCrossSite: Bool, now: Date
    ) -> String? {
        headerBytes(for: target, method: method, isCrossSite: isCrossSite, now: now)
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the value of the `Cookie` field, byte for byte as servers set the cookies; nil if there is no cookie to
    /// send.
    package mutating func headerBytes(
        for target: Target, method: Request.Method, isCrossSite: Bool, now: Date, taken: Int = 0
    ) -> [UInt8]? {
        let cookies = cookies(for: target, method: method, isCrossSite: isCrossSite, now: now, taken: taken)
        if cookies.isEmpty { return nil }
        return Array(cookies.map(\.wireBytes).joined(separator: "; ".utf8))
    }

    /// Returns all cookies that have not expired, in the order in which they were first stored.
    package func all(now: Date) -> [Cookie] {
        entries.values.joined().filter { !$0.cookie.isExpired(at: now) }.sorted { $0.serial < $1.serial }
            .map(\.cookie)
    }

    /// Removes the cookies that satisfy a condition, and returns their number.
    @discardableResult
    package mutating func removeAll(where condition: (Cookie) -> Bool) -> Int {
        let before = count
        for (domain, list) in entries {
            let kept = list.filter { !condition($0.cookie) }
            count -= list.count - kept.count
            if kept.count < list.count { entries[domain] = kept.isEmpty ? nil : kept }
        }
        return before - count
    }
}

/// Matches hosts and paths with cookies (RFC 6265bis §5.1.3 and §5.1.4).
enum CookieMatching {
    /// Returns whether a host is the domain or below it. An IP address is below nothing.
    static func host(_ host: String, isWithin domain: String) -> Bool {
        let (host, domain) = (host.utf8, domain.utf8)
        if host.count == domain.count { return host.elementsEqual(domain) }
        guard host.count > domain.count, !domain.isEmpty, host.suffix(domain.count).elementsEqual(domain),
            host.dropLast(domain.count).last == UInt8(ascii: ".")
        else { return false }
        return !isAddress(host)
    }

    /// Returns whether the host is an IPv6 address, or ends in a number, as only IPv4 addresses do (WHATWG URL, §3.5).
    static func isAddress(_ host: String.UTF8View) -> Bool {
        if host.contains(UInt8(ascii: ":")) { return true }
        let dot = UInt8(ascii: ".")
        guard let end = host.lastIndex(where: { $0 != dot }) else { return false }
        let labels = host[...end]
        let last = labels.lastIndex(of: dot).map { labels[labels.index(after: $0)...] } ?? labels
        return last.allSatisfy(\.isASCIIDigit)
    }

    /// Returns whether a request's path is the cookie's path or below it.
    static func path(_ path: String, isWithin cookiePath: String) -> Bool {
        let (path, cookiePath) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: cookiePath) else { return false }
        if path.count == cookiePath.count || cookiePath.last == Reference.slash { return true }
        return path.dropFirst(cookiePath.count).first == Reference.slash
    }

    /// Returns the path of a cookie without `Path`: the request's path up to its last slash.
    static func defaultPath(of path: String) -> String {
        guard path.utf8.first == Reference.slash, let slash = path.utf8.lastIndex(of: Reference.slash),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Returns the host and each domain above it, from the longest to the shortest.
    static func domains(above host: String) -> [Substring] {
        var result = [Substring(host)]
        if isAddress(host.utf8) { return result }
        var rest = Substring(host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if !rest.isEmpty { result.append(rest) }
        }
        return result
    }
}
