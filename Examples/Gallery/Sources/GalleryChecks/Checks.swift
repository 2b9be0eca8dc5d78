import GtkBridge

/// Checks of a program that runs: one line each, and an exit code at the end.
@MainActor
public final class Checks {
    private var failures = 0
    private var count = 0

    /// No check yet.
    public init() {}

    /// Says whether something holds.
    public func check(_ what: String, _ holds: Bool, _ detail: String = "") {
        count += 1
        if !holds { failures += 1 }
        print("\(holds ? "ok  " : "FAIL") \(what)\(detail.isEmpty ? "" : ": \(detail)")")
    }

    /// Says why something is not checked.
    public func skip(_ what: String, because reason: String) { print("skip \(what): \(reason)") }

    /// Waits until something holds, and for 20 seconds at most. The main loop goes on meanwhile.
    @discardableResult
    public func wait(seconds: Int = 20, until condition: @MainActor () -> Bool) async -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while !condition() {
            guard ContinuousClock.now < end else { return false }
            await MainLoop.pause(4)
        }
        return true
    }

    /// 0 if all held, else 1. Says how many did.
    public func finish() -> Int32 {
        print("\(count - failures) of \(count) checks hold")
        return failures == 0 && count > 0 ? 0 : 1
    }
}
