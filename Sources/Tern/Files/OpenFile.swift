/// A file that is read: its descriptor is closed when nobody holds it any more.
final class OpenFile: Sendable {
    let descriptor: Int32
    private let system: any FileSystem

    init(_ descriptor: Int32, _ system: any FileSystem) {
        self.descriptor = descriptor
        self.system = system
    }

    deinit {
        // Only reading ends here: nothing that was read can be lost by a failed close.
        try? system.close(descriptor)
    }

    /// What lies in memory, on whatever thread; nil where a disk would have to be waited for.
    func readInMemory(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        unsafe system.readInMemory(descriptor, at: offset, into: buffer)
    }
}
