public import HTTPTypes
public import Tern

extension HTTPFields {
    /// Creates fields from Tern's headers, in their order. A name with several values, such as `Set-Cookie`, has as
    /// many fields.
    ///
    /// A field that holds a secret (`Headers.Field.isSecret`) is marked as one that no table of HPACK or QPACK indexes
    /// (RFC 7541 §7.1.3). Whitespace around a value is not part of it (RFC 9110 §5.5).
    ///
    /// - Throws: ``ConversionError`` for a name that is not a token, and for a value with a line break, a NUL or
    ///   another control character. `HTTPField` would replace these with spaces.
    public init(_ headers: Headers) throws(ConversionError) {
        self.init()
        guard headers.count < Int(UInt16.max) else {
            throw ConversionError("\(headers.count) header fields are more than swift-http-types can hold")
        }
        reserveCapacity(headers.count)
        for field in headers { append(try HTTPField(field)) }
    }
}

extension HTTPField {
    /// Creates a field from one of Tern.
    ///
    /// - Throws: ``ConversionError`` for a name or a value that HTTP does not allow.
    public init(_ field: Headers.Field) throws(ConversionError) {
        guard let name = Name(field.name) else {
            throw ConversionError("the header name \"\(field.name.shown)\" is not a token (RFC 9110 §5.1)")
        }
        let value = field.value.withoutWhitespaceAround
        guard HTTPField.isValidValue(value) else {
            throw ConversionError(
                "the value of the header \(field.name.shown) contains a control character (RFC 9110 §5.5)")
        }
        self.init(name: name, value: value)
        if field.isSecret { indexingStrategy = .disallow }
    }
}

extension Headers {
    /// Creates headers from fields of swift-http-types, in their order. A name with several fields has as many values.
    ///
    /// Several `Cookie` fields, into which HTTP/2 can split the cookies, become one in the place of the first, as every
    /// other version of HTTP requires (RFC 9113 §8.2.3). The indexing strategies are not kept: Tern's engine decides by
    /// the name.
    ///
    /// - Throws: ``ConversionError`` for a value that is not UTF-8.
    public init(_ fields: HTTPFields) throws(ConversionError) {
        self.init()
        for field in fields {
            guard let value = field.utf8Value else {
                throw ConversionError("the value of the header \(field.name.rawName.shown) is not UTF-8")
            }
            if field.name == .cookie, let cookies = self["Cookie"] {
                self["Cookie"] = "\(cookies); \(value)"
            } else {
                append(name: field.name.rawName, value: value)
            }
        }
    }
}

extension HTTPField {
    /// The value; nil if its bytes are not UTF-8.
    fileprivate var utf8Value: String? {
        unsafe withUnsafeBytesOfValue { bytes in unsafe String(validating: bytes, as: UTF8.self) }
    }
}

extension String {
    /// The text without spaces and tabs at its ends.
    fileprivate var withoutWhitespaceAround: String {
        let isWhitespace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let first = utf8.firstIndex(where: { !isWhitespace($0) }),
            let last = utf8.lastIndex(where: { !isWhitespace($0) })
        else { return "" }
        return String(self[first...last])
    }
}
