#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The parts of a `multipart/form-data` body (RFC 7578), in order.
///
/// ```swift
/// var form = MultipartForm()
/// form.append("Ada", named: "author")
/// try form.append(file: photo, named: "photo")
/// let album: Album = try await client.upload("photos", multipart: form).value
/// ```
///
/// A form is a value that names its parts. Their bytes are read in pieces while the form is sent. They are never
/// collected in memory or copied to a temporary file, and the exact `Content-Length` is sent before them. A form can be
/// sent again unless one of its parts is a stream. Names and filenames are escaped by WHATWG's rule, so that `"`, CR
/// and LF cannot end a field.
public struct MultipartForm: Sendable {
    /// A part: its header fields and the source of its bytes.
    struct Part: Sendable {
        enum Content: Sendable {
            case data(Data)
            case file(path: String)
            case stream(@Sendable () -> ChunkSource, length: Int64)
            /// Chunks that can be opened any number of times.
            case chunks(@Sendable () -> ChunkSource, length: Int64)
            case form(MultipartForm)
        }

        var headers: Headers
        var content: Content
    }

    /// The delimiter of the parts: 38 characters, of which 32 are random.
    public let boundary: String
    private let subtype: String
    private(set) var parts: [Part] = []

    /// Creates a form without parts and with a new boundary.
    public init() {
        self.init(subtype: "form-data")
    }

    private init(subtype: String) {
        boundary = Self.randomBoundary()
        self.subtype = subtype
    }

    /// Creates a form with a given boundary: 1 to 70 letters, digits and `'()+_,-./:=?`, which must not occur in any
    /// part.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` for other boundaries (RFC 2046 §5.1.1).
    public init(boundary: String) throws(NetworkError) {
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.allSatisfy(Self.isBoundaryCharacter) else {
            throw Self.refusal("a boundary has 1 to 70 letters, digits and '()+_,-./:=? (RFC 2046 §5.1.1)")
        }
        self.boundary = boundary
        subtype = "form-data"
    }

    /// Creates a form of values: one part for each name, in the order of the encoder. More parts can follow.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the values cannot be encoded.
    public init(encoding values: some Encodable, with encoder: FormEncoder = FormEncoder()) throws(NetworkError) {
        self.init()
        let query = try Request.Query(encoding: values, with: encoder)
        for item in query.items { append(item.value ?? "", named: item.name) }
    }

    /// Creates a form of parts that belong together under one name (`multipart/mixed`), to append to another form.
    public static func mixed() -> MultipartForm { MultipartForm(subtype: "mixed") }

    /// A Boolean value that indicates whether there are no parts.
    public var isEmpty: Bool { parts.isEmpty }

    /// The number of parts.
    public var count: Int { parts.count }

    /// The `Content-Type` of the form, with its boundary.
    public var contentType: String {
        // Characters that are not token characters require quotes (RFC 2046 §5.1.1).
        boundary.consists(of: .token)
            ? "multipart/\(subtype); boundary=\(boundary)" : "multipart/\(subtype); boundary=\"\(boundary)\""
    }

    /// A Boolean value that indicates whether the form can be sent a second time. False if a part is a stream.
    public var isReplayable: Bool {
        parts.allSatisfy { part in
            switch part.content {
            case .data, .file, .chunks: true
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

extension MultipartForm {
    /// Appends a text. Line breaks in the name are escaped by WHATWG's rule; those in the text stay unchanged.
    public mutating func append(_ text: String, named name: String) {
        append(Part(headers: Self.headers(name, filename: nil, contentType: nil), content: .data(Data(text.utf8))))
    }

    /// Appends bytes.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; nil for a part that is not a file.
    ///   - contentType: The part's `Content-Type`; nil for the type of the filename's extension, or for none without a
    ///     filename.
    public mutating func append(
        _ data: Data, named name: String, filename: String? = nil, contentType: String? = nil
    ) {
        let type = contentType ?? filename.map { MediaType.guess(filename: $0) }
        append(Part(headers: Self.headers(name, filename: filename, contentType: type), content: .data(data)))
    }

    /// Appends a file, which is opened and measured each time that the form is sent.
    ///
    /// - Parameters:
    ///   - file: A file URL.
    ///   - name: The name of the form's field.
    ///   - filename: The name that the server receives; nil for the file's own name.
    ///   - contentType: The part's `Content-Type`; nil for the type of the extension, or `application/octet-stream` for
    ///     an unknown one.
    /// - Throws: `NetworkError` of kind `.invalidRequest` at once when the URL is not a file URL, or the file does not
    ///   exist, is a folder or cannot be read.
    public mutating func append(
        file: URL, named name: String, filename: String? = nil, contentType: String? = nil
    ) throws(NetworkError) {
        guard file.isFileURL else {
            throw Self.refusal("a part's file must be a file URL, not one with the scheme \(file.scheme ?? "none")")
        }
        let path = file.path
        do {
            let system = PosixFileSystem()
            _ = try system.length(of: path)
            try system.close(system.open(path, .read))
        } catch {
            throw Self.refusal("a part's file cannot be read: \(error)", error)
        }
        let filename = filename ?? FilePath.name(of: path)
        let type = contentType ?? MediaType.guess(filename: FilePath.name(of: path))
        append(Part(headers: Self.headers(name, filename: filename, contentType: type), content: .file(path: path)))
    }

    /// Appends the chunks of a sequence, which is read only as fast as the connection accepts them. The sequence is
    /// iterated once, so the form can be sent only once.
    ///
    /// - Parameters:
    ///   - stream: The chunks. They are iterated off the caller's actor.
    ///   - length: The exact number of bytes. A sequence that gives more or fewer fails the task before the form ends,
    ///     so that no server accepts it as complete.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; nil for a part that is not a file.
    ///   - contentType: The part's `Content-Type`; nil for the type of the filename's extension.
    public mutating func append<Chunks: AsyncSequence & Sendable>(
        _ stream: Chunks, length: Int64, named name: String, filename: String? = nil, contentType: String? = nil
    ) where Chunks.Element == Data {
        let type = contentType ?? filename.map { MediaType.guess(filename: $0) }
        append(
            Part(
                headers: Self.headers(name, filename: filename, contentType: type),
                content: .stream({ ChunkSource(stream) }, length: length)))
    }

    /// Appends the chunks of a sequence that can be iterated any number of times, always with the same bytes, so that the
    /// form can be sent again.
    package mutating func append<Chunks: AsyncSequence & Sendable>(
        replayable chunks: Chunks, length: Int64, named name: String, filename: String, contentType: String
    ) where Chunks.Element == Data {
        append(
            Part(
                headers: Self.headers(name, filename: filename, contentType: contentType),
                content: .chunks({ ChunkSource(chunks) }, length: length)))
    }

    /// The number of bytes after those of the last part: CR LF, "--", the boundary, "--", CR LF.
    package var lengthBehindLastPart: Int64 { Int64(boundary.utf8.count) + 8 }

    /// Returns the number of bytes of the form. Its files are measured.
    package func length() async throws -> Int64 { try await MultipartMessage(self, .shared).length }

    /// Returns the bytes of the form.
    package func makeSource() async throws -> sending ChunkSource {
        try await MultipartMessage(self, .shared).makeSource(.shared)
    }

    /// Appends a form within the form, such as several files under one name (``mixed()``).
    public mutating func append(_ form: MultipartForm, named name: String) {
        append(
            Part(
                headers: Self.headers(name, filename: nil, contentType: form.contentType), content: .form(form)))
    }

    /// Appends bytes with header fields that the caller chooses.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when a name is not a token or a value has a line break (RFC
    ///   9110 §5).
    public mutating func append(headers: Headers, body: Data) throws(NetworkError) {
        if let problem = headers.firstProblem() { throw Self.refusal("a part's headers: \(problem)") }
        append(Part(headers: headers, content: .data(body)))
    }

    /// Returns `Content-Disposition`, then `Content-Type`.
    private static func headers(_ name: String, filename: String?, contentType: String?) -> Headers {
        var disposition = "form-data; name=\"\(escaped(name, isName: true))\""
        if let filename { disposition += "; filename=\"\(escaped(filename, isName: false))\"" }
        var headers: Headers = ["Content-Disposition": disposition]
        // A type is one line, so line breaks are removed.
        if let contentType {
            headers["Content-Type"] = String(decoding: contentType.utf8.filter { !$0.isASCIIControl }, as: UTF8.self)
        }
        return headers
    }

    /// Escapes a name or filename by WHATWG's rule (HTML §4.10.21.8): `"`, CR and LF become `%22`, `%0D` and `%0A`, and
    /// every line break of a name becomes CR LF before that. Other text stays UTF-8.
    static func escaped(_ text: String, isName: Bool) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        var isBehindReturn = false
        for byte in text.utf8 {
            let isReturn = byte == 0x0D
            if isName, isBehindReturn, byte != 0x0A { result += "%0A".utf8 }
            if isName, byte == 0x0A, !isBehindReturn { result += "%0D".utf8 }
            switch byte {
            case UInt8(ascii: "\""), 0x0A, 0x0D: result.appendPercentEncoded(byte)
            default: result.append(byte)
            }
            isBehindReturn = isReturn
        }
        if isName, isBehindReturn { result += "%0A".utf8 }
        return String(decoding: result, as: UTF8.self)
    }
}

extension MultipartForm {
    /// Writes the form to a file and returns the body that sends the file, for a transport that needs one, or to keep
    /// it.
    ///
    /// The form is written under a temporary name in the same folder, with permissions for its owner only, and then
    /// moved to its destination in one step, where it replaces an existing file. After a failure or a cancellation no
    /// file is left. A form with a stream cannot be used again.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be written, `.requestBody` when a part
    ///   cannot be read, `.cancelled` when the calling task is cancelled.
    @concurrent
    public func write(to file: URL) async throws(NetworkError) -> Request.Body {
        try await write(to: file, FileStore.shared)
    }

    func write(to file: URL, _ files: FileStore) async throws(NetworkError) -> Request.Body {
        let path = file.path
        let place = TemporaryPlace(folder: FilePath.folder(of: path), destination: FilePath.name(of: path))
        let partial: PartialFile
        do {
            partial = try await PartialFile(creating: place, files)
        } catch {
            throw NetworkError(.fileSystem, reason: "the form cannot be written: \(error)", underlying: error)
        }
        do {
            try await fill(partial, files)
            try await partial.close()
            _ = try await partial.move(to: path, Download.Options())
        } catch {
            await partial.discard()
            throw Self.problem(error)
        }
        return .file(file, contentType: contentType)
    }

    private func fill(_ file: PartialFile, _ files: FileStore) async throws {
        let source = try await Self.reading { try await MultipartMessage(self, files).makeSource(files) }
        while let chunk = try await Self.reading({ try await source.next() }) {
            try Task.checkCancellation()
            try await file.write([chunk])
        }
    }

    /// Returns what a part gives. Its failure is another one than that of the file that is written.
    private static func reading<Value>(_ part: () async throws -> Value) async throws -> Value {
        do {
            return try await part()
        } catch  where !(error is CancellationError) {
            throw NetworkError(.requestBody, reason: "the form cannot be written: \(error)", underlying: error)
        }
    }

    private static func problem(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        if error is CancellationError { return NetworkError(.cancelled, reason: "the task was cancelled") }
        return NetworkError(.fileSystem, reason: "the form cannot be written: \(error)", underlying: error)
    }
}
