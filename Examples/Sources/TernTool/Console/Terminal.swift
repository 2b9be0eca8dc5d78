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
struct Terminal: Sendable {
    private static let descriptor: Int32 = 2

    /// Whether a person watches, at something that can draw a line over.
    let isInteractive: Bool
    private let window: @Sendable () -> WindowSize
    private let output: @Sendable (String) -> Void

    init() {
        self.init(
            isInteractive: isatty(Self.descriptor) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb",
            window: { WindowSize.of(Self.descriptor) },
            // Nobody is left to be told that telling failed.
            output: { try? Output.write(Data($0.utf8), to: Self.descriptor) })
    }

    /// A terminal by hand, for tests.
    init(
        isInteractive: Bool, window: @escaping @Sendable () -> WindowSize = { .usual },
        output: @escaping @Sendable (String) -> Void
    ) {
        self.isInteractive = isInteractive
        self.window = window
        self.output = output
    }

    /// The width at this moment: a window may be resized.
    var columns: Int { window().columns }

    /// A server's text as a terminal may show it: without control characters, which could rewrite the screen.
    static func plain(_ text: String) -> String {
        String(
            text.unicodeScalars.map { scalar -> Character in
                let isHarmless = scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value)
                return isHarmless && !scalar.properties.isBidiControl ? Character(scalar) : "\u{FFFD}"
            })
    }

    /// Writes a line.
    func say(_ line: String) { output(line + "\n") }

    /// Writes over the line where the cursor is, and leaves the cursor on it. In one write, so that nothing flickers.
    func redraw(_ line: String) { output("\r\(line)\u{1B}[K") }
}
