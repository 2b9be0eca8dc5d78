#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Standard error, for messages about the work. Standard output is only for the result.
struct Terminal: Sendable {
    private static let descriptor: Int32 = 2

    /// The messages that are shown; those that an option asks for are always.
    struct Messages: Equatable {
        /// Whether progress is shown, and the line at its end.
        var showsProgress = true
        /// Whether errors are shown.
        var showsErrors = true
    }

    /// Whether the output is a terminal that can redraw a line.
    let isInteractive: Bool
    /// The messages that are shown.
    var messages = Messages()
    private let window: @Sendable () -> WindowSize
    private let output: @Sendable (String) throws -> Void

    init() {
        self.init(
            isInteractive: isatty(Self.descriptor) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb",
            window: { WindowSize.of(Self.descriptor) },
            output: { try Output.write(Data($0.utf8), to: Self.descriptor) })
    }

    /// Creates a terminal for a test.
    init(
        isInteractive: Bool, window: @escaping @Sendable () -> WindowSize = { .usual },
        output: @escaping @Sendable (String) throws -> Void
    ) {
        self.isInteractive = isInteractive
        self.window = window
        self.output = output
    }

    /// Whether standard error takes a short line without blocking.
    static var takesLine: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLOUT) != 0
    }

    /// The current width; a window may be resized.
    var columns: Int { window().columns }

    /// The current height.
    var rows: Int { window().rows }

    /// Returns a server's text without the characters that could rewrite the screen or hide a part of the text.
    static func plain(_ text: String) -> String {
        // Most texts need no look at the properties of their characters.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
        return String(text.unicodeScalars.map { Character($0.isHarmless ? $0 : "\u{FFFD}") })
    }

    /// Writes text as it is.
    // `try?`: there is no other place to report a failure of this output.
    func write(_ text: String) { try? output(text) }

    /// Writes a line.
    func writeLine(_ line: String) { write(line + "\n") }

    /// Writes a line about the progress of the work, or its end.
    func tell(_ line: String) { if messages.showsProgress { writeLine(line) } }

    /// Writes a line about a failure.
    func fail(_ line: String) { if messages.showsErrors { writeLine(line) } }

    /// Writes a line that must not be lost.
    func report(_ line: String) throws { try output(line + "\n") }

    /// Replaces the current line, and leaves the cursor on it. Writes in one call, so that nothing flickers.
    func redraw(_ line: String) { write("\r\(line)\u{1B}[K") }
}

extension Unicode.Scalar {
    /// Whether a terminal shows the character, and nothing else. False for control characters, and for those that
    /// change the order or the look of others. True for the joiners of emoji and of some scripts.
    var isHarmless: Bool {
        if (0x20..<0x7F).contains(value) || self == "\u{200C}" || self == "\u{200D}" { return true }
        return switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: !properties.isBidiControl
        }
    }
}

/// The size of a terminal.
struct WindowSize: Equatable {
    /// The number of columns.
    var columns: Int
    /// The number of rows.
    var rows: Int
    /// The width in pixels; 0 if the terminal does not report it.
    var pixelWidth = 0
    /// The height in pixels; 0 if the terminal does not report it.
    var pixelHeight = 0

    /// The default size.
    static let usual = WindowSize(columns: 80, rows: 24)

    /// Returns the current size of the terminal of a descriptor, or the default size without a terminal. A window may
    /// be resized.
    static func of(_ descriptor: Int32) -> WindowSize {
        var size = winsize()
        let answer = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        guard answer == 0, size.ws_col > 0 else { return usual }
        return WindowSize(
            columns: Int(size.ws_col), rows: size.ws_row > 0 ? Int(size.ws_row) : usual.rows,
            pixelWidth: Int(size.ws_xpixel), pixelHeight: Int(size.ws_ypixel))
    }
}

/// Standard output: the result, byte for byte. Writing waits for the reader, so that `tern get URL | less` fetches no
/// more than is read.
enum Output {
    /// The error of a write.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        var description: String { "the output cannot be written: \(SystemWords.text(code))" }
        /// Whether the reader has closed the pipe, as `head` does. This is not a failure.
        var isClosedPipe: Bool { code == EPIPE }
    }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { isatty(1) == 1 }

    static func writeLine(_ line: String) throws { try write(Data((line + "\n").utf8)) }

    static func write(_ data: Data, to descriptor: Int32 = 1) throws {
        var rest = data[...]
        while !rest.isEmpty {
            let count = BlockingCalls.perform {
                #if canImport(Glibc)
                unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
                #else
                unsafe rest.withUnsafeBytes { unsafe Darwin.write(descriptor, $0.baseAddress, $0.count) }
                #endif
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Another process that has the same terminal or pipe made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                BlockingCalls.perform { _ = unsafe poll(&entry, 1, -1) }
            } else if errno != EINTR {
                throw Failure(code: errno)
            }
        }
    }
}
