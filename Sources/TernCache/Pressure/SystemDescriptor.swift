#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if !canImport(Darwin)
/// Small files of the kernel, read and watched through plain descriptors.
enum SystemDescriptor {
    /// The whole text of a small file, 64 KiB at most; nil if it is not there or not readable.
    static let contents: SystemFiles = { path in
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return text(descriptor)
    }

    /// The text from the start of an open file.
    static func text(_ descriptor: Int32) -> String? {
        var bytes: [UInt8] = []
        while bytes.count < 64 << 10 {
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                count = unsafe max(0, pread(descriptor, buffer.baseAddress, buffer.count, off_t(bytes.count)))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Opens a file for a trigger and writes the trigger; nil if the kernel does not take it.
    static func trigger(_ path: String, _ text: String) -> Int32? {
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // The kernel wants the final zero too (Documentation/accounting/psi.rst).
        let bytes = Array(text.utf8) + [0]
        let written = unsafe bytes.withUnsafeBytes { buffer in
            unsafe write(descriptor, buffer.baseAddress, buffer.count)
        }
        guard written == bytes.count else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Opens a file that is to be read again at each notice; nil if it is not there.
    static func watched(_ path: String) -> Int32? {
        let descriptor = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        return descriptor >= 0 ? descriptor : nil
    }
}
#endif
