/// The header fields that a client with a base URL has put on a request, and where they may go. Pure.
struct ClientHeaders: Sendable {
    let fields: Headers
    /// The origin of the client's base URL.
    let origin: String

    /// Fields that go to no other origin than the client's, whatever the client says.
    private static let bound = ["Authorization", "Proxy-Authorization", "Cookie"]

    /// The fields of a client that may go to any origin, where the client says so.
    static func unbound(_ headers: Headers) -> Headers {
        Headers(headers.filter { field in !bound.contains { Headers.namesMatch($0, field.name) } })
    }

    /// The headers of a request that a redirect leads to another origin: without those of the client, and with those that
    /// the session has for the same names. A field with another value is the call's own, and stays.
    func removed(from headers: Headers, standard: Headers) -> Headers {
        var rest = Headers(headers.filter { !fields.contains($0) })
        for field in standard where fields.contains(field.name) && !rest.contains(field.name) {
            if Headers.isSecret(field.name) { continue }
            rest.append(field)
        }
        return rest
    }
}
