#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Starts threads for work that blocks, which the cooperative pool must not do.
package enum SystemThread {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs a closure on a new thread that ends with it. Returns 0, or the error number if no thread can be created;
    /// the closure is then not called.
    /// - Parameter stackSize: The size of the stack in bytes; nil for that of the system.
    package static func start(stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) -> Int32 {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let start = unsafe Unmanaged.passRetained(Start(body))
        #if canImport(Glibc)
        var thread = pthread_t()
        let code = unsafe pthread_create(&thread, &attributes, { unsafe Self.enter($0) }, start.toOpaque())
        #else
        var thread: pthread_t?
        let code = unsafe pthread_create(&thread, &attributes, { unsafe Self.enter($0) }, start.toOpaque())
        #endif
        if code != 0 { unsafe start.release() }
        return code
    }

    private static func enter(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let argument = unsafe argument { unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
    }
}
