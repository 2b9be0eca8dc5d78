/// The pages of a list, each of which names the next one.
///
/// ```swift
/// for try await page in client.pages("repos", as: [Repository].self) {
///     repositories += page.value
/// }
/// ```
///
/// A page is requested when the loop asks for it. Each iterator starts with the first page. After an error, a loop
/// ends.
public struct Pages<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A page as it was received.
    public typealias Element = Response<Value>
    /// The error of a page.
    public typealias Failure = NetworkError
    /// Returns the request for the page after a response; nil after the last page.
    public typealias NextPage = @Sendable (Response<Value>) throws(NetworkError) -> Request?

    let client: Client
    let first: Result<Request, NetworkError>
    let limit: Int
    let nextPage: NextPage

    /// Returns an iterator from the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(pages: self, next: first) }

    /// An iterator over pages.
    public struct Iterator: AsyncIteratorProtocol {
        private let pages: Pages
        private var next: Result<Request, NetworkError>?
        private var requested: Set<String> = []

        fileprivate init(pages: Pages, next: Result<Request, NetworkError>) {
            self.pages = pages
            self.next = next
        }

        /// Requests the next page; nil after the last one.
        ///
        /// - Throws: The error of the request; of kind `.redirect` for a page that was received before, and after the
        ///   maximum number of pages.
        public mutating func next() async throws(NetworkError) -> Response<Value>? {
            guard let request = try next?.get() else { return nil }
            next = nil
            guard requested.count < pages.limit else {
                throw NetworkError(FailureCause(.redirect, "more than \(pages.limit) pages"), request: request)
            }
            guard requested.insert(request.urlString).inserted else {
                throw NetworkError(FailureCause(.redirect, "the page was received before"), request: request)
            }
            let response = try await pages.client.response(for: request, as: Value.self)
            do throws(NetworkError) {
                next = try pages.nextPage(response).map { .success($0) }
            } catch {
                next = .failure(error)
            }
            return response
        }

        /// Requests the next page; nil after the last one. Runs on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Response<Value>?
        {
            try await next()
        }
    }
}

extension Client {
    /// Returns the pages of a list. The next page is the one that a `Link` field with the relation `next` names (RFC
    /// 8288 §3), with the headers of this call.
    ///
    /// - Parameter limit: The maximum number of pages. 1,000 by default. More are an error of kind `.redirect`.
    ///
    /// A next page is on the server of the call, or on that of the page that names it, if a redirect led there. As after
    /// any redirect, another scheme, host or port does not receive the secrets of the call. A next page on a third
    /// server is an error of kind `.redirect`.
    public func pages<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], limit: Int = 1_000, as type: T.Type = T.self
    ) -> Pages<T> {
        let first = firstPage(path, query: query, headers: headers)
        return Pages(client: self, first: first, limit: limit) { response throws(NetworkError) in
            guard let link = LinkField.target(of: "next", in: response.headers.values(for: "Link")),
                case .success(var request) = first
            else { return nil }
            let page = response.head.target
            let next: Target
            do throws(Target.Problem) {
                next = try page.resolving(link)
                guard next.origin == page.origin || next.origin == request.target.origin else {
                    throw Target.Problem(reason: "the next page is on another server, \(next.origin)")
                }
            } catch {
                throw NetworkError(FailureCause(.redirect, error.reason), request: request)
            }
            try request.move(to: next)
            return request
        }
    }

    /// Returns the pages of a list. `nextPage` returns the request for the page after a response, and nil after the
    /// last page.
    ///
    /// - Parameter limit: The maximum number of pages. 1,000 by default. More are an error of kind `.redirect`.
    public func pages<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], limit: Int = 1_000,
        as type: T.Type = T.self,
        next nextPage: @escaping Pages<T>.NextPage
    ) -> Pages<T> {
        let first = firstPage(path, query: query, headers: headers)
        return Pages(client: self, first: first, limit: limit, nextPage: nextPage)
    }

    private func firstPage(
        _ path: String, query: Request.Query, headers: Headers
    ) -> Result<Request, NetworkError> {
        do throws(NetworkError) {
            return .success(try request(.get, path, query: query, headers: headers))
        } catch {
            return .failure(error)
        }
    }
}

/// The field `Link` (RFC 8288 §3). Pure.
enum LinkField {
    /// Returns the URI reference of the first link with a relation; nil if there is none. A link with an `anchor` is
    /// about another page (§3.2), and a malformed rest of a field is ignored.
    static func target(of relation: String, in values: [String]) -> String? {
        for value in values {
            var rest = Substring(value).utf8[...]
            while let link = nextLink(&rest) {
                if !link.hasAnchor, link.relations.contains(relation) { return link.target }
            }
        }
        return nil
    }

    private struct Link {
        var target: String
        var relations: [String] = []
        var hasAnchor = false
    }

    private static func nextLink(_ rest: inout Substring.UTF8View) -> Link? {
        skip(&rest) { $0.isHTTPWhitespace || $0 == UInt8(ascii: ",") }
        guard rest.first == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
        var link = Link(target: String(Substring(rest[..<end].dropFirst())))
        rest = rest[rest.index(after: end)...]
        var seen: Set<String> = []
        while true {
            skip(&rest, while: \.isHTTPWhitespace)
            guard rest.first == UInt8(ascii: ";") else { return link }
            rest = rest.dropFirst()
            skip(&rest, while: \.isHTTPWhitespace)
            let name = String(
                decoding: rest.prefix { ByteSet.token.contains($0) }.map(\.asciiLowercased), as: UTF8.self)
            rest = rest.dropFirst(name.utf8.count)
            skip(&rest, while: \.isHTTPWhitespace)
            var value = ""
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst()
                skip(&rest, while: \.isHTTPWhitespace)
                value = parameterValue(&rest)
            }
            // The first `rel` counts (§3.3).
            guard seen.insert(name).inserted else { continue }
            switch name {
            case "rel": link.relations = value.lowercased().split(whereSeparator: \.isWhitespace).map(String.init)
            case "anchor": link.hasAnchor = true
            default: break
            }
        }
    }

    private static func parameterValue(_ rest: inout Substring.UTF8View) -> String {
        var bytes: [UInt8] = []
        guard rest.first == UInt8(ascii: "\"") else {
            while let byte = rest.first, !byte.isHTTPWhitespace, byte != UInt8(ascii: ";"), byte != UInt8(ascii: ",") {
                bytes.append(byte)
                rest = rest.dropFirst()
            }
            return String(decoding: bytes, as: UTF8.self)
        }
        rest = rest.dropFirst()
        var isEscaped = false
        while let byte = rest.first {
            rest = rest.dropFirst()
            if isEscaped {
                bytes.append(byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                break
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func skip(_ rest: inout Substring.UTF8View, while condition: (UInt8) -> Bool) {
        rest = rest.drop(while: condition)
    }
}
