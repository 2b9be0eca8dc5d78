import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Stores the cookies that servers set, and returns them for requests by the rules of RFC 6265bis.
///
/// A store is shared by all sessions that use it, or belongs to one session (``CookieUse``). Every call is synchronous
/// and can be made from any thread. A look-up in an empty store costs one branch. Cookies are kept in memory, and with
/// ``init(file:opening:)`` also in a file.
///
/// A store keeps at most 180 cookies of one domain and 3000 in all. Beyond that it removes cookies in this order:
/// expired cookies, then cookies of a domain that has too many, cookies without the Secure attribute before the others,
/// and the least recently used first. A request carries at most 8 KiB of cookies, including its own `Cookie` field; the
/// oldest cookies are left out.
public final class CookieStore: Sendable {
    /// The store that sessions share by default. It is kept in memory only.
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

    /// Creates an empty store in memory.
    public convenience init() { self.init(jar: CookieJar()) }

    /// Creates a store that keeps its cookies with an expiry date in a file.
    ///
    /// Reads the file now and blocks the caller meanwhile. A missing file counts as empty. Soon after each change, a
    /// thread of the store writes a new file with permissions 0600 and puts it in the place of the old one, so that a
    /// process that is killed leaves a whole file. ``save()`` waits for that. One file belongs to one store.
    ///
    /// - Parameter opening: The treatment of a file that is damaged or empty. ``Opening/failingIfDamaged`` by default.
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be read, and when it was not written by a
    ///   store, unless `opening` says otherwise.
    public convenience init(file: URL, opening: Opening = .failingIfDamaged) throws(NetworkError) {
        try self.init(file: file.path, opening: opening, jar: CookieJar(), now: { Date() })
    }

    /// The treatment of a file that was not written by a store, or not whole.
    public enum Opening: Sendable, Hashable {
        /// The file stays as it is, and opening it fails, at each start of the program.
        case failingIfDamaged
        /// The file is renamed to its name with `.damaged` at the end, in the place of an earlier one, and the store is
        /// empty. Users have to sign in again.
        case startingOverIfDamaged
    }

    package init(jar: consuming CookieJar, now: @escaping @Sendable () -> Date = { Date() }) {
        hasCookies.store(jar.count > 0, ordering: .relaxed)
        self.jar = Lock(jar)
        self.now = now
        file = nil
        identity = .memory(Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    package init(
        file path: String, opening: Opening = .failingIfDamaged, jar: consuming CookieJar,
        now: @escaping @Sendable () -> Date
    ) throws(NetworkError) {
        let file = CookieFile(path)
        do {
            // A cookie that breaks the rules is left out, because the file may have been edited.
            for cookie in try file.read(opening) { _ = jar.insertChecked(cookie, now: now()) }
        } catch {
            throw NetworkError(.fileSystem, reason: "the cookies cannot be read: \(error)", underlying: error)
        }
        hasCookies.store(jar.count > 0, ordering: .relaxed)
        self.jar = Lock(jar)
        self.now = now
        self.file = file
        identity = .file(path)
    }

    /// A Boolean value that indicates whether the public suffix list is available, so that no server can set a cookie
    /// for all of `co.uk`. On Linux it comes from `libpsl.so.5`. Without it, only domains of one label are refused.
    public static var knowsPublicSuffixes: Bool { PublicSuffixes.system.isComplete }

    // MARK: Requests and responses

    /// Returns the value of a request's `Cookie` field; nil if no cookie is for it.
    ///
    /// - Parameter redirects: The URLs that led here, the first request's URL first. If one belongs to another site,
    ///   the `SameSite` rules decide which cookies are sent.
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

    /// Stores the cookies of the `Set-Cookie` fields of a response, and returns the result of each.
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

    // MARK: Direct access

    /// A Boolean value that indicates whether the store holds no cookie.
    public var isEmpty: Bool { !hasCookies.load(ordering: .relaxed) }

    /// All cookies that have not expired, in the order in which they were first stored.
    public var cookies: [Cookie] {
        let now = now()
        return jar.withLock { $0.all(now: now) }
    }

    /// Returns the cookies that a GET of a URL would carry, in the order in which they would be sent; none for a URL
    /// that cannot be requested.
    public func cookies(for url: URL) -> [Cookie] {
        // An invalid URL has no cookies. The reason is reported when it is requested.
        guard let target = try? Target(url) else { return [] }
        let now = now()
        return jar.withLock { $0.cookies(for: target, method: .get, isCrossSite: false, now: now) }
    }

    /// Stores a cookie made by the caller, and replaces one with the same name, domain and path. An expired cookie
    /// removes it.
    ///
    /// - Throws: `Cookie.Refusal` when the cookie breaks a rule, for example by a `;` in its value or a public suffix
    ///   as its domain.
    public func insert(_ cookie: Cookie) throws(Cookie.Refusal) {
        let now = now()
        if case .refused(let refusal) = change({ $0.insertChecked(cookie, now: now) }) { throw refusal }
    }

    /// Stores the cookie of a `Set-Cookie` field as if a response from a URL had it. An expired cookie removes the
    /// stored one.
    ///
    /// - Throws: `Cookie.Refusal` when a response from that URL could not set the cookie.
    public func store(_ field: String, for url: URL) throws(Cookie.Refusal) {
        guard let target = try? Target(url) else {  // `try?`: the refusal below names the reason.
            throw Cookie.Refusal(reason: "the URL is not an http or https URL")
        }
        if case .refused(let refusal)? = store([field], from: target).first { throw refusal }
    }

    /// Removes the cookies that satisfy a condition, and returns their number. The condition may use the store: a
    /// cookie that changes meanwhile stays.
    @discardableResult
    public func removeAll(where condition: (Cookie) -> Bool) -> Int {
        // Not under the lock, for which requests wait.
        let removed = Set(cookies.filter(condition))
        return removed.isEmpty ? 0 : change { $0.removeAll { removed.contains($0) } }
    }

    /// Removes all cookies.
    public func removeAll() { _ = change { $0.removeAll { _ in true } } }

    /// Removes the cookies without an expiry date, as the end of a browser's session does.
    public func removeSessionCookies() { _ = change { $0.removeAll { $0.expires == nil } } }

    /// Returns when the cookies that the store holds now are in its file. Returns at once for a store without a file.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be written. The old file is then unchanged.
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
    /// The number of cookies.
    public var description: String { "CookieStore(\(jar.withLock { $0.count }) cookies)" }

    /// An empty mirror. The values are secret, so `dump` shows only ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The cookie store of a session or a request.
public enum CookieUse: Sendable {
    /// The shared store, ``CookieStore/shared``.
    case shared
    /// A store that belongs to the session alone and ends with it.
    case separate
    /// A store of the caller, for example one with a file.
    case store(CookieStore)
    /// No store: only a `Cookie` field of the request itself is sent, and no `Set-Cookie` is stored.
    case none

    /// Returns the store that a session uses for its lifetime; nil for none. `.separate` creates a new one.
    package func makeStore() -> CookieStore? {
        switch self {
        case .shared: .shared
        case .separate: CookieStore()
        case .store(let store): store
        case .none: nil
        }
    }
}
