#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the system tells of its tasks, on the delegate queue.
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

    /// The system removes its file when this returns.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        let path = Self.temporaryPath
        do {
            try FileManager.default.moveItem(at: location, to: URL(filePath: path))
            handle(.file(path), downloadTask)
        } catch {
            let reason = "the system's file cannot be taken over: \(error)"
            handle(.failed(TransferFailure(.fileSystem, reason, underlying: error)), downloadTask)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(attempt(task)?.body?.takeStream())
    }

    /// Redirects are decided above the transport: the response is the redirect itself.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // It ends the process when the answer comes after the task was cancelled.
        if attempt(task)?.isEnded ?? true { return }
        #endif
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // Asked when the whole response is there. Every answer but a credential makes the task hang, or cancels it: the
        // attempt is complete as it is, and what the task says afterwards is not heard.
        attempt(task)?.handle(.completed(nil, SystemResponse(task.response)))
        completionHandler(.cancelAuthenticationChallenge, nil)
        #else
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust:
            answer(space.serverTrust, host: space.host, task, completionHandler)
        case NSURLAuthenticationMethodClientCertificate:
            let credential = settings.trust.policy(for: space.host)?.identity?.credential
            completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
        default:
            // The response with its 401 is what the caller gets; a proxy's credentials are the system's own business.
            completionHandler(space.isProxy() ? .performDefaultHandling : .rejectProtectionSpace, nil)
        }
        #endif
    }

    #if !canImport(FoundationNetworking)
    private func answer(
        _ trust: SecTrust?, host: String, _ task: URLSessionTask,
        _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // None for a background task that the system kept, until it is taken over: the policy holds for it as well.
        let attempt = attempt(task)
        let host = attempt?.transfer.order.target.host ?? host
        guard let trust, let policy = settings.trust.policy(for: host) else {
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        if policy == TrustPolicy(), settings.anchors == nil { return completionHandler(.performDefaultHandling, nil) }
        let judge = URLSessionTrust(policy, authorities: settings.anchors)
        guard let refusal = judge.refusal(of: trust, host: host, report: { attempt?.reportPins($0) }) else {
            return completionHandler(.useCredential, URLCredential(trust: trust))
        }
        attempt?.fail(refusal)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        handle(.measured(TaskMetrics(metrics)), task)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { mode.eventsDelivered?() }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        handle(.completed(error, SystemResponse(task.response)), task)
    }
}
#endif
