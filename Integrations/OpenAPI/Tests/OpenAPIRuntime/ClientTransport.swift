// This module has declarations of the shape of those of swift-openapi-runtime that `TernTransport` uses: the same
// names, labels and types, with an implementation of its own. It stands in place of the real module where that cannot
// be fetched.

public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Performs the requests of a generated client.
public protocol ClientTransport: Sendable {
    /// Sends a request, and returns its response.
    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?)
}
