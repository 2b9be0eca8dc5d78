#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Starts detached threads: handlers block, and the cooperative pool must not.
enum ServerThread {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Address space, not memory: pages are touched as the stack grows. Handlers encode JSON and hash here.
    private static let stackSize = 1 << 20

    static func run(_ body: @escaping @Sendable () -> Void) throws(LoopbackServer.Failure) {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setstacksize(&attributes, stackSize)
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let start = unsafe Unmanaged.passRetained(Start(body))
        #if canImport(Glibc)
        var thread = pthread_t()
        let code = unsafe pthread_create(&thread, &attributes, { unsafe Self.enter($0) }, unsafe start.toOpaque())
        #else
        var thread: pthread_t?
        let code = unsafe pthread_create(&thread, &attributes, { unsafe Self.enter($0) }, start.toOpaque())
        #endif
        if code != 0 {
            unsafe start.release()
            throw LoopbackServer.Failure("no thread could be started", code: code)
        }
    }

    /// Names the calling thread, so that `stop()` knows when it runs on one of the server's own.
    static var current: UInt {
        #if canImport(Glibc)
        UInt(pthread_self())
        #else
        unsafe UInt(bitPattern: pthread_self())
        #endif
    }

    private static func enter(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let argument = unsafe argument { unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
    }
}
