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
    /// Printable, one line.
    let text: String
    /// Whether it is of this process alone, and nothing for the disk.
    let isPrivate: Bool

    init(text: String) { self.init(text: text, isPrivate: false) }

    private init(text: String, isPrivate: Bool) {
        self.text = text
        self.isPrivate = isPrivate
    }

    /// - Parameter serial: Sets what must not be shared apart from all else; nil for most.
    init(_ request: Request, serial: UInt64? = nil) {
        let headers = request.headers.filter { field in
            !CoalescingKey.ignoredHeaders.contains { Headers.namesMatch($0, field.name) }
        }
        var text = request.method == .get ? request.urlString : "\(request.method.rawValue) \(request.urlString)"
        if !headers.isEmpty || request.target.user != nil || !request.body.isNone {
            text += " #" + Self.digest(headers, request)
        }
        if let serial { text += " !own \(serial)" }
        self.init(text: text, isPrivate: serial != nil)
    }

    /// What was loaded with any certificate taken is never the same as what was not.
    var trustingAnyone: SourceKey { SourceKey(text: text + " !certificates", isPrivate: isPrivate) }

    /// What a session with cookies was given may be for its user alone.
    var sendingCookies: SourceKey { SourceKey(text: text + " !cookies", isPrivate: isPrivate) }

    // What is private says so in its text.
    func hash(into hasher: inout Hasher) { hasher.combine(text) }

    private static func digest(_ headers: [Headers.Field], _ request: Request) -> String {
        var function = DigestFunction(.sha256)
        // One line for each, sorted: the order of different names says nothing.
        for line in headers.map({ "\($0.name.lowercased()): \($0.value)\n" }).sorted() { function.update(line.utf8) }
        function.update("\(request.target.user ?? "")\n\(request.target.password ?? "")\n".utf8)
        if let bytes = request.body.knownBytes { function.update(bytes) }
        let digits = Array("0123456789abcdef")
        return String(function.finalize().prefix(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
