import Synchronization
import TernConcurrency

/// What a session's requests were let in with, so that the next one need not be challenged: the nonces of Digest and
/// their counts, and the credentials of Basic and Bearer.
///
/// Kept by origin and by whose credential it was: a request with credentials in its URL never uses those of another.
package final class AuthenticationCache: Sendable {
    /// Whose credential it is.
    package enum Owner: Sendable, Hashable {
        /// The session's provider or policy, for all requests without credentials of their own.
        case session
        /// A provider or policy that was set on a request, and on its copies.
        case request(UInt64)
        /// The URL that has it.
        case url(Credential)
    }

    private struct Key: Hashable {
        let source: AuthenticationChallenge.Source
        let origin: String
        let owner: Owner
    }

    /// The cache must not grow with the origins that a crawler meets.
    static let limit = 256

    private let entries = Lock<[Key: Authorization]>([:])
    private let hasEntries = Atomic<Bool>(false)

    package init() {}

    /// Whether anything was ever remembered.
    package var hasAny: Bool { hasEntries.load(ordering: .relaxed) }

    /// What is known to be accepted; one branch where nothing is. Its ``Authorization/bodyDigest`` says whether the body's
    /// hash is needed.
    package func authorization(
        for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) -> Authorization? {
        if !hasEntries.load(ordering: .relaxed) { return nil }
        return entries.withLock { $0[Key(source: source, origin: target.origin, owner: owner)] }
    }

    /// The field for a request, counted: no two requests get the same count of one nonce. nil if nothing is known.
    package func field(
        for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server, method: Request.Method,
        bodyHash: [UInt8] = []
    ) -> Headers.Field? {
        if !hasEntries.load(ordering: .relaxed) { return nil }
        let key = Key(source: source, origin: target.origin, owner: owner)
        return entries.withLock { $0[key]?.field(method: method, target: target, bodyHash: bodyHash) }
    }

    /// Remembers what is accepted, for the uses that are left of it: all requests share its count.
    package func remember(_ authorization: Authorization, for target: Target, owner: Owner) {
        let key = Key(source: authorization.source, origin: target.origin, owner: owner)
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[key] == nil, let any = entries.keys.first { entries[any] = nil }
            entries[key] = authorization
        }
        hasEntries.store(true, ordering: .relaxed)
    }

    /// Forgets a credential that was refused, unless another request has brought a newer one meanwhile.
    package func forget(
        _ credential: Credential, for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) {
        let key = Key(source: source, origin: target.origin, owner: owner)
        entries.withLock { entries in
            if entries[key]?.credential == credential { entries[key] = nil }
        }
    }

    /// Takes in the `Authentication-Info` of an accepted request; one branch without.
    package func take(
        information: String?, for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) {
        guard let information else { return }
        let key = Key(source: source, origin: target.origin, owner: owner)
        entries.withLock { $0[key]?.take(information: information) }
    }

    /// Forgets all.
    package func removeAll() {
        entries.withLock { $0.removeAll() }
        hasEntries.store(false, ordering: .relaxed)
    }
}
