import Foundation

/// One parser or decoder under test.
struct FuzzTarget: Sendable {
    let name: String
    /// Returns valid inputs, which the mutator changes. `fixtures` is a folder made by `Tests/Pillow/fixtures.py`.
    let seeds: @Sendable (_ fixtures: String) throws -> [[UInt8]]
    /// Byte sequences that the grammar gives a meaning. The mutator inserts them.
    var tokens: [String] = []
    /// Makes checksums valid again, so that a mutation reaches the code behind them.
    var repair: (@Sendable (inout [UInt8]) -> Void)?
    /// Feeds one input in a way that `choice` selects, and traps where a property does not hold. Returns the outcome in
    /// words: an input with a new outcome becomes a seed.
    let run: @Sendable (_ input: Data, _ choice: UInt64) async throws -> String

    /// Every target, in the order in which `scripts/fuzz` runs them. To add one, add it to the list of its area.
    static let all: [FuzzTarget] =
        images + urls + cookies + resumeData + streaming + webSocket + coding + xml + engine

    #if os(Linux)
    /// The parsers and state machines of the engine.
    private static let engine = http1 + http2 + http3 + alternatives + proxies + requests
    #else
    private static let engine: [FuzzTarget] = []
    #endif
}

/// Throws a failure with a text if a property does not hold.
func require(_ holds: Bool, _ problem: @autoclosure () -> String) throws(Failure) {
    if !holds { throw Failure(problem()) }
}
