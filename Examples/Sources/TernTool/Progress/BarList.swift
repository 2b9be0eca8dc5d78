import Tern

/// Shows several transfers on standard error: in a terminal one bar for each that runs, and one for all; elsewhere
/// plain lines for all.
actor BarList {
    private let terminal: Terminal
    private let start = ContinuousClock.now
    private var table: BarTable
    private var throttle: DisplayThrottle
    /// The number of lines that are on the screen.
    private var drawn = 0
    private var isFinished = false
    /// The number of bytes that this process has received.
    private var receivedBytes: Int64 = 0

    init(count: Int, on terminal: Terminal) {
        self.terminal = terminal
        table = BarTable(count: count)
        throttle = DisplayThrottle(terminal.isInteractive ? .bar : .lines)
    }

    /// Shows the progress of the transfers that run.
    func show(_ running: [(index: Int, name: String, progress: Session.Progress)]) {
        if isFinished { return }
        for transfer in running { table.update(transfer.index, name: transfer.name, transfer.progress) }
        draw()
    }

    /// Writes the line of a transfer that has ended, above the bars.
    ///
    /// - Parameters:
    ///   - bytes: The size of the file.
    ///   - received: The number of bytes that were received for it.
    ///   - isFailure: Whether the line tells a failure.
    func end(_ index: Int, _ bytes: Int64, received: Int64, line: String, isFailure: Bool = false) {
        table.end(index, bytes)
        receivedBytes = BarTable.sum([receivedBytes, received])
        clear()
        if isFailure { terminal.fail(line) } else { terminal.tell(line) }
        draw()
    }

    /// Removes the bars, and writes the line of all transfers.
    func finish() {
        isFinished = true
        clear()
        let time = ContinuousClock.now - start
        terminal.tell(DownloadReport.line("total", table.completed, receivedBytes, in: time))
    }

    private func draw() {
        guard terminal.messages.showsProgress, throttle.admits(table.total, at: ContinuousClock.now - start) else {
            return
        }
        guard terminal.isInteractive else {
            terminal.writeLine(Bar(label: table.label).plainLine(table.total))
            return
        }
        let lines = table.lines(columns: terminal.columns, rows: terminal.rows)
        clear()
        terminal.write(lines.map { "\($0)\u{1B}[K\n" }.joined())
        drawn = lines.count
    }

    /// Moves to the first line of the bars, and removes them.
    private func clear() {
        if drawn > 0 { terminal.write("\u{1B}[\(drawn)A\u{1B}[J") }
        drawn = 0
    }
}

/// The transfers of a list, and their sum. Pure.
struct BarTable {
    private struct Row {
        let name: String
        var status: TransferStatus
    }

    /// The number of transfers, those that wait included.
    let count: Int
    /// The indices of the transfers that have ended. Progress that was read before the end can arrive afterwards.
    private var endedIndices: Set<Int> = []
    private var endedBytes: Int64 = 0
    private var rows: [Int: Row] = [:]

    init(count: Int) { self.count = count }

    /// The number of transfers that have ended.
    var ended: Int { endedIndices.count }

    /// The bytes of all transfers.
    var completed: Int64 { Self.sum([endedBytes] + rows.values.map(\.status.completed)) }

    mutating func update(_ index: Int, name: String, _ progress: Session.Progress) {
        if endedIndices.contains(index) { return }
        let status = TransferStatus(
            completed: progress.completedBytes, total: progress.totalBytes, rate: progress.bytesPerSecond,
            remaining: progress.estimatedTimeRemaining)
        rows[index] = Row(name: name, status: status)
    }

    mutating func end(_ index: Int, _ bytes: Int64) {
        rows[index] = nil
        endedIndices.insert(index)
        endedBytes = Self.sum([endedBytes, bytes])
    }

    /// The name of the line of all transfers.
    var label: String { "total, \(ended) of \(count)" }

    /// The sum. Its size is known when the size of each is.
    var total: TransferStatus {
        let statuses = rows.values.map(\.status)
        let isKnown = ended + rows.count == count && statuses.allSatisfy { $0.total != nil }
        let size = isKnown ? Self.sum([endedBytes] + statuses.map { $0.total ?? 0 }) : nil
        let rates = statuses.compactMap(\.rate)
        let rate = rates.isEmpty ? nil : rates.reduce(0, +)
        let rest = size.map { Double($0 - completed) }
        let seconds = rest.flatMap { rest in rate.map { rest / $0 } }
        // Like that of one transfer, nil without a rate and for more than a hundred years.
        let remaining = seconds.flatMap { $0 >= 0 && $0 < 3.2e9 ? Duration.seconds($0) : nil }
        return TransferStatus(completed: completed, total: size, rate: rate, remaining: remaining)
    }

    /// Servers state the sizes, so that their sum can be too large for a number.
    static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (next, overflows) = sum.addingReportingOverflow(number)
            return overflows ? .max : next
        }
    }

    /// Returns one line for each transfer that runs, as many as fit, and one for all.
    func lines(columns: Int, rows count: Int) -> [String] {
        let shown = rows.sorted { $0.key < $1.key }.prefix(max(0, count - 2)).map(\.value)
        return shown.map { Bar(label: $0.name).line($0.status, columns: columns) }
            + [Bar(label: label).line(total, columns: columns)]
    }
}
