import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Exchanges with a real server, as a file that can be read, changed by hand and kept with the tests.
///
/// ```swift
/// // Once, against the real server:
/// let recorder = Recorder()
/// let live = try Client(baseURL: "https://api.example.com", session: Session(recorder: recorder))
/// _ = try await live.get("users/1", as: User.self)
/// try recorder.recording.write(to: file)
/// // From then on, without one:
/// let replay = StubTransport(replaying: try Recording(contentsOf: file))
/// let client = try Client(baseURL: "https://api.example.com", session: Session(stub: replay))
/// let user = try await client.get("users/1", as: User.self)
/// ```
///
/// The file is JSON with sorted names. Bodies that are UTF-8 text stand in it as text, JSON bodies included; others as
/// Base64. Secrets are taken out before anything is written (``Redaction``).
public struct Recording: Sendable, Hashable, Codable {
    /// The exchanges in the order in which their responses came: one for each request on the wire, so that a redirect or
    /// a challenge is an exchange of its own.
    public var exchanges: [Exchange]
    /// The version of the format.
    private var format = 1

    /// A recording of these exchanges.
    public init(_ exchanges: [Exchange] = []) { self.exchanges = exchanges }

    private enum CodingKeys: CodingKey {
        case exchanges, format
    }

    /// Reads a recording.
    ///
    /// - Throws: What reading the file throws, or a `DecodingError` that names what in it is not as it should be.
    public init(contentsOf file: URL) throws {
        self = try JSONDecoder().decode(Recording.self, from: Data(contentsOf: file))
        guard format == 1 else {
            let problem = "a recording of format \(format); this version reads format 1"
            throw DecodingError.dataCorrupted(.init(codingPath: [CodingKeys.format], debugDescription: problem))
        }
    }

    /// Writes the recording to a file that only its owner can read (mode 0600), in one step. A failure leaves an
    /// existing file unchanged.
    ///
    /// - Throws: What writing the file throws.
    public func write(to file: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        var data = try encoder.encode(self)
        data.append(UInt8(ascii: "\n"))
        try PrivateFile.write(data, to: file.path)
    }
}
