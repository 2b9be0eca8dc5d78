import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What makes two sources the same picture: method, URL, the headers that matter and the body; a path; an identifier.
///
/// Credentials always matter: what one user is given is never another's. They stand in it as a digest, so that a key can
/// be written to the disk.
struct SourceKey: Sendable, Hashable {
    private let name: String
    /// The name of the partition; empty for the common partition.
    private let partition: String
    /// Whether it is of this process alone, and nothing for the disk.
    let isPrivate: Bool

    /// The key as one printable line. No name begins like a partition.
    var text: String { partition.isEmpty ? name : "partition:\(partition) \(name)" }

    init(text: String) { self.init(name: text, partition: "", isPrivate: false) }

    private init(name: String, partition: String, isPrivate: Bool) {
        self.name = name
        self.partition = partition
        self.isPrivate = isPrivate
    }

    /// - Parameter serial: Sets what must not be shared apart from all else; nil for most.
    init(_ request: Request, serial: UInt64? = nil) {
        let headers = request.headers.filter { field in
            !CoalescingKey.ignoredHeaders.contains { Headers.namesMatch($0, field.name) }
        }
        var text = request.method == .get ? request.urlString : "\(request.method.rawValue) \(request.urlString)"
        if !headers.isEmpty || request.target.user != nil || request.target.password != nil || !request.body.isNone {
            text += " #" + Self.digest(headers, request)
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
                text += " #" + Self.digest(secrets, request, countsBody: false)
            }
        }
        self.init(text: text)
    }

    /// What was loaded with any certificate taken is never the same as what was not.
    var trustingAnyone: SourceKey {
        SourceKey(name: name + " !certificates", partition: partition, isPrivate: isPrivate)
    }

    /// Returns the same key in the partition of the user of the session.
    func `in`(_ partition: CachePartition) -> SourceKey {
        SourceKey(name: name, partition: partition.name, isPrivate: isPrivate)
    }

    // The text of a private key says that it is private, and a pipeline has few partitions.
    func hash(into hasher: inout Hasher) { hasher.combine(name) }

    private static func digest(_ headers: [Headers.Field], _ request: Request, countsBody: Bool = true) -> String {
        var function = DigestFunction(.sha256)
        // One line for each, sorted: the order of different names says nothing.
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
