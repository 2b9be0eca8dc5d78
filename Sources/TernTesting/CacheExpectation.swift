public import Tern

/// The error of ``/Tern/ResponseHead/requireCached(_:)``: the response came from elsewhere.
public struct CacheExpectationFailure: Error, Sendable, CustomStringConvertible {
    /// The response, and how the cache handled it.
    public let description: String
}

extension ResponseHead {
    /// Checks where a response came from, in the test of a program whose session has a cache.
    ///
    /// ```swift
    /// let response = try await client.session.response(for: request)
    /// try response.head.requireCached()
    /// ```
    ///
    /// - Parameter sources: The expected origins. By default a fresh stored response.
    /// - Throws: `CacheExpectationFailure`, which tells how the cache handled the response.
    public func requireCached(_ sources: Set<CacheTrace.Source> = [.stored]) throws(CacheExpectationFailure) {
        let expected = sources.map(\.rawValue).sorted().joined(separator: " or ")
        guard let trace = cacheTrace else {
            throw CacheExpectationFailure(description: "\(self): expected \(expected); the session has no cache")
        }
        guard sources.contains(trace.source) else {
            throw CacheExpectationFailure(description: "\(self): expected \(expected); \(trace)")
        }
    }
}
