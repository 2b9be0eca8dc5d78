#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Download {
    /// Returns the destination of a finished file, or nil to leave the decision to others. Called once, off every
    /// actor, after the status was accepted and the whole body was written to `temporaryURL`. If it throws, the task
    /// fails and the file is removed.
    public typealias Destination =
        @Sendable (_ temporaryURL: URL, _ response: ResponseHead) throws -> URL?
}
