package import Tern

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The lifetime of a response by its head, for stores other than an `HTTPCache`, such as that of images (RFC 9111 §4.2).
package struct ResponseLifetime: Sendable, Hashable {
    /// The time for which the response is still fresh, by `max-age` or `Expires`; zero if it must be validated, nil if the
    /// response names none.
    package let explicit: Duration?
    /// A Boolean value that indicates whether the response must not be stored (`no-store`).
    package let forbidsStorage: Bool

    /// Reads the head of a response that has just arrived.
    package init(_ head: ResponseHead, now: Date) {
        let (headers, time) = (head.headers, CacheTime(now))
        let directives = ResponseDirectives(headers)
        forbidsStorage = directives.noStore
        if directives.noCache || Vary(headers) == .everything {
            explicit = .zero
            return
        }
        let freshness = Freshness(
            status: head.status, headers: headers, directives: directives, requestTime: time, responseTime: time)
        switch freshness.basis {
        case .maxAge, .expires: explicit = max(.zero, freshness.lifetime - freshness.initialAge)
        case .heuristic, .none: explicit = nil
        }
    }
}
