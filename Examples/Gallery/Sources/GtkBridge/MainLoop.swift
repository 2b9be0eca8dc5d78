import CGtk
import Glibc

/// GTK's main loop, and the main actor in it.
@MainActor
public enum MainLoop {
    /// Runs a GTK program until its last window is closed.
    ///
    /// Not from an `async main`: Swift's main actor is served from within this call, on the main thread.
    ///
    /// - Parameter activate: Makes the windows.
    /// - Returns: The program's exit code; nil where there is no display.
    public static func run(_ identifier: String, activate: @escaping @MainActor () -> Void) -> Int32? {
        guard gtk_init_check() != 0 else { return nil }
        handOverMainQueue()
        let application = unsafe gtk_application_new(identifier, G_APPLICATION_NON_UNIQUE)
        guard let object = unsafe application.map(UnsafeMutableRawPointer.init) else { return nil }
        unsafe connect(object, "activate") { _ in
            unsafe current = application
            activate()
            return false
        }
        let status = unsafe g_application_run(object.assumingMemoryBound(to: GApplication.self), 0, nil)
        unsafe current = nil
        unsafe g_object_unref(object)
        // What was to be done when the last window closed.
        while g_main_context_iteration(nil, 0) != 0 {}
        return status
    }

    /// The running application, which windows belong to.
    static var current: UnsafeMutablePointer<GtkApplication>?

    /// Ends `run`, whatever windows are open.
    public static func quit() {
        guard let application = unsafe current else { return }
        unsafe g_application_quit(UnsafeMutableRawPointer(application).assumingMemoryBound(to: GApplication.self))
    }

    // MARK: Timers

    /// Calls the body once for each interval, until it returns false. Late if the loop is busy, and never early.
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

    /// Returns after a time, by a timer of the loop.
    public static func pause(_ milliseconds: Int) async {
        await withCheckedContinuation { continuation in
            every(milliseconds) {
                continuation.resume()
                return false
            }
        }
    }

    /// Returns true as soon as something holds, and false after a time without it. It is looked at every few milliseconds.
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

    /// Starts another program, and does not wait for it. Whether it could be started.
    public static func start(_ commandLine: String) -> Bool {
        unsafe g_spawn_command_line_async(commandLine, nil) != 0
    }

    // MARK: The main queue

    private static var isHandedOver = false

    /// Has GLib's loop serve the main queue, and so the main actor: without a timer, and without a wake-up while it has no
    /// work. The priority is that of GTK's redrawing: neither starves the other.
    private static func handOverMainQueue() {
        guard !isHandedOver else { return }
        isHandedOver = true
        _ = unsafe g_unix_fd_add_full(
            120, _dispatch_get_main_queue_handle_4CF(), G_IO_IN,
            { descriptor, _, _ in
                // Read to make it silent; how many there were does not matter, the call below does all work.
                var count: UInt64 = 0
                _ = unsafe read(descriptor, &count, MemoryLayout<UInt64>.size)
                _dispatch_main_queue_callback_4CF(nil)
                return 1
            }, nil, nil)
    }
}
