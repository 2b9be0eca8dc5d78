#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of a `multipart/form-data` body (RFC 7578), in their order.
///
/// ```swift
/// var form = MultipartForm()
/// form.append("Ada", named: "author")
/// try form.append(file: photo, named: "photo")
/// let album: Album = try await client.upload("photos", multipart: form).value
/// ```
///
/// A form is a value that names its parts; their bytes are read piece by piece while it is sent, never collected in
/// memory and never copied into a temporary file, with the exact `Content-Length` sent ahead. It can be sent again unless
/// one of its parts is a stream. Names and filenames are written by the WHATWG's rule: `"`, CR and LF cannot end a field.
public struct MultipartForm: Sendable {
    /// One part: its header fields and where its bytes come from.
    struct Part: Sendable {
        enum Content: Sendable {
            case data(Data)
            case file(path: String)
            case stream(@Sendable () -> ChunkSource, length: Int64)
            case form(MultipartForm)
        }

        var headers: Headers
        var content: Content
    }

    /// What separates the parts; 38 characters of which 32 are random.
    public let boundary: String
    private let subtype: String
    private(set) var parts: [Part] = []

    /// A form without parts, with a boundary of its own.
    public init() {
        self.init(subtype: "form-data")
    }

    private init(subtype: String) {
        boundary = Self.randomBoundary()
        self.subtype = subtype
    }

    /// A form with a boundary that is given: 1 to 70 letters, digits and `'()+_,-./:=?`, which must not occur in any part.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` for other boundaries (RFC 2046 §5.1.1).
    public init(boundary: String) throws(NetworkError) {
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.allSatisfy(Self.isBoundaryCharacter) else {
            throw Self.refusal("a boundary has 1 to 70 letters, digits and '()+_,-./:=? (RFC 2046 §5.1.1)")
        }
        self.boundary = boundary
        subtype = "form-data"
    }

    /// A form of values: one part for each name, in the order of the encoder. More parts can follow.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the values cannot be encoded.
    public init(encoding values: some Encodable, with encoder: FormEncoder = FormEncoder()) throws(NetworkError) {
        self.init()
        let query = try Request.Query(encoding: values, with: encoder)
        for item in query.items { append(item.value ?? "", named: item.name) }
    }

    /// Parts that belong together under one name (`multipart/mixed`), to be appended to a form.
    public static func mixed() -> MultipartForm { MultipartForm(subtype: "mixed") }

    /// Whether there are no parts.
    public var isEmpty: Bool { parts.isEmpty }

    /// The number of parts.
    public var count: Int { parts.count }

    /// The `Content-Type` of the form, with its boundary.
    public var contentType: String {
        // Characters that are no token characters make the value a quoted one (RFC 2046 §5.1.1).
        boundary.consists(of: .token)
            ? "multipart/\(subtype); boundary=\(boundary)" : "multipart/\(subtype); boundary=\"\(boundary)\""
    }

    /// Whether the form can be sent a second time: false as soon as one part is a stream.
    public var isReplayable: Bool {
        parts.allSatisfy { part in
            switch part.content {
            case .data, .file: true
            case .stream: false
            case .form(let form): form.isReplayable
            }
        }
    }

    mutating func append(_ part: Part) { parts.append(part) }

    static func refusal(_ reason: String, _ underlying: (any Error)? = nil) -> NetworkError {
        NetworkError(.invalidRequest, reason: reason, underlying: underlying)
    }

    private static func randomBoundary() -> String {
        let halves = [UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max)]
        let digits = halves.map { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return "tern--" + digits.joined()
    }

    private static func isBoundaryCharacter(_ byte: UInt8) -> Bool {
        byte.isASCIILetter || byte.isASCIIDigit || "'()+_,-./:=?".utf8.contains(byte)
    }
}

extension MultipartForm: CustomStringConvertible, CustomReflectable {
    /// The number of parts, without their content.
    public var description: String { "MultipartForm(\(parts.count) parts)" }

    /// An empty mirror. The parts can hold secrets, so `dump` shows only ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
