#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Hands the chunks of one body to its pipe, as fast as the throttle allows.
struct Pace {
    private let throttle: Request.Body.Throttle?
    /// What is to be waited before the next piece.
    private var debt = Duration.zero

    init(_ throttle: Request.Body.Throttle?) { self.throttle = throttle }

    /// Returns false once nobody takes the bytes; throws when the wait is cancelled.
    mutating func push(_ chunk: Data, into pipe: UploadPipe, _ wakeTransport: () -> Void) async throws -> Bool {
        guard let throttle else { return await Self.hand(chunk, to: pipe, wakeTransport) }
        var rest = chunk
        while !rest.isEmpty {
            if debt > .zero { try await throttle.clock.sleep(for: debt) }
            let piece = rest.prefix(throttle.pieceSize)
            guard await Self.hand(piece, to: pipe, wakeTransport) else { return false }
            debt = throttle.delay(after: piece.count)
            rest = rest.dropFirst(piece.count)
        }
        return true
    }

    private static func hand(_ chunk: Data, to pipe: UploadPipe, _ wakeTransport: () -> Void) async -> Bool {
        let push = await pipe.push(chunk)
        if push.accepted, push.isStarved { wakeTransport() }
        return push.accepted
    }
}
