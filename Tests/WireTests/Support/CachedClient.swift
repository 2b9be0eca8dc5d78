#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernHTTPCache

/// A client whose session has a cache, and the clock of the cache.
///
/// The clock begins an hour before the present: the dates of a live server are never before the time of the cache, so
/// that they add nothing to the age of a response.
struct CachedClient: Sendable {
    let client: Client
    let clock: CacheClock

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - folder: The folder of a cache on the disk; nil for one in memory.
    ///   - make: Returns the client, whose session has the changes.
    init(folder: URL? = nil, _ make: ((inout Session.Configuration) -> Void) throws -> Client) throws {
        let clock = CacheClock()
        var configuration = HTTPCache.Configuration()
        configuration.now = { clock.now }
        let cache: HTTPCache = folder.map { .disk(folder: $0, configuration) } ?? .memory(configuration)
        self.clock = clock
        client = try make {
            $0.cache = cache
            $0.validation = ResponseValidation(contentTypes: .any) { _ in true }
        }
    }

    func get(_ path: String, _ headers: Headers = [:]) async throws -> Response<Data> {
        try await get(client.request(.get, path, headers: headers))
    }

    /// Returns the response once the cache has stored it or not.
    func get(_ request: Request) async throws -> Response<Data> {
        let response = try await client.session.response(for: request)
        while response.cacheTrace?.storing == "arriving" { await Task.yield() }
        return response
    }
}

/// A clock that the test sets.
final class CacheClock: Sendable {
    private let time = Lock(Date(timeIntervalSinceNow: -3_600))

    var now: Date { time.withLock { $0 } }

    func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
}

extension Response where Value == Data {
    var text: String { String(decoding: value, as: UTF8.self) }

    /// Returns whether the response is a stored one with this text.
    func isStored(_ text: String) -> Bool { cacheTrace?.source == .stored && self.text == text }
}
#endif
