import Glibc

/// Checks of a program that runs: one line each, and an exit code at the end.
@MainActor
public final class Checks {
    /// How many did not hold.
    public private(set) var failures = 0
    private var count = 0

    /// No check yet.
    public init() {}

    /// Says whether something holds.
    public func check(_ what: String, _ holds: Bool, _ detail: String = "") {
        count += 1
        if !holds { failures += 1 }
        say("\(holds ? "ok  " : "FAIL") \(what)\(detail.isEmpty ? "" : ": \(detail)")")
    }

    /// A line, at once: what was said before a crash is read after it.
    public func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe write(1, bytes, bytes.count)
    }

    /// Says why something is not checked.
    public func skip(_ what: String, because reason: String) { say("skip \(what): \(reason)") }

    /// 0 if all held, else 1. Says how many did.
    public func finish() -> Int32 {
        say("\(count - failures) of \(count) checks hold")
        return failures == 0 && count > 0 ? 0 : 1
    }
}
