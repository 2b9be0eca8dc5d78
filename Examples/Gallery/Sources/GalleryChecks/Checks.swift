import Glibc

/// The checks of a running program: one line each, and an exit code at the end.
@MainActor
public final class Checks {
    /// The number of failed checks.
    public private(set) var failures = 0
    private var count = 0

    /// Creates an empty set of checks.
    public init() {}

    /// Prints the result of a check.
    public func check(_ what: String, _ holds: Bool, detail: String = "") {
        count += 1
        if !holds { failures += 1 }
        say("\(holds ? "ok  " : "FAIL") \(what)\(detail.isEmpty ? "" : ": \(detail)")")
    }

    /// Prints a line immediately, so that it is visible after a crash.
    public func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe write(1, bytes, bytes.count)
    }

    /// Prints the reason for skipping a check.
    public func skip(_ what: String, because reason: String) { say("skip \(what): \(reason)") }

    /// Prints the number of successful checks, and returns 0 if none failed, else 1.
    public func finish() -> Int32 {
        say("\(count - failures) of \(count) checks hold")
        return failures == 0 && count > 0 ? 0 : 1
    }
}
