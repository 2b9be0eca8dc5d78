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

/// Standard error: what is told about the work. Standard output is for its result alone.
struct Terminal {
    private static let descriptor: Int32 = 2
    private static let usualColumns = 80

    /// Whether a person watches, at something that can draw a line over.
    let isInteractive: Bool

    init() {
        isInteractive = isatty(Self.descriptor) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// The width at this moment: a window may be resized.
    var columns: Int {
        var size = winsize()
        let answer = unsafe ioctl(Self.descriptor, UInt(TIOCGWINSZ), &size)
        return answer == 0 && size.ws_col > 0 ? Int(size.ws_col) : Self.usualColumns
    }

    /// Writes a line.
    func say(_ line: String) { write(line + "\n") }

    /// Writes over the line where the cursor is, and leaves the cursor on it. In one write, so that nothing flickers.
    func redraw(_ line: String) { write("\r\(line)\u{1B}[K") }

    private func write(_ text: String) {
        // Nobody is left to be told that telling failed.
        try? Output.write(Data(text.utf8), to: Self.descriptor)
    }
}
