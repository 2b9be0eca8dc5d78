public import HTTPTypes
public import Tern

extension Request {
    /// Creates a request from one of swift-http-types: its method, URL and header fields in their order.
    ///
    /// A `Host` field must name the same server as the authority, and is left out, because Tern derives it from the
    /// URL. It takes the place of an authority that is missing. The path is brought into normal form: without dot
    /// segments, and with characters that a URL cannot contain percent-encoded.
    ///
    /// - Parameters:
    ///   - request: The request, with a scheme, an authority and a path.
    ///   - body: The body. None by default.
    /// - Throws: ``ConversionError`` if a part is missing, is not valid, or cannot be sent by a client: the method
    ///   CONNECT, a scheme other than http and https, user information in the authority, a path that does not begin
    ///   with `/`.
    public init(_ request: HTTPRequest, body: Body = .none) throws(ConversionError) {
        let parts = try RequestParts(request)
        guard let origin = parts.origin else {
            throw ConversionError("the request has no scheme and no authority, and there is no base URL")
        }
        do {
            try self.init(parts.method, origin + parts.path, headers: parts.headers, body: body)
        } catch {
            throw ConversionError(error.reason)
        }
    }
}

extension HTTPRequest {
    /// Creates a request of swift-http-types from one of Tern: its method, URL and header fields in their order.
    ///
    /// The body, the time limits and the other settings have no counterpart. Neither has the fragment of the URL. The
    /// session's headers, its cookies and the `Content-Type` of the body are added when Tern sends a request, and are
    /// not part of it before.
    ///
    /// - Throws: ``ConversionError`` for a method or a field that HTTP does not allow, and for a `Host` field that
    ///   names another server than the URL: an `HTTPRequest` has one authority.
    public init(_ request: Request) throws(ConversionError) {
        guard let method = Method(request.method.rawValue) else {
            throw ConversionError("the method \"\(request.method.rawValue.shown)\" is not a token (RFC 9110 §9.1)")
        }
        // Tern's URLs are in normal form: `scheme://authority/path`.
        let parts = request.urlString.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4 else { throw ConversionError("the URL has no path") }
        let (scheme, authority) = (String(parts[0].dropLast()), String(parts[2]))
        var fields = try HTTPFields(request.headers)
        for host in fields[values: .hostName] where !Authority.areEqual(host, authority) {
            throw ConversionError("the Host field names another server than the URL")
        }
        fields[.hostName] = nil
        self.init(
            method: method, scheme: scheme, authority: authority, path: "/" + parts[3], headerFields: fields)
    }
}

/// The parts of an `HTTPRequest` that Tern sends.
struct RequestParts {
    let method: Request.Method
    /// `https://host:port`; nil for a request without scheme and authority, which needs a base URL.
    let origin: String?
    /// The path and the query. It begins with `/`.
    let path: String
    let headers: Headers

    init(_ request: HTTPRequest) throws(ConversionError) {
        method = Request.Method(request.method.rawValue)
        if request.method == .connect || request.extendedConnectProtocol != nil {
            throw ConversionError("CONNECT is for proxies and cannot be sent as a request")
        }
        guard let path = request.path, !path.isEmpty else { throw ConversionError("the request has no path (:path)") }
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw ConversionError("the path (:path) does not begin with \"/\"")
        }
        // A fragment is never sent. Behind a mistake such as an unescaped name, the rest of the path would be lost.
        guard !path.utf8.contains(UInt8(ascii: "#")) else {
            throw ConversionError("the path (:path) contains \"#\", which must be written as %23")
        }
        self.path = path
        let hosts = request.headerFields[values: .hostName]
        let authority = request.authority ?? hosts.first
        if let authority, hosts.contains(where: { !Authority.areEqual($0, authority) }) {
            throw ConversionError("the Host field and the authority name different servers (RFC 9113 §8.3.1)")
        }
        switch (request.scheme, authority) {
        case (nil, nil): origin = nil
        case (nil, _): throw ConversionError("the request has no scheme (:scheme)")
        case (_, nil): throw ConversionError("the request has no authority (:authority)")
        case (let scheme?, let authority?): origin = try Authority.origin(scheme: scheme, authority: authority)
        }
        var fields = request.headerFields
        fields[.hostName] = nil
        headers = try Headers(fields)
    }
}

/// Rules for `:authority` and `Host`. Pure.
enum Authority {
    /// Returns the start of a URL. Only a host and a port can be an authority (RFC 9113 §8.3.1): any other delimiter of
    /// a URL in it would lead the request to another host or path.
    static func origin(scheme: String, authority: String) throws(ConversionError) -> String {
        let name = scheme.lowercased()
        guard name == "http" || name == "https" else {
            throw ConversionError("the scheme \(scheme.shown) is not supported, only http and https are")
        }
        guard !authority.isEmpty else { throw ConversionError("the authority (:authority) is empty") }
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw ConversionError("the authority (:authority) contains user information (RFC 9113 §8.3.1)")
        }
        guard authority.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !"/?#\\".utf8.contains($0) }) else {
            throw ConversionError("the authority (:authority) is not a host with an optional port")
        }
        return "\(name)://\(authority)"
    }

    /// Returns whether two authorities have the same text, without regard to case.
    static func areEqual(_ left: String, _ right: String) -> Bool { left.lowercased() == right.lowercased() }
}

extension HTTPField.Name {
    // swift-http-types does not offer the name, because `:authority` takes its place.
    static let hostName: Self = {
        guard let name = Self("Host") else { preconditionFailure("Host is a token") }
        return name
    }()
}
