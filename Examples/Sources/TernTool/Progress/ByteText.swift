/// Numbers of bytes for people: decimal units, one digit after the point.
enum ByteText {
    private static let units: [(size: Double, name: String)] = [
        (1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"),
    ]

    /// `999 B`, `1.5 kB`, `200.0 MB`.
    static func size(_ bytes: Int64) -> String {
        let unit = unit(for: Double(bytes))
        return "\(number(Double(bytes), unit)) \(unit.name)"
    }

    /// The number alone, in the unit that `whole` is told in.
    static func size(_ bytes: Int64, inUnitOf whole: Int64) -> String {
        number(Double(bytes), unit(for: Double(whole)))
    }

    /// `12.3 MB/s`.
    static func rate(_ bytesPerSecond: Double) -> String {
        let unit = unit(for: bytesPerSecond)
        return "\(number(bytesPerSecond, unit)) \(unit.name)/s"
    }

    /// `512.0 MB/s`, of so many bytes in so much time.
    static func rate(_ bytes: Int64, in time: Duration) -> String {
        time > .zero ? rate(Double(bytes) / (time / .seconds(1))) : "at once"
    }

    private static func unit(for value: Double) -> (size: Double, name: String) {
        // 999,960 bytes round to 1000.0 kB: better said as 1.0 MB.
        units.last { value >= $0.size * 0.99995 } ?? units[0]
    }

    private static func number(_ value: Double, _ unit: (size: Double, name: String)) -> String {
        unit.size == 1 ? "\(Int64(value))" : Decimals.one(value / unit.size)
    }
}

/// Numbers with a stated number of digits, in plain notation.
enum Decimals {
    /// `12.3`.
    static func one(_ value: Double) -> String {
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }

    /// `1.23`.
    static func two(_ value: Double) -> String {
        let hundredths = Int64((value * 100).rounded())
        let rest = abs(hundredths % 100)
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
