import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Keeps what is typed, `^C` above all, out of a picture that is being drawn, until it is given back.
final class Keyboard: Sendable {
    private static let descriptor: Int32 = 0
    private let usual: Mutex<termios?>

    /// Stops the echo, and lets Ctrl-C throw away no output. No effect where standard input is no terminal.
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

    /// As it was. From any thread, any number of times.
    func giveBack() {
        usual.withLock { mode in
            guard var usual = mode else { return }
            _ = unsafe tcsetattr(Self.descriptor, TCSANOW, &usual)
            mode = nil
        }
    }
}
