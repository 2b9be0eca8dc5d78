import Dispatch
import Synchronization
import Tern

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Keeps typed characters, such as `^C`, out of an image that is being drawn, until `restore()`.
final class Keyboard: Sendable {
    private static let descriptor: Int32 = 0
    private let usual: Mutex<termios?>

    /// Stops the echo, and prevents Ctrl-C from discarding output. No effect if standard input is not a terminal.
    init() {
        var mode = termios()
        guard unsafe tcgetattr(Self.descriptor, &mode) == 0 else {
            usual = Mutex(nil)
            return
        }
        usual = Mutex(mode)
        mode.c_lflag = mode.c_lflag & ~tcflag_t(ECHO) | tcflag_t(NOFLSH)
        _ = unsafe tcsetattr(Self.descriptor, TCSANOW, &mode)
    }

    /// Restores the terminal's settings. May be called on any thread and more than once.
    func restore() {
        usual.withLock { mode in
            guard var usual = mode else { return }
            _ = unsafe tcsetattr(Self.descriptor, TCSANOW, &usual)
            mode = nil
        }
    }
}

/// The descriptors 0, 1 and 2.
enum StandardDescriptors {
    /// Opens `/dev/null` for each one that is closed, so that no socket or file gets its number. Reading then gives no
    /// bytes, and writing fails.
    static func occupy() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free is this one.
            _ = unsafe open("/dev/null", O_RDONLY)
        }
    }
}

/// The arguments, which other users of the machine can list.
enum ArgumentList {
    /// Overwrites the value of an option wherever it ends an argument, as curl does for `-u`. The value was parsed before.
    /// URLs and headers stay.
    static func hide(_ value: String?) {
        guard let value, !value.isEmpty else { return }
        for index in 0..<Int(CommandLine.argc) {
            guard let argument = unsafe CommandLine.unsafeArgv[index] else { continue }
            let text = unsafe String(cString: argument)
            guard text.utf8.count >= value.utf8.count, text.utf8.suffix(value.utf8.count).elementsEqual(value.utf8)
            else { continue }
            for offset in text.utf8.count - value.utf8.count..<text.utf8.count {
                unsafe argument[offset] = CChar(UInt8(ascii: "x"))
            }
        }
    }
}

/// Handles Ctrl-C, the polite request to end, and the end of the terminal. The first signal cancels the work, so that
/// it can clean up; the second has its usual effect and ends the process at once.
final class Interrupt: Sendable {
    private struct State {
        var signal: Int32?
        var actions: [@Sendable () -> Void] = []
        var sources: [any DispatchSourceSignal] = []
    }

    /// The exit code after Ctrl-C.
    static let interruptExitCode: Int32 = 128 + SIGINT

    /// The value of SIG_IGN as a number, because function pointers cannot be compared.
    private static let ignored = unsafe unsafeBitCast(SIG_IGN, to: Int.self)

    private let state = Mutex(State())
    /// A queue of its own, so that a signal is handled while the tool's thread waits for a slow reader.
    private let queue = DispatchQueue(label: "tern.interrupt")
    /// The time that the work has to clean up before the process exits, if a system call still blocks.
    private static let grace = DispatchTimeInterval.seconds(1)

    /// Handles the signals for the rest of the process; none in a test.
    init(_ signals: [Int32] = [SIGINT, SIGTERM, SIGHUP]) {
        // Until a source is registered, its signal is lost.
        let registrations = DispatchGroup()
        defer { registrations.wait() }
        state.withLock { state in
            for number in signals {
                // Under `nohup`, the end of the terminal is ignored.
                let earlier = unsafe unsafeBitCast(signal(number, SIG_IGN), to: Int.self)
                if number == SIGHUP, earlier == Self.ignored { continue }
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { [weak self] in
                    signal(number, SIG_DFL)
                    self?.receive(number)
                }
                registrations.enter()
                source.setRegistrationHandler { registrations.leave() }
                source.activate()
                state.sources.append(source)
            }
        }
    }

    /// The exit code, 128 plus the number of the signal, as shells expect it: 130 after Ctrl-C. Nil without a signal.
    var exitCode: Int32? { state.withLock { $0.signal }.map { 128 + $0 } }

    /// Cancels a task at the signal, or now if the signal has already come.
    func cancels(_ task: some TaskHandle) {
        let task = task.erased
        performs { task.cancel() }
    }

    /// Performs an action at the signal, or now if the signal has already come.
    func performs(_ action: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            if state.signal == nil { state.actions.append(action) }
            return state.signal != nil
        }
        if isLate { action() }
    }

    private func receive(_ number: Int32) {
        let actions = state.withLock { state in
            state.signal = state.signal ?? number
            defer { state.actions = [] }
            return state.actions
        }
        for action in actions { action() }
        // Nothing can cancel a read of a pipe without bytes, or a write to a reader that does not read.
        queue.asyncAfter(deadline: .now() + Self.grace) {
            if BlockingCalls.isBlocked { _exit(128 + number) }
        }
    }
}

/// Counts the system calls that block on another program, such as the reader of standard output.
enum BlockingCalls {
    private static let count = Atomic(0)

    /// Whether a system call is blocked.
    static var isBlocked: Bool { count.load(ordering: .relaxed) > 0 }

    /// Performs a system call that can block.
    static func perform<Value>(_ call: () -> Value) -> Value {
        count.wrappingAdd(1, ordering: .relaxed)
        defer { count.wrappingSubtract(1, ordering: .relaxed) }
        return call()
    }
}
