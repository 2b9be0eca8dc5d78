import BenchSupport
import Synchronization
import Tern
import TernInspector

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The additions of a program to its session: `--with cookie,retry,adapter` is the session of most.
struct Additions {
    static let handle = "handle"

    private let names: Set<String>

    init(_ names: Set<String>) { self.names = names }

    func add(to configuration: inout Session.Configuration, url: String) {
        if names.contains("cookie"), let url = URL(string: url) {
            let store = CookieStore()
            do {
                try store.store("id=a3fWa; Path=/", for: url)
            } catch {
                complain("bench-tern: \(error)")
            }
            configuration.cookies = .store(store)
        }
        if names.contains("observer") { configuration.observers = [Counter()] }
        if names.contains("inspector") { configuration.observers = [SessionInspector()] }
        if names.contains("retry") { configuration.interceptors.append(RetryInterceptor()) }
        if names.contains("adapter") { configuration.interceptors.append(HeaderAdapter()) }
        if names.contains("interceptor") { configuration.interceptors.append(HeaderInterceptor()) }
    }
}

/// Counts the events of a session.
private final class Counter: SessionObserver {
    private let count = Atomic<Int>(0)

    func didObserve(_ event: TaskRegistry.Event) { count.add(1, ordering: .relaxed) }
}

/// Adds a header to each request.
private struct HeaderAdapter: RequestAdapter {
    func adapt(_ request: Request) -> Request {
        var request = request
        request.headers["Authorization"] = "Bearer mF_9.B5f-4.1JqM"
        return request
    }
}

/// Adds a header to each request, as an interceptor that may wait.
private struct HeaderInterceptor: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Reply {
        var request = request
        request.headers["Authorization"] = "Bearer mF_9.B5f-4.1JqM"
        return try await next(request)
    }
}
