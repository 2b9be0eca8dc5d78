/// A media type with its parameters, as `Content-Type` names it (RFC 9110 §8.3.1).
package struct MediaType: Sendable, Hashable {
    /// A parameter: its name in lower case, its value as it was sent.
    package struct Parameter: Sendable, Hashable {
        package var name: String
        package var value: String
    }

    /// Before the slash, in lower case.
    package let type: String
    /// Behind the slash, in lower case.
    package let subtype: String
    /// The parameters in their order.
    package let parameters: [Parameter]

    /// Parses a field value; nil if it does not begin with `type/subtype`.
    package init?(_ value: String) {
        var scanner = ParameterScanner(value)
        let essence = scanner.leadingValue().lowercased()
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && String($0).consists(of: .token) }) else {
            return nil
        }
        type = String(parts[0])
        subtype = String(parts[1])
        var parameters: [Parameter] = []
        while let parameter = scanner.next() {
            parameters.append(Parameter(name: parameter.name, value: parameter.value))
        }
        self.parameters = parameters
    }

    /// `type/subtype`, without parameters.
    package var essence: String { "\(type)/\(subtype)" }

    /// The first `charset`, if it is not empty.
    package var charset: String? {
        guard let value = parameters.first(where: { $0.name == "charset" })?.value else { return nil }
        // Some servers quote twice or with apostrophes.
        let name = value.filter { $0 != "'" && $0 != "\"" }
        return name.isEmpty ? nil : name
    }

    /// Whether the body is JSON: `application/json`, `text/json`, or any subtype with the suffix `+json` (RFC 6839).
    package var isJSON: Bool {
        subtype == "json" && (type == "application" || type == "text") || subtype.hasSuffix("+json")
    }
}
