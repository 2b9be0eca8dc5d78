import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The cookies that servers have set, by the rules of RFC 6265bis.
///
/// Shared by all sessions that ask for it, or one session's own (``CookieUse``). Every call is synchronous and may be
/// made from any thread; a look-up in an empty store is one branch. Kept in memory, and with
/// ``init(file:)`` in a file as well.
///
/// A store keeps at most 180 cookies of one domain and 3000 in all. Beyond that it removes cookies in this order:
/// expired cookies, then cookies of a domain that has too many, cookies without the Secure attribute before the others,
/// and the least recently used first. A request carries at most 8 KiB of cookies, including its own `Cookie` field. The
/// cookies that were first stored the longest ago are left out.
public final class CookieStore: Sendable {
    /// The store that sessions share by default. In memory alone.
    public static let shared = CookieStore()

    private let jar: Lock<CookieJar>
    private let hasCookies = Atomic<Bool>(false)
    private let now: @Sendable () -> Date
    private let file: CookieFile?
    /// Identifies the store, independent of the cookies in it.
    let identity: Identity

    enum Identity: Sendable, Hashable {
        /// A store with a file. The value is the same in every run of the program.
        case file(String)
        /// A store in memory. The value is unique in the process.
        case memory(UInt64)
    }

    private static let lastNumber = Atomic<UInt64>(0)

    /// An empty store in memory.
    public convenience init() { self.init(jar: CookieJar()) }

    /// A store that keeps its lasting cookies in a file: those with an expiry date.
    ///
    /// The file is read now, which blocks; one that is not there is an empty one. Each change is written soon after, by a
    /// thread of its own, into a new file with mode 0600 that then takes the old one's place: a process that is killed
    /// leaves the old file or the new one, never a torn one. ``save()`` waits for that. One file belongs to one store.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be read or was not written by a store.
    public convenience init(file: URL) throws(NetworkError) {
        try self.init(file: file.path, jar: CookieJar(), now: { Date() })
    }

    package init(jar: consuming CookieJar, now: @escaping @Sendable () -> Date = { Date() }) {
        hasCookies.store(jar.count > 0, ordering: .relaxed)
        self.jar = Lock(jar)
        self.now = now
        file = nil
        identity = .memory(Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    package init(
        file path: String, jar: consuming CookieJar, now: @escaping @Sendable () -> Date
    ) throws(NetworkError) {
        let file = CookieFile(path)
        do {
            // A cookie that the rules refuse is left out: the file may have been edited.
            for cookie in try file.read() { _ = jar.insertChecked(cookie, now: now()) }
        } catch {
            throw NetworkError(.fileSystem, reason: "the cookies cannot be read: \(error)", underlying: error)
        }
        hasCookies.store(jar.count > 0, ordering: .relaxed)
        self.jar = Lock(jar)
        self.now = now
        self.file = file
        identity = .file(path)
    }

    /// Whether the public suffix list is known, so that no server can set a cookie for all of `co.uk`: on Linux with
    /// `libpsl.so.5`. Where it is not, only domains of one label are refused.
    public static var knowsPublicSuffixes: Bool { PublicSuffixes.system.isComplete }

    // MARK: Requests and answers

    /// The value of a request's `Cookie` field; nil if no cookie is for it.
    ///
    /// - Parameter redirects: The URLs that led here, the first request's first: after one of another site, cookies are
    ///   held back as their `SameSite` says.
    package func header(for target: Target, method: Request.Method, redirects: [Target] = []) -> String? {
        headerBytes(for: target, method: method, redirects: redirects).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the same value as bytes, because the bytes of a cookie need not be UTF-8.
    ///
    /// - Parameter taken: The number of bytes of the field that the caller's own cookies use.
    package func headerBytes(
        for target: Target, method: Request.Method, redirects: [Target] = [], taken: Int = 0
    ) -> [UInt8]? {
        if !hasCookies.load(ordering: .relaxed) { return nil }
        let now = now()
        return jar.withLock { jar in
            let isCrossSite = redirects.contains { !jar.suffixes.areSameSite($0, target) }
            return jar.headerBytes(
                for: target, method: method, isCrossSite: isCrossSite, now: now, taken: taken)
        }
    }

    /// Takes in the `Set-Cookie` fields of an answer; says for each what became of it.
    @discardableResult
    package func store(_ fields: [String], from target: Target) -> [CookieJar.Outcome] {
        store(bytes: fields.map { Array($0.utf8) }, from: target)
    }

    /// Stores the cookies of fields given as the bytes from the wire.
    @discardableResult
    package func store(bytes fields: [[UInt8]], from target: Target) -> [CookieJar.Outcome] {
        if fields.isEmpty { return [] }
        let now = now()
        return change { jar in fields.map { jar.store(bytes: $0, from: target, now: now) } }
    }

    // MARK: By hand

    /// Whether no cookie is kept.
    public var isEmpty: Bool { !hasCookies.load(ordering: .relaxed) }

    /// All cookies that have not ended, in the order in which they were first stored.
    public var cookies: [Cookie] {
        let now = now()
        return jar.withLock { $0.all(now: now) }
    }

    /// The cookies that a GET of a URL would carry, in the order in which they would be sent; none for a URL that cannot
    /// be requested.
    public func cookies(for url: URL) -> [Cookie] {
        // A URL that is no target has no cookies: the reason is told when it is requested.
        guard let target = try? Target(url) else { return [] }
        let now = now()
        return jar.withLock { $0.cookies(for: target, method: .get, isCrossSite: false, now: now) }
    }

    /// Takes in a cookie made by hand, in the place of one with the same name, domain and path. One that has ended
    /// removes that one.
    ///
    /// - Throws: `Cookie.Refusal` when it breaks a rule, as by a `;` in its value or a public suffix for its domain.
    public func insert(_ cookie: Cookie) throws(Cookie.Refusal) {
        let now = now()
        if case .refused(let refusal) = change({ $0.insertChecked(cookie, now: now) }) { throw refusal }
    }

    /// Removes the cookies that a condition holds for; returns how many. The condition is called with the store locked,
    /// and must not use the store.
    @discardableResult
    public func removeAll(where condition: (Cookie) -> Bool) -> Int {
        change { $0.removeAll(where: condition) }
    }

    /// Removes all cookies.
    public func removeAll() { _ = change { $0.removeAll { _ in true } } }

    /// Removes the cookies without an expiry date, as the end of a browser's session does.
    public func removeSessionCookies() { _ = change { $0.removeAll { $0.expires == nil } } }

    /// Waits until what the store holds now is in its file. Returns at once for a store without one.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be written; the old one is then as it was.
    public func save() async throws(NetworkError) {
        guard let file else { return }
        do throws(FileFailure) {
            try await file.write { [self] in lasting }
        } catch {
            throw NetworkError(.fileSystem, reason: "the cookies cannot be written: \(error)", underlying: error)
        }
    }

    private var lasting: [Cookie] { cookies.filter { $0.expires != nil } }

    private func change<Result: Sendable>(_ change: (inout CookieJar) -> Result) -> Result {
        let result = jar.withLock { jar in
            let result = change(&jar)
            hasCookies.store(jar.count > 0, ordering: .relaxed)
            return result
        }
        // The store lives until its last change is written.
        file?.schedule { [self] in lasting }
        return result
    }
}

extension CookieStore: CustomStringConvertible, CustomReflectable {
    /// How many cookies there are.
    public var description: String { "CookieStore(\(jar.withLock { $0.count }) cookies)" }

    /// An empty mirror. The values are secret, so `dump` shows only ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
