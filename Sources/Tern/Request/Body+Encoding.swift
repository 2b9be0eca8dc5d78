#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Request.Body {
    /// A value as a form (`application/x-www-form-urlencoded`), encoded when the request is sent, off the caller's actor.
    /// nil gives an empty body of that type.
    public static func form(
        _ value: some Encodable & Sendable, encoder: FormEncoder = FormEncoder()
    ) -> Self {
        Self(
            content: .encoded(format: "a form") { _ in Data(try encoder.text(of: value).utf8) }, contentType: formType)
    }

    /// Names and values as a form (`application/x-www-form-urlencoded`), in their order.
    public static func form(_ items: Request.Query) -> Self {
        Self(content: .data(Data(items.encoded.utf8)), contentType: formType)
    }

    /// A value as a property list (`application/x-plist`), encoded when the request is sent, off the caller's actor.
    public static func propertyList(
        _ value: some Encodable & Sendable, format: PropertyListDecoder.PropertyListFormat = .xml
    ) -> Self {
        let encode: @Sendable (Session.Configuration) throws -> Data = { _ in
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return try encoder.encode(value)
        }
        return Self(content: .encoded(format: "a property list", encode), contentType: "application/x-plist")
    }

    /// A multipart form, each part read piece by piece while it is sent; the exact length is sent ahead. A form without
    /// parts is no body at all.
    public static func multipart(_ form: MultipartForm) -> Self {
        form.isEmpty ? .none : Self(content: .multipart(form), contentType: form.contentType)
    }

    private static let formType = "application/x-www-form-urlencoded"
}

/// What an encoder says went wrong, without the value itself: it may be a secret.
enum EncodingProblem {
    static func text(_ error: any Error) -> String {
        guard case EncodingError.invalidValue(let value, let context)? = error as? EncodingError else {
            return "\(error)"
        }
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        let place = path.isEmpty ? "" : " at \(path)"
        return "\(context.debugDescription) (a \(Swift.type(of: value))\(place))"
    }
}
