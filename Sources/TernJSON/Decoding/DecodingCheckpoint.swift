/// The points at which a decoding that takes long can end: every 64 KiB of text, every 4,096
/// values, and every 16 calls of `init(from:)` of a type that the decoder does not know, or of a strategy's function.
package enum DecodingCheckpoint {
    /// Called at each point, beside the check whether the current task is cancelled; nil for nothing. An error ends the
    /// decoding.
    @TaskLocal package static var check: (@Sendable () throws -> Void)?

    static func pass() throws {
        try Task.checkCancellation()
        try check?()
    }
}
