#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension UnsafeBufferPointer<UInt8> {
    /// Returns the first index of a byte in a range; nil without one. The range must be within the bounds.
    func firstIndex(of byte: UInt8, from start: Int, to end: Int) -> Int? {
        guard start < end, let base = baseAddress else { return nil }
        guard let found = unsafe memchr(base + start, Int32(byte), end - start) else { return nil }
        return unsafe UnsafeRawPointer(base).distance(to: UnsafeRawPointer(found))
    }
}
