#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The cookies of a store and the rules they live by (RFC 6265bis §5.7 and §5.8). Pure: no lock, no clock, no file.
package struct CookieJar: Sendable {
    /// How many cookies are kept.
    package struct Limits: Sendable {
        /// Cookies of one domain. RFC 6265bis §6.1 asks for at least 50.
        package var perDomain = 180
        /// Cookies in all. RFC 6265bis §6.1 asks for at least 3000.
        package var total = 3_000
        /// How long a cookie may live from when it is stored (RFC 6265bis §5.5).
        package var lifetime: TimeInterval = 400 * 86_400
        /// The maximum number of bytes of a `Cookie` field. Servers refuse a request with a longer field.
        package var fieldSize = 8 << 10

        package init() {}
    }

    /// What became of a cookie.
    package enum Outcome: Sendable {
        /// It is kept, new or in the place of its predecessor.
        case stored(Cookie)
        /// It had ended already: its predecessor, if there was one, is gone.
        case removed(Cookie)
        case refused(Cookie.Refusal)
    }

    private struct Entry {
        var cookie: Cookie
        var lastAccess: UInt64
        /// The number among all that were ever stored: dates can be equal, and clocks go back.
        var serial: UInt64
    }

    package let limits: Limits
    package let suffixes: PublicSuffixes
    /// By domain: a look-up asks for a host and the few domains above it.
    private var entries: [String: [Entry]] = [:]
    package private(set) var count = 0
    /// Counts look-ups and stores: the order of last accesses.
    private var access: UInt64 = 0
    private var serial: UInt64 = 0

    package init(limits: Limits = Limits(), suffixes: PublicSuffixes = .system) {
        self.limits = limits
        self.suffixes = suffixes
    }

    // MARK: Storing

    /// Takes in one `Set-Cookie` field of an answer from `target`.
    package mutating func store(_ field: String, from target: Target, now: Date) -> Outcome {
        store(bytes: Array(field.utf8), from: target, now: now)
    }

    /// Stores the cookie of one `Set-Cookie` field, given as the bytes from the wire.
    package mutating func store(bytes: [UInt8], from target: Target, now: Date) -> Outcome {
        do throws(Cookie.Refusal) {
            let field = try SetCookieField(bytes: bytes)
            let cookie = try cookie(of: field, from: target, now: now)
            try cookie.checkPrefixes(hasPath: field.path != nil)
            if !cookie.isSecure, !target.isSecure, coversSecureCookie(cookie) { throw .overwritesSecure }
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
            // The suffix's own host may still have a cookie for itself.
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

    /// Max-Age wins over Expires; neither goes beyond the longest lifetime.
    private func expiry(of field: SetCookieField, now: Date) -> Date? {
        let latest = now.addingTimeInterval(limits.lifetime)
        if let age = field.maxAge { return age <= 0 ? .distantPast : min(latest, now.addingTimeInterval(Double(age))) }
        return field.expires.map { min(latest, Date(timeIntervalSince1970: Double($0))) }
    }

    /// Whether a Secure cookie of that name would be covered, for a host and path that both are sent to (§5.7, step 16).
    private func coversSecureCookie(_ cookie: Cookie) -> Bool {
        entries.values.contains { list in
            list.contains { entry in
                let other = entry.cookie
                return other.isSecure && (other.hasName(of: cookie) || cookie.poses(asNameOf: other))
                    && (CookieMatching.host(other.domain, isWithin: cookie.domain)
                        || CookieMatching.host(cookie.domain, isWithin: other.domain))
                    && CookieMatching.path(cookie.path, isWithin: other.path)
            }
        }
    }

    /// Takes in a cookie that was made by hand or read from a file.
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
            // The place in the order is kept (§5.7, step 24).
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

    /// Brings the jar back under its limits (§5.7): what has ended, then of a domain that has too many the cookies that
    /// are not Secure, then its others, then any; each time the one that was not used for the longest.
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

    // MARK: Looking up

    /// The cookies for a request, in the order in which they are sent (§5.8.3): longer paths first, then older ones.
    ///
    /// - Parameters:
    ///   - isCrossSite: A Boolean value that indicates whether a redirect from another site led to this request.
    ///   - taken: The number of bytes of the field that the caller's own cookies use.
    package mutating func cookies(
        for target: Target, method: Request.Method, isCrossSite: Bool, now: Date, taken: Int = 0
    ) -> [Cookie] {
        if count == 0 { return [] }
        let path = target.path
        var found: [Entry] = []
        access += 1
        for domain in CookieMatching.domains(above: target.host) {
            guard var list = entries[String(domain)] else { continue }
            let isHost = domain.utf8.count == target.host.utf8.count
            for index in list.indices {
                let cookie = list[index].cookie
                guard isHost || !cookie.isHostOnly, target.isSecure || !cookie.isSecure,
                    !cookie.isExpired(at: now), CookieMatching.path(path, isWithin: cookie.path),
                    !isCrossSite || cookie.isSentAcrossSites(method)
                else { continue }
                list[index].lastAccess = access
                found.append(list[index])
            }
            entries[String(domain)] = list
        }
        leaveOutOldest(&found, room: limits.fieldSize - (taken > 0 ? taken + 2 : 0))
        found.sort { left, right in
            let (long, short) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return long == short ? left.serial < right.serial : long > short
        }
        return found.map(\.cookie)
    }

    /// Removes the cookies that were first stored the longest ago until the others, joined by `; `, fit.
    private func leaveOutOldest(_ found: inout [Entry], room: Int) {
        var size = found.reduce(-2) { $0 + $1.cookie.wireCount + 2 }
        guard size > room else { return }
        found.sort { $0.serial > $1.serial }
        while size > room, let oldest = found.popLast() { size -= oldest.cookie.wireCount + 2 }
    }

    /// The value of the `Cookie` field; nil if there is nothing to be sent.
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

    /// All that have not ended, in the order in which they were first stored.
    package func all(now: Date) -> [Cookie] {
        entries.values.joined().filter { !$0.cookie.isExpired(at: now) }.sorted { $0.serial < $1.serial }
            .map(\.cookie)
    }

    /// Removes what a condition holds for; returns how many.
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
