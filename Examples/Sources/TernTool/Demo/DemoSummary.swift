/// The table at the end of a demo. Pure.
struct DemoSummary {
    static let titleWidth = 21

    var outcomes: [DemoOutcome] = []

    /// Whether every step did what it should.
    var isGood: Bool { outcomes.allSatisfy(\.isGood) }

    var table: String {
        let timeWidth = 9
        let rule = String(repeating: "-", count: Self.titleWidth + timeWidth + 12)
        var lines = [row("step", "result", "time"), rule]
        for outcome in outcomes {
            lines.append(row(outcome.title, outcome.isGood ? "ok" : "FAILED", DurationText.span(outcome.time)))
        }
        let good = outcomes.count { $0.isGood }
        let total = outcomes.reduce(.zero) { $0 + $1.time }
        lines.append(rule)
        lines.append(row("\(good) of \(outcomes.count) steps", isGood ? "ok" : "FAILED", DurationText.span(total)))
        return lines.joined(separator: "\n")

        func row(_ title: String, _ result: String, _ time: String) -> String {
            "\(Columns.left(title, Self.titleWidth))  \(Columns.left(result, 8))  \(Columns.right(time, timeWidth))"
        }
    }
}
