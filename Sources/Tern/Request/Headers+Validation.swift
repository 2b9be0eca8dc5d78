extension Headers {
    /// Whether two names are the same header: equal without regard to ASCII case. Allocates nothing.
    package static func namesMatch(_ left: String, _ right: String) -> Bool {
        // Most names differ in length already.
        guard left.utf8.count == right.utf8.count else { return false }
        return left.withUTF8Span { left in
            right.withUTF8Span { right in
                for index in left.indices where left[index].asciiLowercased != right[index].asciiLowercased {
                    return false
                }
                return true
            }
        }
    }

    /// What makes these headers unfit to be sent, or nil. The text names the header and never quotes its value.
    ///
    /// A name must be a token (RFC 9110 §5.1). A value must be free of CR, LF, NUL and the other control characters
    /// except the tab (RFC 9110 §5.5): a line break would let a value smuggle in further headers.
    package func firstProblem() -> String? {
        for field in self {
            if let problem = field.problem { return problem }
        }
        return nil
    }
}

extension Headers.Field {
    /// What makes the field unfit to be sent, or nil.
    var problem: String? {
        if name.isEmpty { return "a header name is empty (RFC 9110 §5.1)" }
        if !name.consists(of: .token) {
            return "the header name \"\(name.printable(limit: 80))\" contains a character that RFC 9110 §5.1 forbids"
        }
        let firstControl: (offset: Int, byte: UInt8)? = value.withUTF8Span { bytes in
            for index in bytes.indices where bytes[index].isASCIIControl && bytes[index] != 0x09 {
                return (index, bytes[index])
            }
            return nil
        }
        guard let (offset, byte) = firstControl else { return nil }
        let what =
            switch byte {
            case 0x0D: "a carriage return"
            case 0x0A: "a line feed"
            case 0x00: "a NUL"
            default: "a control character"
            }
        return "the value of the header \(name) contains \(what) at byte \(offset), which RFC 9110 §5.5 forbids"
    }
}

extension Headers.Field: CustomStringConvertible, CustomReflectable {
    /// The field as `name: value`. The value is hidden if the header carries a credential, and so are the parts of URLs
    /// in it that can be secret.
    public var description: String { "\(name.printable()): \(printableValue)" }

    /// Nothing beside ``description``: `dump` would show the value of a credential.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers: CustomStringConvertible {
    /// One line a field; the values of headers that carry credentials are hidden.
    public var description: String { map(\.description).joined(separator: "\n") }
}
