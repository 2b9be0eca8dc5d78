#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a form: `--b` first, `--b` between the parts, `--b--` last, with line breaks around (RFC 2046 §5.1.1).
struct MultipartMessage: Sendable {
    enum Segment: Sendable {
        case bytes(Data)
        case file(path: String, length: Int64)
        case stream(@Sendable () -> ChunkSource, length: Int64, name: String)
    }

    private(set) var segments: [Segment] = []
    /// The exact length of the whole form.
    private(set) var length: Int64 = 0
    /// The text between two parts' bytes, collected until the next file or stream.
    private var text = Data()

    /// Creates a message and measures the files.
    init(_ form: MultipartForm, _ files: FileStore) async throws {
        try await add(form, files)
        try flush()
    }

    private mutating func add(_ form: MultipartForm, _ files: FileStore) async throws {
        for (index, part) in form.parts.enumerated() {
            text += Data("\(index == 0 ? "" : "\r\n")--\(form.boundary)\r\n".utf8)
            for field in part.headers { text += Data("\(field.name): \(field.value)\r\n".utf8) }
            text += Data("\r\n".utf8)
            switch part.content {
            case .data(let data):
                text += data
            case .file(let path):
                try add(.file(path: path, length: try await files.length(ofFile: path)))
            case .stream(let makeSource, let length), .chunks(let makeSource, let length):
                guard length >= 0 else { throw ChunkSource.WrongLength(part: "a part", stated: length, count: 0) }
                try add(.stream(makeSource, length: length, name: "part \(index + 1)"))
            case .form(let form):
                try await add(form, files)
            }
        }
        text += Data("\r\n--\(form.boundary)--\r\n".utf8)
    }

    private mutating func add(_ segment: Segment) throws(ChunkSource.WrongLength) {
        try flush()
        segments.append(segment)
        switch segment {
        case .bytes(let data): try addLength(Int64(data.count))
        case .file(_, let count), .stream(_, let count, _): try addLength(count)
        }
    }

    /// The lengths of streams are those that the caller states.
    private mutating func addLength(_ count: Int64) throws(ChunkSource.WrongLength) {
        let (sum, overflows) = length.addingReportingOverflow(count)
        if overflows { throw ChunkSource.WrongLength(part: "the form", stated: .max, count: nil) }
        length = sum
    }

    private mutating func flush() throws(ChunkSource.WrongLength) {
        if text.isEmpty { return }
        segments.append(.bytes(text))
        try addLength(Int64(text.count))
        text = Data()
    }

    /// Returns the chunks in order. The bytes of a file or a stream are counted, and a number that differs from the one
    /// in `Content-Length` is an error before the next part begins.
    func makeSource(_ files: FileStore) -> ChunkSource {
        var rest = segments[...]
        var current: ChunkSource?
        return ChunkSource {
            while true {
                if let chunk = try await current?.next() { return chunk }
                current = nil
                switch rest.popFirst() {
                case nil:
                    return nil
                case .bytes(let data):
                    return data
                case .file(let path, let length):
                    current = .exactly(length, of: "the file \(path)") { try await files.reader(ofFile: path) }
                case .stream(let makeSource, let length, let name):
                    current = .exactly(length, of: name) { makeSource() }
                }
            }
        }
    }
}
