import Synchronization
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Writes the secrets of TLS connections, so that a program such as Wireshark can decrypt a capture of them. For
/// debugging: whoever has the secrets and a capture can read everything that was sent, passwords included.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.keyLog = try TLSKeyLog(file: URL(filePath: "/tmp/keys.log"))
/// ```
///
/// The format is that of NSS, which browsers and curl write as well: lines of a label, the random bytes of the client's
/// hello and the secret, of TLS 1.2 and 1.3, of HTTPS proxies and of HTTP/3. Tern never reads `SSLKEYLOGFILE` from the
/// environment; a program that wants to follow it passes its value. The first session with a key log writes a warning
/// to standard error, and the description of its configuration names it.
///
/// Supported on Linux only: URLSession does not tell its secrets, and a session with a key log fails each request with
/// `.unsupported`.
public final class TLSKeyLog: Sendable {
    private enum Target: Sendable {
        /// `append` returns 0 or the number of an error.
        case file(path: String, append: @Sendable (String) -> Int32)
        case closure(@Sendable (String) -> Void)
    }

    private struct State {
        /// Whether the file ends within a line, because the last one was not written to its end.
        var isWithinLine = false
        var hasFailed = false
    }

    private let target: Target
    private let state = Lock(State())
    private let hasWarned = Atomic(false)
    /// Writes a warning.
    private let tell: @Sendable (String) -> Void

    /// Opens a file for the lines of all sessions that use this key log, and creates it if it is missing, for its owner
    /// alone (0600). Lines are appended, each with one call of the system, so that several key logs and programs can
    /// write to one file.
    ///
    /// A write blocks the thread of the connection, so the file should not be on a slow disk. After a write that fails,
    /// for example because the disk is full, connections go on without a log, and a warning names the file.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem`, with the path, if the file cannot be opened, is not a regular
    ///   file of this user, or can be read by other users.
    public convenience init(file: URL) throws(NetworkError) {
        try self.init(path: file.path) { Self.writeWarning($0) }
    }

    /// Creates a key log that passes each line, without its line break, to a closure. The closure runs on the thread of
    /// the connection and must return soon.
    public init(_ write: @escaping @Sendable (_ line: String) -> Void) {
        target = .closure(write)
        tell = { Self.writeWarning($0) }
    }

    convenience init(path: String, tell: @escaping @Sendable (String) -> Void) throws(NetworkError) {
        let file: AppendedFile
        do throws(FileFailure) {
            file = try AppendedFile(path)
        } catch {
            throw NetworkError(.fileSystem, reason: "the key log cannot be opened: \(error)", underlying: error)
        }
        self.init(path: path, tell: tell) { file.append($0) }
    }

    init(path: String, tell: @escaping @Sendable (String) -> Void, append: @escaping @Sendable (String) -> Int32) {
        target = .file(path: path, append: append)
        self.tell = tell
    }

    /// Warns that secrets are written, once.
    func warn() {
        guard !hasWarned.exchange(true, ordering: .relaxed) else { return }
        tell("the secrets of TLS connections are written to \(place); with them, others can read the traffic")
    }

    /// Writes a line, which has no line break. Any thread may call it.
    func write(_ line: String) {
        switch target {
        case .closure(let write): write(line)
        case .file(let path, let append):
            let failure = state.withLock { state -> Int32? in
                let code = append((state.isWithinLine ? "\n" : "") + line + "\n")
                state.isWithinLine = code != 0
                defer { state.hasFailed = code != 0 }
                return code == 0 || state.hasFailed ? nil : code
            }
            if let failure { tell("the key log \(path) is not complete: \(ErrorText.text(failure))") }
        }
    }

    private var place: String {
        switch target {
        case .file(let path, _): "the file \(path.printable(limit: 1_024))"
        case .closure: "a closure"
        }
    }

    private static func writeWarning(_ text: String) {
        // A process without standard error has nobody to warn.
        _ = AppendedFile.append("Tern: warning: \(text)\n", to: STDERR_FILENO)
    }
}

/// A file for secrets, to which texts are appended.
private final class AppendedFile: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws(FileFailure) {
        // A pipe with a name, which has no reader, does not hold the thread up.
        descriptor = FileCall.open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure("open", path, code: errno) }
        if let failure = Self.refusal(of: descriptor, path) { throw failure }
    }

    deinit {
        // Each text was written by a call of its own.
        if descriptor >= 0 { _ = FileCall.close(descriptor) }
    }

    /// Returns the reason why secrets must not be written to an open file; nil if they can be.
    private static func refusal(of descriptor: Int32, _ path: String) -> FileFailure? {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else { return FileFailure("stat", path, code: errno) }
        guard information.st_mode & S_IFMT == S_IFREG else {
            return FileFailure("open", path, code: EINVAL, reason: "it is not a regular file")
        }
        guard information.st_uid == geteuid() else {
            return FileFailure("open", path, code: EPERM, reason: "it belongs to another user")
        }
        guard information.st_mode & 0o077 == 0 else {
            let reason = "other users can read or change it, and it would have secrets; chmod 600 prevents that"
            return FileFailure("open", path, code: EPERM, reason: reason)
        }
        return nil
    }

    /// Writes a text at the end of the file, with one call of the system as a rule. Returns 0 or the number of an
    /// error.
    func append(_ text: String) -> Int32 { Self.append(text, to: descriptor) }

    static func append(_ text: String, to descriptor: Int32) -> Int32 {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBytes { unsafe FileCall.write($0, to: descriptor) }
    }
}

extension TLSKeyLog: CustomStringConvertible, CustomReflectable {
    /// The place of the lines.
    public var description: String { "key log to \(place)" }

    /// An empty mirror. Without it, `dump` would show the descriptor and the closure.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
