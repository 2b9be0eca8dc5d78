#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// GET requests to a URL and to a path of segments, and downloads to a file that is named by its path.

extension Client {
    /// Sends a GET request to a URL, and decodes the response.
    public func get<T: Decodable & Sendable>(
        _ url: URL, query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await get(url.absoluteString, query: query, headers: headers, as: type, configure: configure)
    }

    /// Sends a GET request to a URL, and returns the body of the response.
    @discardableResult
    public func get(
        _ url: URL, query: Request.Query = [:], headers: Headers = [:], configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await get(url.absoluteString, query: query, headers: headers, configure: configure)
    }

    /// Sends a GET request to a path of segments, each of which is percent-encoded (``Request/path(_:)``), and decodes the
    /// response.
    public func get<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await get(Request.path(segments), query: query, headers: headers, as: type, configure: configure)
    }

    /// Sends a GET request to a path of segments, each of which is percent-encoded (``Request/path(_:)``), and returns the
    /// body of the response.
    @discardableResult
    public func get(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await get(Request.path(segments), query: query, headers: headers, configure: configure)
    }

    /// Downloads a response to the file at a path of the file system, like
    /// ``download(_:to:options:query:headers:startsImmediately:configure:)-(_,URL,_,_,_,_,_)``. A relative path begins at the
    /// current folder of the process.
    @discardableResult
    public func download(
        _ path: String, to filePath: String, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true, configure: Request.Change = { _ in }
    ) -> SessionTask<URL> {
        download(
            path, to: URL(filePath: filePath), options: options, query: query, headers: headers,
            startsImmediately: startsImmediately, configure: configure)
    }
}
