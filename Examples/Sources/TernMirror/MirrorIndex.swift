// The escapes of URLs.
import Foundation

/// A page of nginx's autoindex. Pure.
///
///     <a href="a%20b.bin">a b.bin</a>            25-Nov-2026 18:00         12345
struct MirrorIndex {
    struct Entry: Equatable {
        let name: String
        let url: URL
        let isFolder: Bool
        /// The size in bytes; nil for a folder, and for a server that rounds sizes.
        let size: Int64?
        /// The minute of the last change; nil if the page does not state it.
        let changed: Date?
    }

    let entries: [Entry]

    /// Reads a page. Links that lead out of its folder are left out, and so are names that cannot be those of a file.
    init(_ page: String, at base: URL) {
        entries = page.split(whereSeparator: \.isNewline).compactMap { Self.entry(String($0), at: base) }
    }

    private static func entry(_ line: String, at base: URL) -> Entry? {
        guard let start = line.firstRange(of: "<a href=\""), let end = line[start.upperBound...].firstIndex(of: "\"")
        else { return nil }
        let link = line[start.upperBound..<end].replacing("&amp;", with: "&")
        let isFolder = link.hasSuffix("/")
        let name = (isFolder ? String(link.dropLast()) : String(link)).removingPercentEncoding ?? ""
        let isSafe =
            !name.isEmpty && name.unicodeScalars.first != "."
            && !name.unicodeScalars.contains { $0 == "/" || $0 == "?" || isHidden($0) }
        // "./" keeps a name with a colon from being read as a scheme.
        guard isSafe, !link.contains("?"), let url = URL(string: "./" + link, relativeTo: base)?.absoluteURL else {
            return nil
        }
        let words = line.firstRange(of: "</a>").map { line[$0.upperBound...].split(separator: " ") } ?? []
        let changed = words.count >= 2 ? date(words[0], words[1]) : nil
        return Entry(
            name: name, url: url, isFolder: isFolder,
            size: isFolder ? nil : words.last.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }, changed: changed)
    }

    /// Returns whether a character controls a terminal, or changes the order or the look of others. The joiners of
    /// emoji do not.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: scalar != "\u{200C}" && scalar != "\u{200D}"
        default: scalar.properties.isBidiControl
        }
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Reads a time such as `25-Nov-2026 18:00`, in UTC.
    private static func date(_ day: Substring, _ time: Substring) -> Date? {
        let parts = day.split(separator: "-")
        let numbers = time.split(separator: ":").compactMap { Int($0) }
        guard parts.count == 3, numbers.count == 2, let month = months.firstIndex(of: String(parts[1])),
            let dayNumber = Int(parts[0]), let year = Int(parts[2]), (1...31).contains(dayNumber),
            (1_970...9_999).contains(year), (0...23).contains(numbers[0]), (0...59).contains(numbers[1])
        else { return nil }
        var components = DateComponents()
        (components.year, components.month, components.day) = (year, month + 1, dayNumber)
        (components.hour, components.minute, components.second) = (numbers[0], numbers[1], 0)
        components.timeZone = TimeZone(secondsFromGMT: 0)
        return Calendar(identifier: .gregorian).date(from: components)
    }
}
