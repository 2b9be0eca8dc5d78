public import Tern

extension Session {
    /// Opens a WebSocket.
    ///
    /// Redirects, challenges, cookies, credentials, proxies, trust policies and interceptors apply to the handshake as
    /// to any request. A `wss` or `https` URL uses TLS. An HTTP proxy is passed through a tunnel (CONNECT). Cancelling
    /// the calling Swift task ends the handshake.
    ///
    /// - Parameters:
    ///   - request: A GET request without a body. Its `validation` is not used: only a status of 101 is accepted.
    ///     The fields `Sec-WebSocket-…` are written here and refused among its headers.
    ///   - protocols: The subprotocols that are offered, in order of preference. `WebSocket.subprotocol` is the chosen
    ///     one.
    ///   - options: The limits, the compression and the time limits of the socket.
    /// - Throws: An error of kind `.invalidRequest` for a request that cannot ask for a socket, of kind `.status` with
    ///   the body of the response if the server refuses, of kind `.malformedResponse` if its response is not valid, and
    ///   of kind `.unsupported` in a background session, and over a URLSession that has no WebSockets.
    public nonisolated func webSocket(
        for request: Request, protocols: [String] = [], options: WebSocket.Options = WebSocket.Options()
    ) async throws(NetworkError) -> WebSocket {
        try await WebSocket.open(request, protocols: protocols, options: options, in: self)
    }

    /// Opens a WebSocket at an absolute URL with the scheme `ws`, `wss`, `http` or `https`. See
    /// ``webSocket(for:protocols:options:)``.
    public nonisolated func webSocket(
        _ url: String, protocols: [String] = [], headers: Headers = [:],
        options: WebSocket.Options = WebSocket.Options()
    ) async throws(NetworkError) -> WebSocket {
        let request = try Request(.get, WebSocketURL.http(url), headers: headers)
        return try await webSocket(for: request, protocols: protocols, options: options)
    }
}

extension Client {
    /// Opens a WebSocket at a path of the base URL, or at an absolute URL with the scheme `ws`, `wss`, `http` or
    /// `https`.
    ///
    /// ```swift
    /// let socket = try await client.webSocket("live", protocols: ["chat"])
    /// ```
    ///
    /// `configure` changes the request before it is sent. See `Session.webSocket(for:protocols:options:)`.
    public func webSocket(
        _ path: String, protocols: [String] = [], query: Request.Query = [:], headers: Headers = [:],
        options: WebSocket.Options = WebSocket.Options(), configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> WebSocket {
        let request = try request(
            .get, WebSocketURL.http(path), query: query, headers: headers, configure: configure)
        return try await session.webSocket(for: request, protocols: protocols, options: options)
    }
}

/// The URLs of WebSockets (RFC 6455 §3), which are those of HTTP with other schemes.
enum WebSocketURL {
    /// Returns a URL or a path with the scheme of HTTP. Any other text is returned as it is.
    static func http(_ text: String) -> String {
        let start = text.prefix(6).lowercased()
        if start.hasPrefix("wss://") { return "https" + text.dropFirst(3) }
        if start.hasPrefix("ws://") { return "http" + text.dropFirst(2) }
        return text
    }
}
