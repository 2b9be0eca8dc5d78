#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The words of the system for its error numbers.
enum SystemWords {
    /// Returns a text such as `No space left on device`.
    static func text(_ code: Int32) -> String {
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}

/// Files that an argument names; `-` is standard input.
enum FileText {
    struct Failure: Error, CustomStringConvertible {
        let path: String
        let code: Int32
        var description: String { "\(path): \(SystemWords.text(code))" }
    }

    /// The kinds of what can be at a path.
    enum Kind {
        case file, folder, device
    }

    /// Returns the kind of what is at a path, at the end of links; nil if nothing is there.
    static func kind(of path: String) -> Kind? {
        var there = stat()
        guard unsafe stat(path, &there) == 0 else { return nil }
        return switch there.st_mode & S_IFMT {
        case S_IFREG: .file
        case S_IFDIR: .folder
        default: .device
        }
    }

    /// Opens a device or a pipe for writing. Opening a named pipe blocks until another program reads it.
    static func descriptor(writing path: String) throws(Failure) -> Int32 {
        let descriptor = BlockingCalls.perform { unsafe open(path, O_WRONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
        return descriptor
    }

    /// Throws the system's words where a file cannot be read.
    static func checkReadable(_ path: String) throws(Failure) {
        guard unsafe access(path, R_OK) == 0 else { throw Failure(path: path, code: errno) }
        if kind(of: path) == .folder { throw Failure(path: path, code: EISDIR) }
    }

    /// Throws the system's words where the folder of a file is missing.
    static func checkFolder(of path: String) throws(Failure) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./"
        guard kind(of: folder) == .folder else { throw Failure(path: path, code: ENOENT) }
    }

    /// Returns the content of a file.
    static func bytes(of path: String) throws(Failure) -> Data {
        let isInput = path == "-"
        var descriptor: Int32 = 0
        // Opening a named pipe blocks until another program opens it for writing.
        if !isInput { descriptor = BlockingCalls.perform { unsafe open(path, O_RDONLY | O_CLOEXEC) } }
        guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
        defer { if !isInput { close(descriptor) } }
        var content = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = BlockingCalls.perform {
                unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            }
            if count == 0 { return content }
            if count > 0 {
                content.append(contentsOf: buffer[..<count])
            } else if errno == EAGAIN {
                // Another process that has the same pipe made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                BlockingCalls.perform { _ = unsafe poll(&entry, 1, -1) }
            } else if errno != EINTR {
                throw Failure(path: isInput ? "standard input" : path, code: errno)
            }
        }
    }

    /// Returns the lines of a file that name something: without empty ones and comments, which begin with `#`.
    static func lines(_ path: String) throws(Failure) -> [String] {
        let text = String(decoding: try bytes(of: path), as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).compactMap { line in
            var line = line.drop(while: \.isWhitespace)
            while line.last?.isWhitespace ?? false { line.removeLast() }
            return line.isEmpty || line.hasPrefix("#") ? nil : String(line)
        }
    }
}
