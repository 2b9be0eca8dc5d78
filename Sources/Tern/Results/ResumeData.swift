/// The data needed to continue a download where it stopped, in this process or a later one. Encode it and keep it next
/// to the partial file that it names.
///
/// Decoding checks every value, so that a file that someone else changed can neither add fields to a request nor name
/// another file. A value that Tern would not produce fails with a `DecodingError`. The URL is that of the file: keep it
/// where only this user can write, and compare ``url`` with the expected one before you give secrets in `headers` with
/// it.
public struct ResumeData: Sendable, Hashable, Codable {
    /// The URL of the download, as it is sent.
    public let url: String
    /// The strong ETag of the downloaded part, or its Last-Modified date if there is no strong ETag. The server
    /// continues the download only if the file still has this validator (If-Range, RFC 9110 §13.1.5).
    public let validator: String
    /// The number of bytes in the partial file.
    public let offset: Int64
    /// The name of the partial file. The file is in the folder of the destination, or in the temporary folder when the
    /// download has no destination yet. The destination and the partial file can be moved together to another folder.
    public let partialFile: String
    /// The folder that the partial file was in when this value was made. Tern does not look for the file there. It uses
    /// the value only to tell a partial file that no longer exists from one that is in another folder.
    public let folder: String
    /// The size of the whole file in bytes; nil when the server did not state it.
    public let totalBytes: Int64?
    /// The number of requests for the rest in a row that brought nothing.
    private let refusals: Int
    /// The number of these in a row without an answer, or with a body that is not the rest.
    private let failures: Int

    /// Creates resume data from the path of the partial file.
    ///
    /// - Parameter path: The path of the partial file.
    package init(
        url: String, validator: String, offset: Int64, partialFile path: String, totalBytes: Int64?,
        counts: PartCounts = PartCounts()
    ) {
        self.url = url
        self.validator = validator
        self.offset = offset
        partialFile = FilePath.name(of: path)
        folder = FilePath.folder(of: path)
        self.totalBytes = totalBytes
        refusals = counts.refusals
        failures = counts.failures
    }

    /// Decodes and checks an encoded value.
    ///
    /// - Throws: A `DecodingError` that names the invalid value.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        url = try values.decode(String.self, forKey: .url)
        validator = try values.decode(String.self, forKey: .validator)
        offset = try values.decode(Int64.self, forKey: .offset)
        partialFile = try values.decode(String.self, forKey: .partialFile)
        folder = try values.decode(String.self, forKey: .folder)
        totalBytes = try values.decodeIfPresent(Int64.self, forKey: .totalBytes)
        // Earlier versions do not write them.
        refusals = try values.decodeIfPresent(Int.self, forKey: .refusals) ?? 0
        failures = try values.decodeIfPresent(Int.self, forKey: .failures) ?? 0
        if let (key, problem) = problem {
            throw DecodingError.dataCorruptedError(forKey: key, in: values, debugDescription: problem)
        }
    }

    /// The requests for the rest in a row that brought nothing.
    package var counts: PartCounts { PartCounts(refusals: refusals, failures: failures) }

    /// The path of the partial file when this value was made.
    package var partialPath: String { FilePath.join(folder, partialFile) }

    /// Returns the same download with another number of bytes in the partial file.
    package func at(_ offset: Int64) -> ResumeData {
        ResumeData(url: url, validator: validator, offset: offset, partialFile: partialPath, totalBytes: totalBytes)
    }

    /// Returns the same download with other counts.
    package func counting(_ counts: PartCounts) -> ResumeData {
        ResumeData(
            url: url, validator: validator, offset: offset, partialFile: partialPath, totalBytes: totalBytes,
            counts: counts)
    }
}

extension ResumeData {
    private static let longestURL = 1 << 16
    private static let longestFolder = 1 << 12
    private static let longestValidator = 1 << 10
    /// An upper bound for the length of a file, which sums cannot overflow.
    private static let mostBytes: Int64 = 1 << 60

    /// The first value that Tern would not produce, and the reason; nil when all are valid.
    private var problem: (CodingKeys, String)? {
        // `try?`: the reason of an invalid URL does not matter here.
        guard url.utf8.count <= Self.longestURL, (try? Target(absolute: url)) != nil else { return (.url, "no URL") }
        guard Self.isValidator(validator) else { return (.validator, "neither a strong entity tag nor a date") }
        guard let name = TemporaryName(partialFile), name.isPartial else {
            return (.partialFile, "not the name of a partial file")
        }
        guard folder.utf8.count <= Self.longestFolder, !folder.isEmpty, !folder.utf8.contains(0) else {
            return (.folder, "no path")
        }
        guard (0...Self.mostBytes).contains(offset) else { return (.offset, "no length of a file") }
        if let totalBytes, totalBytes < offset || totalBytes > Self.mostBytes {
            return (.totalBytes, "less than the offset, or no length of a file")
        }
        guard counts.isValid else { return (.refusals, "no number of refusals") }
        return nil
    }

    /// The reason why this value cannot continue a download; nil when it can.
    var invalidity: String? { problem.map { "its \($0.stringValue) is \($1)" } }

    /// Returns whether a text can be sent in If-Range: a strong entity tag (RFC 9110 §8.8.3) or a date.
    package static func isValidator(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count <= longestValidator else { return false }
        let quote = UInt8(ascii: "\"")
        if bytes.first == quote {
            guard bytes.count >= 2, bytes.last == quote else { return false }
            return bytes.dropFirst().dropLast().allSatisfy { $0 >= 0x21 && $0 != quote && $0 != 0x7F }
        }
        return bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && HTTPDate.date(from: text) != nil
    }
}

extension ResumeData: CustomStringConvertible, CustomReflectable {
    /// The URL, the offset, the size and the path of the partial file. The values of the URL's query are hidden.
    public var description: String {
        let total = totalBytes.map(String.init) ?? "an unknown number of"
        return "\(Target.redact(url)), \(offset) of \(total) bytes in \(partialPath)"
    }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The number of requests for the rest in a row that brought no byte of it, so that a part can stand in nobody's way
/// for ever. Kept with the part. Pure.
package struct PartCounts: Sendable, Hashable {
    /// The number of all these requests: refused, without an answer, or with a body that is not the rest.
    package var refusals = 0
    /// The number of requests in a row with a body that is not the rest, or for which the total time was over before an
    /// answer: no request for the whole file can follow them at once.
    package var failures = 0

    /// The number in a row that leaves the part alone.
    private static let mostIgnored = 3
    /// An upper bound for the numbers that are counted.
    static let most = 1_000

    package init(refusals: Int = 0, failures: Int = 0) {
        self.refusals = refusals
        self.failures = failures
    }

    /// Whether a refused request for the rest is followed at once by one for the whole file. The requests follow each
    /// other at once, so that a server that comes back costs no part.
    package var refusesRest: Bool { refusals >= Self.mostIgnored }

    /// Whether the whole file is asked for in place of the rest. The part stays until the response is accepted.
    package var asksForWhole: Bool { failures >= Self.mostIgnored }

    /// Whether Tern would produce these numbers.
    package var isValid: Bool { (0...Self.most).contains(refusals) && (0...Self.most).contains(failures) }
}
