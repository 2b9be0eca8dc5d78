/// One line that shows how far a transfer has come, never wider than it may be. Pure.
///
///     big.iso  [==========>         ]  52%  104.0 of 200.0 MB  512.3 MB/s  0:01
///
/// In a narrow terminal the details go first, from the right, then the bar, then the name.
struct Bar {
    private static let shortestBar = 10
    private static let gap = "  "

    /// What is moved: a file's name.
    let label: String

    /// The line for a terminal of so many columns. The last three stay free: some terminals wrap when the last one is
    /// written, and Ctrl-C shows as `^C`.
    func line(_ figures: Figures, columns: Int) -> String {
        let room = max(0, columns - 3)
        let name = Columns.fit(label, to: max(8, room / 4))
        for details in Self.details(figures) {
            let text = details.joined(separator: Self.gap)
            let used = Columns.count(name) + Columns.count(text) + 2 * Self.gap.count + 2
            guard let fraction = figures.fraction else {
                let line = name + Self.gap + text
                if Columns.count(line) <= room { return line }
                continue
            }
            if room - used >= Self.shortestBar {
                return name + Self.gap + Self.bar(fraction, width: room - used) + Self.gap + text
            }
        }
        return Columns.fit(Self.details(figures).last?.first ?? "", to: room)
    }

    /// The line where there is no terminal: no bar, no padding.
    func plainLine(_ figures: Figures) -> String {
        var parts = [figures.fraction.map { Self.percent($0) }, Self.amount(figures)].compactMap(\.self)
        if let note = figures.note {
            parts.append(note)
        } else {
            if let rate = figures.rate { parts.append(ByteText.rate(rate)) }
            if let remaining = figures.remaining, remaining > .zero {
                parts.append("\(DurationText.clock(remaining)) left")
            }
        }
        return "\(label): \(parts.joined(separator: ", "))"
    }

    /// The details from the richest to the barest. Each is padded, so that the bar does not change its length.
    private static func details(_ figures: Figures) -> [[String]] {
        let lead = figures.fraction.map { Columns.right(percent($0), 4) } ?? amount(figures)
        let middle = figures.total.map { [Columns.right(amount(figures), 2 * ByteText.size($0).count + 1)] } ?? []
        if let note = figures.note {
            return [[lead] + middle + [Columns.left(note, 18)], [lead, Columns.left(note, 10)], [lead, note], [lead]]
        }
        let rate = Columns.right(figures.rate.map { ByteText.rate($0) } ?? "", 10)
        let left = Columns.right(figures.remaining.map { DurationText.clock($0) } ?? "", 6)
        return [[lead] + middle + [rate, left], [lead, rate, left], [lead, rate], [lead]]
    }

    private static func bar(_ fraction: Double, width: Int) -> String {
        let filled = Int((fraction * Double(width)).rounded(.down))
        if filled >= width { return "[" + String(repeating: "=", count: width) + "]" }
        return "[" + String(repeating: "=", count: filled) + ">" + String(repeating: " ", count: width - filled - 1)
            + "]"
    }

    /// Rounded down: 100% is said only of the whole.
    private static func percent(_ fraction: Double) -> String { "\(Int((fraction * 100).rounded(.down)))%" }

    private static func amount(_ figures: Figures) -> String {
        guard let total = figures.total else { return ByteText.size(figures.completed) }
        return "\(ByteText.size(figures.completed, inUnitOf: total)) of \(ByteText.size(total))"
    }
}
