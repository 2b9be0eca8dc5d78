#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A system call that failed, with its error number.
package struct SystemError: Error, Sendable, Equatable {
    /// The error number (`errno`).
    package let code: Int32

    package init(_ code: Int32) { self.code = code }

    /// Whether the process or the system has no free file descriptor.
    package var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }

    /// The text of the system, with the names that administrators know.
    package var text: String {
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        let systemText = unsafe String(cString: text)
        return switch code {
        case EMFILE: "\(systemText) (EMFILE: the process has reached its limit of descriptors)"
        case ENFILE: "\(systemText) (ENFILE: the system has reached its limit of descriptors)"
        default: systemText
        }
    }

    /// Returns the error of a connection that could not be made.
    ///
    /// - Parameter destination: The name of the peer in the text, such as `example.com:443`, `the proxy 10.0.0.1:3128`
    ///   or `the Unix socket /run/x`.
    package func connectFailure(to destination: String) -> EngineError {
        if code == ECONNREFUSED {
            return EngineError(.connectionRefused, "\(destination) refused the connection", code: code)
        }
        let kind: EngineError.Kind = isOutOfDescriptors ? .outOfDescriptors : .connectionFailed
        return EngineError(kind, "no connection to \(destination): \(text)", code: code)
    }
}

extension SystemError {
    /// The number of the most recent error of this thread.
    static var last: SystemError { SystemError(errno) }
}
