package import Tern

/// The facts of a request that logs, metrics and traces name by the semantic conventions of OpenTelemetry, without
/// secrets.
package struct RequestFacts: Sendable, Hashable {
    /// The host and the port of a URL.
    package struct Server: Sendable, Hashable {
        /// The host in canonical form. An IPv6 address has no brackets.
        package let address: String
        /// The port: explicit, or that of the scheme.
        package let port: Int
    }

    /// The methods that count as known without other settings: those of RFC 9110, PATCH and QUERY.
    package static let knownMethods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE",
    ]

    /// The method if it is a known one, otherwise `_OTHER` (`http.request.method`).
    package let method: String
    /// The method as it is sent, of limited length; nil for a well-known one (`http.request.method_original`).
    package let originalMethod: String?
    /// The URL without user information and the query values that are not revealed (`url.full`). Tern redacts it.
    package let url: String
    /// The server that the URL names (`server.address`, `server.port`).
    package let server: Server
    /// `http` or `https` (`url.scheme`).
    package let scheme: String
    /// The template of the URL that the caller has stated (`url.template`); nil without one, and after a redirect.
    package let template: String?

    package init(
        _ request: Request, revealing revealed: RevealedValues = .none,
        knownMethods: Set<String> = RequestFacts.knownMethods, isRedirected: Bool = false
    ) {
        let method = request.method.rawValue
        let isKnown = knownMethods.contains(method)
        self.method = isKnown ? method : "_OTHER"
        originalMethod = isKnown ? nil : String(method.prefix(40))
        url = request.urlDescription(revealing: revealed)
        server = Server(url: request.urlString)
        scheme = request.urlString.hasPrefix("https:") ? "https" : "http"
        template = isRedirected ? nil : request.userInfo[Request.URLTemplate.self].map { String($0.prefix(200)) }
    }

    /// The name of a span (`{method} {target}`): the method, or `HTTP` for one that is not known, and the template.
    package var spanName: String {
        let method = originalMethod == nil ? method : "HTTP"
        return template.map { "\(method) \($0)" } ?? method
    }
}

extension RequestFacts.Server {
    /// Reads the server of a URL in Tern's normal form, `scheme://host[:port]/path`.
    package init(url: String) {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let authority = parts.count > 2 ? parts[2] : ""
        let hostEnd = authority.lastIndex(of: "]").map { authority.index(after: $0) } ?? authority.startIndex
        let colon = authority[hostEnd...].lastIndex(of: ":")
        address = authority[..<(colon ?? authority.endIndex)].filter { $0 != "[" && $0 != "]" }
        port = colon.flatMap { Int(authority[authority.index(after: $0)...]) } ?? (parts.first == "https:" ? 443 : 80)
    }
}

extension HTTPVersion {
    /// The version for `network.protocol.version`: `1.1`, `2`.
    package var number: String { rawValue.split(separator: "/").last.map(String.init) ?? rawValue }
}
