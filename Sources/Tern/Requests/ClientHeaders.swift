/// The header fields that a client with a base URL added to a request, and the origins that may receive them. Pure.
struct ClientHeaders: Sendable {
    let fields: Headers
    /// The origin of the client's base URL.
    let origin: String

    /// Fields that are sent only to the client's origin, regardless of the client's settings.
    private static let neverSentToOtherOrigins = ["Authorization", "Proxy-Authorization", "Cookie"]

    /// Returns the fields of a client that may be sent to any origin if the client allows it.
    static func unbound(_ headers: Headers) -> Headers {
        Headers(headers.filter { field in !neverSentToOtherOrigins.contains { Headers.namesMatch($0, field.name) } })
    }

    /// Returns the headers of a request that a redirect leads to another origin: without the client's fields, and with
    /// the session's fields of the same names. A field with a different value was set by the call and stays.
    func removed(from headers: Headers, standard: Headers) -> Headers {
        var rest = Headers(headers.filter { !fields.contains($0) })
        for field in standard where fields.contains(field.name) && !rest.contains(field.name) {
            if Headers.isSecret(field.name) { continue }
            rest.append(field)
        }
        return rest
    }
}
