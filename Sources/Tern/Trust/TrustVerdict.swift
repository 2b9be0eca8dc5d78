#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a policy's pins say of a chain that leads to its anchors. Pure.
enum TrustVerdict: Hashable {
    case accepted
    /// Taken all the same: what is to be told.
    case reported(String)
    /// Why not.
    case refused(String)
}

extension TrustPolicy {
    /// - Parameters:
    ///   - host: Whom the connection is for.
    ///   - chain: The verified chain, the server's own certificate first; as it was sent where nothing is verified.
    ///   - now: The time that counts for the pins' end.
    func verdict(on chain: [Certificate], of host: String, now: Date) -> TrustVerdict {
        guard let pins else { return .accepted }
        if let pinsExpire, pinsExpire <= now { return .accepted }
        // Where nothing was verified a server proves nothing of what it sends along: only its own key must be its own.
        let candidates = pinScope == .leaf || anchors == .none ? chain.prefix(1) : chain[...]
        if candidates.contains(where: { certificate in pins.contains { $0.fits(certificate) } }) { return .accepted }
        let found = candidates.map { "\($0)" }.joined(separator: ", ")
        let expected = pins.isEmpty ? "nothing, for there are no pins" : pins.map { "\($0)" }.joined(separator: " or ")
        let reason = "no pin for \(host) fits: found \(found.isEmpty ? "no certificate" : found); expected \(expected)"
        return isReportOnly ? .reported(reason) : .refused(reason)
    }
}
