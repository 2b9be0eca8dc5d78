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

/// Standard output: the result, byte for byte. Writing waits for the reader, so that `tern get URL | less` fetches no
/// more than is read.
enum Output {
    /// What the system said against a write.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        var description: String { "the output cannot be written (error \(code))" }
        /// Whether the reader has gone, as `head` does: no failure of ours.
        var isClosedPipe: Bool { code == EPIPE }
    }

    /// Whether a person reads it, at a terminal.
    static var isTerminal: Bool { isatty(1) == 1 }

    static func say(_ line: String) throws { try write(Data((line + "\n").utf8)) }

    static func write(_ data: Data, to descriptor: Int32 = 1) throws {
        var rest = data[...]
        while !rest.isEmpty {
            #if canImport(Glibc)
            let count = unsafe rest.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count)
            }
            #else
            let count = unsafe rest.withUnsafeBytes { bytes in
                unsafe Darwin.write(descriptor, bytes.baseAddress, bytes.count)
            }
            #endif
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw Failure(code: errno)
            }
        }
    }
}
