import HTTPTypes
import Tern

/// Copies fields from one connection to the other, without those that concern one connection alone.
enum ForwardedFields {
    /// The fields of a single connection, beside those that the field `Connection` names (RFC 9110 §7.6.1).
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]
    /// The fields that Tern sets for the connection to the origin, or that the server has answered itself.
    private static let ownFields: Set<String> = ["content-length", "expect", "host"]

    /// Returns the fields of a client's request for the origin.
    static func headers(of fields: HTTPFields) -> Headers {
        let named = names(in: fields.filter { $0.name == .connection }.map(\.value))
        var headers = Headers()
        for field in fields {
            let name = field.name.canonicalName
            if hopByHop.contains(name) || ownFields.contains(name) || named.contains(name) { continue }
            headers.append(name: field.name.rawName, value: field.value)
        }
        // Each intermediary adds itself (RFC 9110 §7.6.3).
        headers.append(name: "Via", value: "1.1 tern-proxy")
        return headers
    }

    /// Returns the fields of the origin's response for the client.
    static func fields(of headers: Headers) -> HTTPFields {
        let named = names(in: headers.values(for: "Connection"))
        var fields = HTTPFields()
        for header in headers {
            // A field whose name is no token cannot be passed on.
            guard let name = HTTPField.Name(header.name) else { continue }
            if hopByHop.contains(name.canonicalName) || named.contains(name.canonicalName) { continue }
            fields.append(HTTPField(name: name, value: header.value))
        }
        return fields
    }

    /// Returns the names in lists that are separated by commas, in lowercase.
    private static func names(in lists: [String]) -> Set<String> {
        let names = lists.flatMap { $0.split(separator: ",") }
        return Set(names.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() })
    }
}
