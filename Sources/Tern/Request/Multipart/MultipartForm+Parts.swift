#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension MultipartForm {
    /// Adds a text. Line breaks in the name are written as the WHATWG says; those of the text stay as they are.
    public mutating func append(_ text: String, named name: String) {
        append(Part(headers: Self.headers(name, filename: nil, contentType: nil), content: .data(Data(text.utf8))))
    }

    /// Adds bytes.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - name: The name of the form's field.
    ///   - filename: The name of a file; nil for a part that is none.
    ///   - contentType: The part's `Content-Type`; nil for the one that the filename's extension stands for, or for none
    ///     without a filename.
    public mutating func append(
        _ data: Data, named name: String, filename: String? = nil, contentType: String? = nil
    ) {
        let type = contentType ?? filename.map { MediaType.guess(filename: $0) }
        append(Part(headers: Self.headers(name, filename: filename, contentType: type), content: .data(data)))
    }

    /// Adds a file, which is opened and measured when the form is sent, each time.
    ///
    /// - Parameters:
    ///   - file: A file URL.
    ///   - name: The name of the form's field.
    ///   - filename: The name that the server sees; nil for the file's own.
    ///   - contentType: The part's `Content-Type`; nil for the one that the extension stands for, and
    ///     `application/octet-stream` for unknown ones.
    /// - Throws: `NetworkError` of kind `.invalidRequest`, at once, when the URL is no file URL, or the file is not there,
    ///   is a folder or cannot be read.
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

    /// Adds the chunks of a sequence, pulled only as fast as the connection takes them. The sequence is iterated once, so
    /// the form can be sent only once.
    ///
    /// - Parameters:
    ///   - stream: The chunks; iterated off the caller's actor.
    ///   - length: The exact number of bytes. A sequence that gives more or fewer fails the task before the form is closed,
    ///     so that no server takes it for whole.
    ///   - name: The name of the form's field.
    ///   - filename: The name of a file; nil for a part that is none.
    ///   - contentType: The part's `Content-Type`; nil for the one that the filename's extension stands for.
    public mutating func append<Chunks: AsyncSequence & Sendable>(
        _ stream: Chunks, length: Int64, named name: String, filename: String? = nil, contentType: String? = nil
    ) where Chunks.Element == Data {
        let type = contentType ?? filename.map { MediaType.guess(filename: $0) }
        append(
            Part(
                headers: Self.headers(name, filename: filename, contentType: type),
                content: .stream({ ChunkSource(stream) }, length: length)))
    }

    /// Adds a form within the form, such as several files under one name (``mixed()``).
    public mutating func append(_ form: MultipartForm, named name: String) {
        append(
            Part(
                headers: Self.headers(name, filename: nil, contentType: form.contentType), content: .form(form)))
    }

    /// Adds bytes under header fields that are wholly the caller's.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when a name is no token or a value has a line break
    ///   (RFC 9110 §5).
    public mutating func append(headers: Headers, body: Data) throws(NetworkError) {
        if let problem = headers.firstProblem() { throw Self.refusal("a part's headers: \(problem)") }
        append(Part(headers: headers, content: .data(body)))
    }

    /// `Content-Disposition`, then `Content-Type`.
    private static func headers(_ name: String, filename: String?, contentType: String?) -> Headers {
        var disposition = "form-data; name=\"\(escaped(name, isName: true))\""
        if let filename { disposition += "; filename=\"\(escaped(filename, isName: false))\"" }
        var headers: Headers = ["Content-Disposition": disposition]
        // A type is one line, whatever it was made from.
        if let contentType {
            headers["Content-Type"] = String(decoding: contentType.utf8.filter { !$0.isASCIIControl }, as: UTF8.self)
        }
        return headers
    }

    /// A name or filename as the WHATWG has it (HTML §4.10.21.8): `"`, CR and LF as `%22`, `%0D` and `%0A`, and every line
    /// break of a name as CR LF before that. All else is UTF-8 as it is.
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
