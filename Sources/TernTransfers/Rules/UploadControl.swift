import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The description of an upload that a later process continues. It is a file that anybody who can write to the folder
/// may have changed, so reading it checks each value.
struct UploadControl: Sendable, Equatable, ControlDescription {
    /// The way in which the file is uploaded.
    enum Kind: String, Sendable, Codable {
        case tus
        case httpDraft
        /// In one request, of which nothing is continued.
        case whole

        init(_ kind: UploadMessages.Kind) {
            switch kind {
            case .tus: self = .tus
            case .httpDraft: self = .httpDraft
            }
        }
    }

    private(set) var version = currentVersion
    var kind: Kind
    /// The digest of the URL at which uploads are created.
    var endpointDigest: String
    /// The URL of the upload on the server; empty for one that is not continued. Knowing it is often enough to write to
    /// it, so the file can be read by its owner alone.
    var url: String
    /// The size and the time of the last change of the file that is uploaded.
    var size: Int64
    var seconds: Int
    var nanoseconds: Int

    init(kind: Kind, endpointDigest: String, url: String, file: DiskCall.Identity) {
        (self.kind, self.endpointDigest, self.url) = (kind, endpointDigest, url)
        (size, seconds, nanoseconds) = (file.length, file.seconds, file.nanoseconds)
    }

    /// Reads a control file and checks it.
    static func read(_ data: Data) -> UploadFile.Found {
        do throws(ControlFile.Problem) {
            let control = try decoded(data)
            // `try?`: the reason of an invalid URL does not matter here.
            guard control.url.utf8.count <= 1 << 16, (0...ControlFile.mostBytes).contains(control.size),
                control.kind == .whole ? control.url.isEmpty : (try? Target(absolute: control.url)) != nil
            else { return .invalid }
            return .control(control)
        } catch {
            return if case .laterVersion(let version) = error { .laterVersion(version) } else { .invalid }
        }
    }

    /// Returns the digest that identifies an endpoint, by its whole URL: a secret in it can name a user, and nobody
    /// else may continue the upload.
    static func digest(of endpoint: Target) -> String {
        let text = "\(endpoint.string)\n\(endpoint.user ?? "")"
        return Hexadecimal.lowercase(DigestFunction.hash(Array(text.utf8), .sha256))
    }

    /// Returns the URL of the upload on the server if an upload to an endpoint may continue it; nil otherwise. The
    /// rules for `Location` hold: it must not give up TLS.
    func target(for endpoint: Target, endpointDigest: String, _ kind: UploadMessages.Kind) -> Target? {
        // `try?`: the URL was checked when the file was read.
        guard self.kind == Kind(kind), self.endpointDigest == endpointDigest, let target = try? Target(absolute: url),
            target.isSecure || !endpoint.isSecure
        else { return nil }
        return target
    }

    /// Returns whether it describes an upload of this file in its present form.
    func describes(_ file: DiskCall.Identity) -> Bool {
        size == file.length && seconds == file.seconds && nanoseconds == file.nanoseconds
    }

    /// Returns the name of the control file for a file and an endpoint. It depends on both alone, so that every process
    /// finds it.
    static func name(of file: String, endpointDigest: String) -> String {
        ControlNames(destination: "\(file)-upload-\(endpointDigest.prefix(8))").control
    }
}
