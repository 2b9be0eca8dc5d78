#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Maps the errors of URLSession to failures. The same error code means different things before and after the head of
/// the response.
struct URLSessionFailure {
    let target: Target
    /// Whether the request opens a WebSocket.
    var isForUpgrade = false
    var hasHead = false
    var received: Int64 = 0
    var expected: Int64?
    /// Whether there was a connection, or that this is not known.
    var wasConnected = true
    var isReusedConnection = false

    private var host: String { "\(target.host):\(target.port)" }
    private var receivedText: String { expected.map { "\(received) of \($0) bytes" } ?? "\(received) bytes" }

    func failure(_ error: any Error) -> FailureCause {
        let details = error as NSError
        guard let code = (error as? URLError)?.code else {
            return FailureCause(.connectionFailed, "\(host): \(details.domain) \(details.code)", underlying: error)
        }
        let failure = failure(code, Self.posixCode(details))
        // Tern cancelled the task, so the system's error adds nothing.
        return failure.kind == .cancelled ? failure : failure.caused(by: error)
    }

    func failure(_ code: URLError.Code, _ posixCode: Int32?) -> FailureCause {
        switch code {
        case .cancelled, .userCancelledAuthentication:
            return .cancelled
        case .cannotFindHost, .dnsLookupFailed:
            return FailureCause(.dns, "the name '\(target.host)' could not be resolved")
        case .cannotConnectToHost:
            guard posixCode ?? Self.refusal == Self.refusal else {
                return FailureCause(.connectionFailed, "no connection to \(host) (error \(posixCode ?? 0))")
            }
            return FailureCause(.connectionRefused, "\(host) refused the connection")
        case .notConnectedToInternet, .internationalRoamingOff, .callIsActive, .dataNotAllowed:
            return FailureCause(.connectionFailed, "no connection to \(host): there is no network")
        case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid:
            return FailureCause(.untrustedServer, "the certificate of \(host) is not trusted: \(Self.reason(code))")
        case .secureConnectionFailed, .clientCertificateRejected, .clientCertificateRequired,
            .appTransportSecurityRequiresSecureConnection:
            return FailureCause(.tls, "TLS with \(host) failed: \(Self.reason(code))")
        case .timedOut:
            return timeout(wasConnected ? .idle : .connect, Timeouts())
        case .unsupportedURL where isForUpgrade:
            return FailureCause(.unsupported, "the system's URLSession cannot open WebSockets")
        case .badURL, .unsupportedURL:
            return FailureCause(.invalidRequest, "URLSession cannot read the URL")
        case .requestBodyStreamExhausted:
            return FailureCause(.connectionLost, "the body would have to be sent to \(host) again, and cannot be")
        case .dataLengthExceedsMaximum:
            return FailureCause(.tooLarge, "the response from \(host) is larger than URLSession takes")
        case .cannotDecodeContentData, .cannotDecodeRawData, .cannotParseResponse:
            return FailureCause(.malformedResponse, "what \(host) sent is not HTTP, or not decodable")
        case .networkConnectionLost, .badServerResponse, .zeroByteResource, .unknown:
            return lost(code)
        default:
            // Unknown error: the server may have acted on the request.
            let reason = "\(host): URLSession error \(code.rawValue); the server may have acted"
            return FailureCause(.connectionLost, reason)
        }
    }

    private func lost(_ code: URLError.Code) -> FailureCause {
        if hasHead {
            if let expected, received < expected {
                return FailureCause(.truncatedBody, "the body from \(host) ended after \(receivedText)")
            }
            return FailureCause(.connectionLost, "the connection to \(host) was lost after \(receivedText)")
        }
        #if !canImport(FoundationNetworking)
        // FoundationNetworking reports this for a connection that was closed without a response.
        if code == .badServerResponse {
            return FailureCause(.malformedResponse, "what \(host) sent is not HTTP")
        }
        #endif
        return FailureCause(
            .connectionLost, "\(host) closed the connection without a response; the server may have acted",
            isDeadPooledConnection: isReusedConnection)
    }

    /// Returns the failure of a time limit that ran out.
    func timeout(_ phase: Timeouts.Phase, _ limits: Timeouts) -> FailureCause {
        switch phase {
        case .queue, .connect:
            let limit = Self.text(limits.connect)
            return FailureCause(.connectTimedOut, "no connection to \(host) within \(limit)")
        case .idle:
            let limit = Self.text(limits.idle)
            return FailureCause(
                .idleTimedOut, "no byte moved to or from \(host) for \(limit), after \(receivedText)")
        case .attempt:
            let limit = Self.text(limits.attempt)
            return FailureCause(
                .attemptTimedOut, "the attempt was not done within \(limit), after \(receivedText) from \(host)")
        case .total:
            let limit = Self.text(limits.total)
            return FailureCause(
                .totalTimedOut, "not done within \(limit), after \(receivedText) from \(host)")
        }
    }

    private static func text(_ limit: Duration?) -> String { limit.map { "\($0)" } ?? "its limit" }

    private static let refusal = Int32(POSIXErrorCode.ECONNREFUSED.rawValue)

    private static func reason(_ code: URLError.Code) -> String {
        switch code {
        case .serverCertificateHasBadDate: "it has expired"
        case .serverCertificateNotYetValid: "it is not valid yet"
        case .serverCertificateHasUnknownRoot: "its issuer is unknown"
        case .clientCertificateRejected: "the server rejected the client's certificate"
        case .clientCertificateRequired: "the server asks for a client's certificate"
        case .appTransportSecurityRequiresSecureConnection: "App Transport Security asks for https"
        default: "URLSession error \(code.rawValue)"
        }
    }

    /// Returns the errno of an error; nil if CFNetwork does not report it.
    private static func posixCode(_ error: NSError) -> Int32? {
        for candidate in [error, error.userInfo[NSUnderlyingErrorKey] as? NSError].compactMap({ $0 }) {
            if candidate.domain == NSPOSIXErrorDomain { return Int32(truncatingIfNeeded: candidate.code) }
            let isPosix = candidate.userInfo["_kCFStreamErrorDomainKey"] as? Int == 1
            if isPosix, let code = candidate.userInfo["_kCFStreamErrorCodeKey"] as? Int {
                return Int32(truncatingIfNeeded: code)
            }
        }
        return nil
    }
}
#endif
