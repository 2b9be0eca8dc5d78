public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension WebLoad {
    /// Awaits the response and makes the content.
    static func outcome(
        _ source: SessionTask<Response<Data>>, _ options: WebOptions
    ) async -> Result<WebContent, NetworkError> {
        do throws(NetworkError) {
            let response = try await source.value
            switch await WebContentMaker.content(of: response, options) {
            case .success(let content): return .success(content)
            case .failure(let failure): throw error(failure, source, response)
            }
        } catch {
            return .failure(error)
        }
    }

    private static func error(
        _ failure: TransferFailure, _ source: SessionTask<Response<Data>>, _ response: Response<Data>
    ) -> NetworkError {
        guard let request = source.request else {
            return NetworkError(failure.kind, reason: failure.reason, underlying: failure.underlying)
        }
        return NetworkError(failure, request: request, response: response.head, metrics: response.metrics)
            .identified(task: source.id, session: source.sessionID, label: source.label)
    }
}

extension Session {
    /// The session of all web views that have none of their own: made on first use, with the defaults.
    public static let forWebViews = Session()
}
