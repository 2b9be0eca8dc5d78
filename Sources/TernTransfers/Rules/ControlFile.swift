import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The names of the two files beside a destination. They depend on the destination's name alone, so that every process
/// that asks for the destination finds them, also after their folder was moved.
struct ControlNames: Sendable, Equatable {
    /// The file that holds the bytes so far: `.big.iso.tern`.
    let partial: String
    /// The file that describes it: `.big.iso.tern.json`.
    let control: String
    /// The next version of the control file until it replaces the last one.
    let nextControl: String

    /// File systems allow names of 255 bytes.
    private static let longestName = 200
    private static let stemLength = 160

    init(destination name: String) {
        var stem = name
        if name.utf8.count > Self.longestName {
            // Cut between characters. The digest tells names with the same beginning apart.
            stem = ""
            for character in name {
                if stem.utf8.count + character.utf8.count > Self.stemLength { break }
                stem.append(character)
            }
            stem += "-" + Hexadecimal.lowercase(Array(DigestFunction.hash(Array(name.utf8), .sha256).prefix(8)))
        }
        // A sweep for another download removes a file whose name has the form of its own temporary files.
        let candidate = ".\(stem).tern"
        partial = TemporaryName(candidate) == nil ? candidate : ".\(stem)-.tern"
        control = partial + ".json"
        nextControl = control + ".new"
    }
}

/// The description of a transfer in a control file, as JSON with a version.
protocol ControlDescription: Codable {
    /// Returns the bytes of the file.
    func encoded() throws -> Data
}

extension ControlDescription {
    /// The version that this code writes. A later one is refused, and not overwritten.
    static var currentVersion: Int { 1 }
    /// The greatest size that is read, in bytes.
    static var limit: Int { 128 << 10 }

    func encoded() throws -> Data { try json() }

    /// Returns the description as JSON.
    func json() throws -> Data {
        var encoder = TernJSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    /// Reads a description, whose values are not checked yet.
    static func decoded(_ data: Data) throws(ControlFile.Problem) -> Self {
        guard data.count <= limit else { throw .invalid("more than \(limit) bytes") }
        let decoder = TernJSONDecoder()
        // `try?`: the reason of a malformed file does not matter here.
        guard let version = try? decoder.decode(ControlVersion.self, from: data).version else {
            throw .invalid("no JSON")
        }
        guard version <= currentVersion else { throw .laterVersion(version) }
        // `try?`: as above.
        guard version > 0, let control = try? decoder.decode(Self.self, from: data) else {
            throw .invalid("a value is missing or has another type")
        }
        return control
    }
}

/// The version of a control file, which is read before the rest.
private struct ControlVersion: Codable {
    let version: Int
}

/// The description of a partial file that a later process continues. It is a file that anybody who can write to the
/// folder may have changed, so reading it checks each value: none can add a field to a request or name another file.
struct ControlFile: Sendable, Equatable, ControlDescription {
    private(set) var version = currentVersion
    /// The URL of the download, as it was sent first. It can hold secrets: the file can be read by its owner alone.
    var url: String
    /// The digest as it stands in the file; nil otherwise. It is computed only when the file is written, which small
    /// files seldom are.
    private var storedDigest: String?
    /// The name of the partial file, beside this one.
    var partialFile: String
    /// The strong entity tag of the bytes; nil for none.
    var etag: String?
    /// The date of the last change, if it is a strong validator; nil for none.
    var lastModified: String?
    /// The origin that sent the bytes.
    var origin: String?
    /// The size of the whole file in bytes; nil while it is not known.
    var size: Int64?
    /// The digest of the whole file that the server stated.
    var digest: StoredDigest?
    /// The number of bytes that are known to be on the disk; nil if the download does not synchronize.
    var syncedBytes: Int64?
    /// The run of the system in which the bytes were written; nil if it is not known.
    var bootID: String?
    /// The number of segments in which the file is written; nil for one stream.
    var segments: Int?
    /// The number of the complete, verified file in its file system, written before it gets its name; nil before.
    var completedFile: UInt64?
    /// The number of requests for the rest in a row that brought nothing; nil for none.
    private var refusals: Int?
    /// The number of these in a row without an answer, or with a body that is not the rest; nil for none.
    private var failures: Int?

    /// The requests for the rest in a row that brought nothing.
    var counts: PartCounts {
        get { PartCounts(refusals: refusals ?? 0, failures: failures ?? 0) }
        set {
            refusals = newValue.refusals > 0 ? newValue.refusals : nil
            failures = newValue.failures > 0 ? newValue.failures : nil
        }
    }

    /// The digest of the URL without its secrets.
    var urlDigest: String { Self.digest(of: url) }

    private enum CodingKeys: String, CodingKey {
        case version, url, partialFile, etag, lastModified, origin, size, digest, syncedBytes, bootID, segments
        case completedFile, refusals, failures
        case storedDigest = "urlDigest"
    }

    /// A digest in the file.
    struct StoredDigest: Sendable, Equatable, Codable {
        var algorithm: String
        var value: String

        init(_ digest: FileDigest) {
            algorithm = digest.algorithm.rawValue
            value = Hexadecimal.lowercase(Array(digest.bytes))
        }

        /// The digest; nil if it is not valid.
        var digest: FileDigest? {
            guard let algorithm = FileDigest.Algorithm(rawValue: algorithm) else { return nil }
            let digest = FileDigest(algorithm, value)
            return digest.isValid ? digest : nil
        }
    }

    /// The reason why a control file cannot be used.
    enum Problem: Error, Equatable, CustomStringConvertible {
        /// Tern would not have written it.
        case invalid(String)
        /// A later version of Tern wrote it.
        case laterVersion(Int)

        var description: String {
            switch self {
            case .invalid(let reason): "the control file is not valid: \(reason)"
            case .laterVersion(let version):
                "the control file has version \(version), which a later version of Tern wrote"
            }
        }
    }

    /// An upper bound for the length of a file, which sums cannot overflow.
    static let mostBytes: Int64 = 1 << 60

    init(url: String, partialFile: String) {
        self.url = url
        self.partialFile = partialFile
    }

    /// Describes the file of a response.
    init(url: String, partialFile: String, of head: ResponseHead, size: Int64?) {
        self.init(url: url, partialFile: partialFile)
        let validators = StrongValidators(head)
        (etag, lastModified) = (validators.etag, validators.lastModified)
        (self.size, origin) = (size, head.target.origin)
        digest = FileDigest(of: head.headers, status: head.status).map { StoredDigest($0) }
    }

    /// Records that a file is complete and verified.
    mutating func complete(_ file: DiskCall.Identity?, _ length: Int64) {
        (completedFile, size, bootID) = (file?.number, size ?? length, DiskCall.bootID)
    }

    /// Reads a control file and checks it.
    ///
    /// - Parameters:
    ///   - data: The bytes of the file.
    ///   - names: The names of the destination's files.
    init(_ data: Data, names: ControlNames) throws(Problem) {
        self = try Self.decoded(data)
        if let problem = problem(names) { throw .invalid(problem) }
        storedDigest = nil
    }

    /// The bytes of the file.
    func encoded() throws -> Data {
        var whole = self
        whole.storedDigest = urlDigest
        return try whole.json()
    }

    /// The first value that Tern would not have written; nil if all are valid.
    private func problem(_ names: ControlNames) -> String? {
        // `try?`: the reason of an invalid URL does not matter here.
        guard url.utf8.count <= 1 << 16, (try? Target(absolute: url)) != nil else { return "url is no URL" }
        guard storedDigest == Self.digest(of: url) else { return "urlDigest is not that of the URL" }
        guard partialFile == names.partial else { return "partialFile is not the name of the partial file" }
        if let etag, !etag.hasPrefix("\"") || !ResumeData.isValidator(etag) { return "etag is no strong entity tag" }
        if let lastModified, lastModified.hasPrefix("\"") || !ResumeData.isValidator(lastModified) {
            return "lastModified is no date"
        }
        if let origin, origin.utf8.count > 1 << 10 { return "origin is too long" }
        let lengths = [size, syncedBytes].compactMap(\.self)
        guard lengths.allSatisfy({ (0...Self.mostBytes).contains($0) }) else {
            return "a length is no length of a file"
        }
        if let size, let syncedBytes, syncedBytes > size { return "syncedBytes is greater than size" }
        if let digest, digest.digest == nil { return "digest is no digest" }
        if let bootID, bootID.utf8.count > 64 { return "bootID is too long" }
        if let segments, !(2...SegmentPlan.mostSegments).contains(segments) || size == nil {
            return "segments is no number of segments"
        }
        if !counts.isValid { return "refusals or failures is no number of requests" }
        return nil
    }

    /// Returns the digest that identifies a URL: without user information and fragment, which are never sent, and
    /// without the items of the query that sign it, which differ each time. Other secrets, such as a session or a key,
    /// can name the resource.
    static func digest(of url: String) -> String {
        // `try?`: an invalid URL is compared as text.
        guard let target = try? Target(absolute: url) else {
            return Hexadecimal.lowercase(DigestFunction.hash(Array(url.utf8), .sha256))
        }
        var text = target.origin + target.path
        if let query = target.query {
            text +=
                "?"
                + query.split(separator: "&").filter { !isSignature($0.prefix { $0 != "=" }) }.joined(separator: "&")
        }
        return Hexadecimal.lowercase(DigestFunction.hash(Array(text.utf8), .sha256))
    }

    /// The items of signed URLs: of Amazon, Azure, CloudFront and others.
    private static let signatureNames: Set = [
        "signature", "sig", "hmac", "token", "access_token", "key-pair-id", "awsaccesskeyid", "googleaccessid",
        "security-token", "expires", "expiry", "policy", "se", "sp", "spr", "sv", "sr", "st", "sip", "ske", "sks",
        "skt",
        "skv", "sktid", "skoid",
    ]
    private static let signaturePrefixes = ["x-amz-", "x-goog-", "x-oss-", "x-cos-"]

    private static func isSignature(_ name: Substring) -> Bool {
        let name = name.lowercased()
        return signatureNames.contains(name) || signaturePrefixes.contains { name.hasPrefix($0) }
    }
}

extension ControlFile: CustomStringConvertible, CustomReflectable {
    /// The URL without the values of its query, and the size. No other value is shown.
    var description: String {
        "\(Target.redact(url)), \(size.map { "\($0) bytes" } ?? "of unknown size") in \(partialFile)"
    }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
