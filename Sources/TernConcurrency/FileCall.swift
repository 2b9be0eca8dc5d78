#if canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#elseif canImport(Darwin)
package import Darwin
#endif

/// The system's calls for files that both file systems make, `PosixFileSystem` of Tern and `PosixDiskFiles` of
/// TernCache. Their methods have the same names, which hide the calls there.
package enum FileCall {
    /// Opens a file, closed on exec. Returns a negative number after a failure, whose code is in `errno`. Where no
    /// descriptor is free, idle connections of the process are closed, and the thread waits for that a tenth of a
    /// second at most.
    ///
    /// - Parameter permissions: Those of a created file, without the bits of the process's mask; by default, those that
    ///   let its owner alone read it.
    package static func open(_ path: String, _ flags: Int32, permissions: mode_t = 0o600) -> Int32 {
        var tries = 0
        while true {
            let descriptor = unsafe systemOpen(path, flags | O_CLOEXEC, permissions: permissions)
            if descriptor >= 0 { return descriptor }
            let code = errno
            if code == EINTR { continue }
            tries += 1
            guard SpareDescriptors.isLack(code), tries <= SpareDescriptors.tries, SpareDescriptors.closeOldest() else {
                errno = code
                return descriptor
            }
            usleep(UInt32(SpareDescriptors.pause / 1_000))
        }
    }

    /// Closes a descriptor. Returns 0 or the error number.
    package static func close(_ descriptor: Int32) -> Int32 {
        // After EINTR the descriptor is already closed on Linux and must not be closed again.
        systemClose(descriptor) == 0 || errno == EINTR ? 0 : errno
    }

    /// Writes all bytes at the current position. Returns 0 or the error number.
    package static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = unsafe bytes
        while unsafe !rest.isEmpty {
            let count = unsafe systemWrite(descriptor, rest.baseAddress, count: rest.count)
            if count > 0 {
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } else if count == 0 || errno != EINTR {
                return count == 0 ? ENOSPC : errno
            }
        }
        return 0
    }

    /// Renames a file, and replaces the destination in one step. Returns 0 or the error number.
    package static func rename(_ path: String, to destination: String) -> Int32 {
        unsafe systemRename(path, destination) == 0 ? 0 : errno
    }
}

private func systemOpen(_ path: UnsafePointer<CChar>, _ flags: Int32, permissions: mode_t) -> Int32 {
    unsafe open(path, flags, permissions)
}
private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, count: Int) -> Int {
    unsafe write(descriptor, bytes, count)
}
private func systemRename(_ path: UnsafePointer<CChar>, _ destination: UnsafePointer<CChar>) -> Int32 {
    unsafe rename(path, destination)
}
