public import Tern

extension Client {
    /// Sends a request and returns the server-sent events of its response. The request is sent when the first event is
    /// asked for.
    ///
    /// - Parameters:
    ///   - path: The path, resolved against the base URL, or an absolute URL.
    ///   - method: The method. GET by default. The rules in `options` say which methods' requests are sent again.
    ///   - query: The items of the query.
    ///   - headers: The header fields. `Accept: text/event-stream` and `Cache-Control: no-cache` are added if they are
    ///     missing.
    ///   - body: The body. None by default.
    ///   - options: The time limits, the limits on sizes, and the rules for connecting again.
    ///   - configure: Changes the request before it is sent.
    public func events(
        _ path: String, method: Request.Method = .get, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, options: EventStreamOptions = EventStreamOptions(),
        configure: Request.Change = { _ in }
    ) -> ServerSentEvents {
        let request = Result { () throws(NetworkError) in
            try self.request(method, path, query: query, headers: headers, body: body, configure: configure)
        }
        return ServerSentEvents(request, session: session, options: options)
    }

    /// Sends a request like ``events(_:method:query:headers:body:options:configure:)``.
    public func events(
        for request: Request, options: EventStreamOptions = EventStreamOptions()
    ) -> ServerSentEvents {
        session.events(for: request, options: options)
    }
}

extension Session {
    /// Sends a request and returns the server-sent events of its response. The request is sent when the first event is
    /// asked for.
    public nonisolated func events(
        for request: Request, options: EventStreamOptions = EventStreamOptions()
    ) -> ServerSentEvents {
        ServerSentEvents(.success(request), session: self, options: options)
    }
}
