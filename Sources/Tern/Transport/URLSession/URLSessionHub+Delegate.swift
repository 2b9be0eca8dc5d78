#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Receives the events of the system's tasks, on the delegate queue.
extension URLSessionHub: URLSessionDataDelegate, URLSessionDownloadDelegate {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = SystemResponse(response) { handle(.response(response), dataTask) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        handle(.data(data), dataTask)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        handle(.sent(totalBytesSent), task)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        let whole = totalBytesExpectedToWrite > 0 ? totalBytesExpectedToWrite : nil
        handle(.wrote(totalBytesWritten, of: whole), downloadTask)
    }

    /// Takes over the file. The system removes its own when this function returns.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        let path = Self.temporaryPath
        do {
            try FileManager.default.moveItem(at: location, to: URL(filePath: path))
            handle(.file(path), downloadTask)
        } catch {
            let reason = "the system's file cannot be moved to \(path): \(error)"
            handle(.failed(FailureCause(.fileSystem, reason, underlying: error)), downloadTask)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(attempt(task)?.body?.takeStream())
    }

    /// Follows no redirect: `FollowUpStage` does, so the response is the redirect itself.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // FoundationNetworking ends the process if it is called after the task was cancelled.
        if attempt(task)?.isEnded ?? true { return }
        #endif
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // Called when the whole response has arrived. Every answer except a credential makes the task hang or cancels
        // it. The attempt is therefore completed here, and later events of the task are ignored.
        attempt(task)?.handle(.completed(nil, SystemResponse(task.response)))
        completionHandler(.cancelAuthenticationChallenge, nil)
        #else
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust:
            answer(space.serverTrust, host: space.host, for: task, completionHandler: completionHandler)
        case NSURLAuthenticationMethodClientCertificate:
            let credential = settings.trust.policy(for: space.host)?.identity?.credential
            completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
        default:
            // The 401 response is delivered; the system handles the credentials of proxies.
            completionHandler(space.isProxy() ? .performDefaultHandling : .rejectProtectionSpace, nil)
        }
        #endif
    }

    #if !canImport(FoundationNetworking)
    private func answer(
        _ trust: SecTrust?, host: String, for task: URLSessionTask,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // nil for a background task that is not restored yet. The policy applies to it as well.
        let attempt = attempt(task)
        let host = attempt?.attempt.request.target.host ?? host
        guard let trust, let policy = settings.trust.policy(for: host) else {
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        if policy == TrustPolicy(), settings.anchors == nil { return completionHandler(.performDefaultHandling, nil) }
        let judge = URLSessionTrust(policy, authorities: settings.anchors)
        do throws(FailureCause) {
            let server = try judge.evaluate(trust, host: host, report: { attempt?.reportPins($0) })
            let credential = URLCredential(trust: trust)
            guard let decision = policy.decision else { return completionHandler(.useCredential, credential) }
            // Ends with the decision. The system waits for the answer, within the time limits of the task.
            Task {
                guard let refusal = await decision.refusal(of: server) else {
                    return completionHandler(.useCredential, credential)
                }
                let reason = "the trust policy's own decision refused \(host): \(refusal)"
                attempt?.fail(FailureCause(.untrustedServer, reason))
                completionHandler(.cancelAuthenticationChallenge, nil)
            }
        } catch {
            attempt?.fail(error)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        handle(.measured(TaskMetrics(metrics)), task)
    }
    #endif

    /// Called by Apple's systems only. FoundationNetworking does not declare it; a test calls it there.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { mode.eventsDelivered?() }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let attempt = attempt(task), let socket = attempt.socket {
            socket.completed(error, SystemResponse(task.response))
            return ended(attempt, task)
        }
        handle(.completed(error, SystemResponse(task.response)), task)
    }
}

/// Receives the events of the system's socket tasks, on the delegate queue.
extension URLSessionHub: URLSessionWebSocketDelegate {
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol subprotocol: String?
    ) {
        let fields = SystemResponse(webSocketTask.response)?.fields ?? [:]
        attempt(webSocketTask)?.socket?.opened(subprotocol: subprotocol, fields: fields)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        attempt(webSocketTask)?.socket?.closed(code: closeCode.rawValue, reason: reason)
    }
}
#endif
