import CGtk
import Glibc

/// GTK's main loop, which also serves the main actor.
@MainActor
public enum MainLoop {
    /// Runs a GTK program until its last window is closed.
    ///
    /// Do not call it from an `async main`: this call serves Swift's main actor, on the main thread.
    ///
    /// - Parameter activate: Creates the windows.
    /// - Returns: The exit code of the program; nil without a display.
    public static func run(_ identifier: String, activate: @escaping @MainActor () -> Void) -> Int32? {
        guard gtk_init_check() != 0 else { return nil }
        handOverMainQueue()
        let application = unsafe gtk_application_new(identifier, G_APPLICATION_NON_UNIQUE)
        guard let object = unsafe application.map(UnsafeMutableRawPointer.init) else { return nil }
        unsafe connect(object, signal: "activate") { _ in
            unsafe current = application
            activate()
            return false
        }
        let status = unsafe g_application_run(object.assumingMemoryBound(to: GApplication.self), 0, nil)
        unsafe current = nil
        unsafe g_object_unref(object)
        // Handles the remaining work after the last window closed.
        while g_main_context_iteration(nil, 0) != 0 {}
        return status
    }

    /// The running application, which owns the windows.
    static var current: UnsafeMutablePointer<GtkApplication>?

    /// Ends `run` regardless of open windows.
    public static func quit() {
        guard let application = unsafe current else { return }
        unsafe g_application_quit(UnsafeMutableRawPointer(application).assumingMemoryBound(to: GApplication.self))
    }

    // MARK: Timers

    /// Calls the body once in each interval, until it returns false. A call may be late if the loop is busy, and is
    /// never early.
    public static func every(_ milliseconds: Int, _ body: @escaping @MainActor () -> Bool) {
        let box = unsafe Unmanaged.passRetained(Ticker(body)).toOpaque()
        _ = unsafe g_timeout_add_full(
            G_PRIORITY_DEFAULT, guint(milliseconds),
            { data in
                guard let data = unsafe data else { return 0 }
                let ticker = unsafe Unmanaged<Ticker>.fromOpaque(data).takeUnretainedValue()
                return MainActor.assumeIsolated { ticker.body() } ? 1 : 0
            }, box,
            { data in
                if let data = unsafe data { unsafe Unmanaged<Ticker>.fromOpaque(data).release() }
            })
    }

    /// Returns after a time, with a timer of the loop.
    public static func pause(_ milliseconds: Int) async {
        await withCheckedContinuation { continuation in
            every(milliseconds) {
                continuation.resume()
                return false
            }
        }
    }

    /// Returns true as soon as a condition holds, and false after a timeout. The condition is evaluated every few
    /// milliseconds.
    @discardableResult
    public static func wait(seconds: Int = 20, until condition: @MainActor () -> Bool) async -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while !condition() {
            guard ContinuousClock.now < end else { return false }
            await pause(4)
        }
        return true
    }

    private final class Ticker: Sendable {
        let body: @MainActor () -> Bool

        init(_ body: @escaping @MainActor () -> Bool) { self.body = body }
    }

    /// Starts another program without waiting for it. Returns a Boolean value that indicates whether it started.
    public static func start(_ commandLine: String) -> Bool {
        unsafe g_spawn_command_line_async(commandLine, nil) != 0
    }

    // MARK: The main queue

    private static var isHandedOver = false

    /// Makes GLib's loop serve the main queue, and so the main actor, without a timer and without wake-ups while it is
    /// idle. The priority equals that of GTK's redrawing, so that neither starves the other.
    private static func handOverMainQueue() {
        guard !isHandedOver else { return }
        isHandedOver = true
        _ = unsafe g_unix_fd_add_full(
            120, _dispatch_get_main_queue_handle_4CF(), G_IO_IN,
            { descriptor, _, _ in
                // Reads the counter to reset it. Its value does not matter, because the call below performs all work.
                var count: UInt64 = 0
                _ = unsafe read(descriptor, &count, MemoryLayout<UInt64>.size)
                _dispatch_main_queue_callback_4CF(nil)
                return 1
            }, nil, nil)
    }
}
