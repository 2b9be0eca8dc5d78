import ArgumentParser

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The option for a body that is written to standard output.
struct BodyOptions: ParsableArguments {
    @Flag(
        help: "Write the body to a terminal as it is. Without it, characters that control a terminal are escaped there."
    )
    var raw = false

    /// The output of the body.
    var output: BodyOutput { BodyOutput(isEscaped: Output.isTerminal && !raw) }

    /// Returns the output of the body for a place that is no file.
    func output(at place: PathText.Place) throws(FileText.Failure) -> BodyOutput {
        guard case .device(let path) = place else { return output }
        return BodyOutput(isEscaped: false, descriptor: try FileText.descriptor(writing: path))
    }
}

/// Writes a server's body to standard output: byte for byte, or for a terminal without the characters that control it.
struct BodyOutput {
    private var text: TerminalText?
    private let descriptor: Int32

    /// - Parameter descriptor: That of standard output, or of a device, which is open as long as the process.
    init(isEscaped: Bool, descriptor: Int32 = 1) {
        text = isEscaped ? TerminalText() : nil
        self.descriptor = descriptor
    }

    mutating func write(_ chunk: Data) throws {
        try Output.write(text?.add(chunk).data ?? chunk, to: descriptor)
    }

    /// Writes what waits for the rest of a character. Called after the last chunk.
    mutating func finish() throws {
        if let rest = text?.finish().data, !rest.isEmpty { try Output.write(rest, to: descriptor) }
    }
}

/// Makes bytes of a server harmless for a terminal, independent of the boundaries of their chunks. Pure.
///
/// Control characters become escapes such as `\x1b`, except tabs and the ends of lines. So do characters that have no
/// form and change the order or the look of others, such as `\u{202e}`. Bytes that are not UTF-8 become U+FFFD.
struct TerminalText {
    /// The start of a character, or a carriage return that a line feed can follow.
    private var rest: [UInt8] = []

    /// Returns the text of the next bytes, as far as it is known.
    mutating func add(_ chunk: Data) -> String {
        var bytes = rest + chunk
        let count = Self.openCount(bytes)
        rest = Array(bytes.suffix(count))
        bytes.removeLast(count)
        return Self.escaped(bytes)
    }

    /// Returns the text of the bytes that wait.
    mutating func finish() -> String {
        defer { rest = [] }
        return Self.escaped(rest)
    }

    /// Returns the number of bytes at the end that need more to be understood.
    private static func openCount(_ bytes: [UInt8]) -> Int {
        if bytes.last == 0x0D { return 1 }
        for count in 1...3 where bytes.count >= count {
            let byte = bytes[bytes.count - count]
            if byte & 0xC0 == 0x80 { continue }
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return length > count ? count : 0
        }
        return 0
    }

    private static func escaped(_ bytes: [UInt8]) -> String {
        var text = ""
        var hasReturn = false
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if hasReturn { text += scalar == "\n" ? "\r" : "\\x0d" }
            hasReturn = scalar == "\r"
            if hasReturn { continue }
            if scalar == "\n" || scalar == "\t" || scalar.isHarmless {
                text.unicodeScalars.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16)
                text += scalar.value > 0xFF ? "\\u{\(digits)}" : "\\x" + (digits.count < 2 ? "0" : "") + digits
            }
        }
        return hasReturn ? text + "\\x0d" : text
    }
}

extension String {
    fileprivate var data: Data { Data(utf8) }
}
