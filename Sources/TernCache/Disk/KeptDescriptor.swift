import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A descriptor on its way from a reading thread to the caller; closed if nobody takes it.
final class KeptDescriptor: Sendable {
    private let descriptor = Lock<Int32?>(nil)

    func keep(_ descriptor: Int32) { self.descriptor.withLock { $0 = descriptor } }

    func take() -> Int32? { descriptor.withLock { $0.take() } }

    deinit {
        if let left = take(), left >= 0 { close(left) }
    }
}
