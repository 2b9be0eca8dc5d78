import Synchronization
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The identity of a source: method, URL, relevant headers and body; or a path; or an identifier.
///
/// Credentials always count, so that users never share images. They are part of the key as a digest, so that the key
/// can be written to the disk.
struct SourceKey: Sendable, Hashable {
    private let name: String
    /// The hash value of the name, computed once: each load looks into several tables.
    private let nameHash: Int
    /// The name of the partition; empty for the common partition.
    let partition: String
    /// Whether the key is valid only in this process, and not for the disk.
    let isPrivate: Bool

    /// The key as one printable line. No name begins like a partition.
    var text: String { partition.isEmpty ? name : "partition:\(partition) \(name)" }

    /// The tag of the processed images on the disk, which are removed together: short, however long the key is.
    var tag: String { "image \(DigestFunction.short(text.utf8))" }

    /// Whether it is a file of this machine, which can change without a sign.
    var isFile: Bool { name.hasPrefix("file:") }

    /// Whether the caller chose the name and it has a blank, so that its end in a key cannot be told from the fields
    /// behind it.
    var hasNameWithBlank: Bool {
        ["key:", "data:", "image:", "file:"].contains { name.hasPrefix($0) } && name.utf8.contains(UInt8(ascii: " "))
    }

    init(text: String) { self.init(name: text, partition: "", isPrivate: false) }

    private init(name: String, partition: String, isPrivate: Bool) {
        self.name = name
        nameHash = name.hashValue
        self.partition = partition
        self.isPrivate = isPrivate
    }

    /// - Parameter serial: A unique number for a source that must not be shared; nil for most sources.
    init(_ request: Request, serial: UInt64? = nil) {
        let headers = request.headers.filter { field in
            !Headers.tracingNames.contains { Headers.namesMatch($0, field.name) }
        }
        var text = request.method == .get ? request.urlString : "\(request.method.rawValue) \(request.urlString)"
        if !headers.isEmpty || request.target.user != nil || request.target.password != nil || !request.body.isNone {
            text += " #" + Self.digest(headers, of: request, countsBody: true)
        }
        if let path = request.unixSocketPath { text += " !socket \(DigestFunction.short(path.utf8))" }
        if let serial { text += " !own \(serial)" }
        self.init(name: text, partition: "", isPrivate: serial != nil)
    }

    /// Creates a key from a name that replaces the URL. The credentials of the request still count, so that users never
    /// share.
    init(named name: String, _ request: Request?) {
        var text = "key:\(name)"
        if let request {
            let secrets = request.headers.filter { Headers.isSecret($0.name) }
            if !secrets.isEmpty || request.target.user != nil || request.target.password != nil {
                text += " #" + Self.digest(secrets, of: request, countsBody: false)
            }
        }
        self.init(text: text)
    }

    /// The key for a load that accepts any certificate: it never equals that of a load that does not.
    var acceptingAnyCertificate: SourceKey {
        SourceKey(name: name + " !certificates", partition: partition, isPrivate: isPrivate)
    }

    private init(_ key: SourceKey, partition: String) {
        name = key.name
        nameHash = key.nameHash
        self.partition = partition
        isPrivate = key.isPrivate
    }

    /// Returns the same key in the partition of the user of the session.
    func `in`(_ partition: CachePartition) -> SourceKey { SourceKey(self, partition: partition.name) }

    // The name of a private key is unique, and a pipeline has few partitions.
    func hash(into hasher: inout Hasher) { hasher.combine(nameHash) }

    private static func digest(_ headers: [Headers.Field], of request: Request, countsBody: Bool) -> String {
        var function = DigestFunction(.sha256)
        // Sorted: the order of fields with different names has no meaning.
        for line in headers.map({ "\($0.name.lowercased()): \($0.value)\n" }).sorted() { function.update(line.utf8) }
        function.update("\(request.target.user ?? "")\n\(request.target.password ?? "")\n".utf8)
        if countsBody, let bytes = request.body.knownBytes { function.update(bytes) }
        return function.finalize().prefix(16).hexadecimal
    }
}

extension DigestFunction {
    /// Returns the first 128 bits of a SHA-256 digest in hexadecimal digits.
    fileprivate static func short(_ bytes: some Sequence<UInt8>) -> String {
        hash(Array(bytes), .sha256).prefix(16).hexadecimal
    }
}

/// Returns the numbers from 1, each once, to any thread.
final class SerialNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
