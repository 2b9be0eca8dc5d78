#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The policies that a request is subject to, in the order in which they are asked.
struct Policies: Sendable {
    private let list: [any SessionPolicy]

    init?(_ session: (any SessionPolicy)?, _ request: (any SessionPolicy)?) {
        list = [session, request].compactMap { $0 }
        if list.isEmpty { return nil }
    }

    /// The first opinion.
    func ask<Answer: Sendable>(
        about request: Request, _ question: @Sendable (any SessionPolicy) async throws -> Answer?
    ) async throws(NetworkError) -> Answer? {
        for policy in list {
            do {
                if let answer = try await question(policy) { return answer }
            } catch let error as NetworkError {
                throw error
            } catch is CancellationError {
                throw NetworkError(.cancelled, request: request)
            } catch {
                let reason = "the policy \(type(of: policy)) failed: \(error)"
                throw NetworkError(TransferFailure(.policy, reason, underlying: error), request: request)
            }
        }
        return nil
    }
}
