import Foundation

/// A temporary folder that is removed with this object.
final class ScratchFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    // A leftover does no harm.
    deinit { try? FileManager.default.removeItem(at: url) }
}
