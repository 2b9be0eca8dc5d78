#if os(Linux)
import CTernCurl
import Glibc

/// The meaning of libcurl's results.
extension CurlTransfer {
    /// Returns the failure that a result means; nil for none. A failure that a callback has set comes first.
    func failure(for result: CURLcode) -> TransferFailure? {
        if let failure { return failure }
        if result == CURLE_OK, head != nil { return nil }
        var failure = failureByCode(result)
        guard !isConnected, let problem = problemOfDescriptors(result) else { return failure }
        // libcurl returns this when it cannot use the resolver.
        if result == CURLE_OUT_OF_MEMORY {
            failure = TransferFailure(.connectionFailed, problem)
        } else {
            failure.reason += ": \(problem)"
        }
        failure.underlying = OutOfDescriptors()
        return failure
    }

    /// Returns the reason why no file or socket can be opened. libcurl reports the operation that failed but not this
    /// reason.
    private func problemOfDescriptors(_ result: CURLcode) -> String? {
        // Descriptors can be free again since a socket could not be opened.
        let openError = result == CURLE_COULDNT_CONNECT ? pool.sockets.openError : 0
        let error = openError != 0 ? openError : tern_descriptor_problem()
        return error == EMFILE || error == ENFILE ? ErrorText.text(error) : nil
    }

    private func failureByCode(_ result: CURLcode) -> TransferFailure {
        let said = Self.withoutURL(handle?.failureText ?? "")
        if let trustFailure, !isConnected { return trustFailure }
        let host = "\(transfer.request.target.host):\(transfer.request.target.port)"
        switch result {
        // libcurl takes an end within the head for the end of a response without a body.
        case CURLE_OK: return lostConnection(result, host: host, message: "the head is not whole")
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY:
            return proxyFailure(host, said)
        case CURLE_RECV_ERROR where said.contains("CONNECT"), CURLE_COULDNT_CONNECT where isSOCKSFailure(said):
            return proxyFailure(host, said)
        case CURLE_COULDNT_RESOLVE_HOST where transfer.request.unixSocketPath != nil:
            // libcurl's result for a path that does not fit into an address.
            return TransferFailure(.invalidRequest, "the path of \(destination(host, "")) is too long for the system")
        case CURLE_COULDNT_RESOLVE_HOST:
            return TransferFailure(.dns, "the name '\(transfer.request.target.host)' could not be resolved")
        case CURLE_COULDNT_CONNECT:
            return connectFailure(host, said)
        case CURLE_OPERATION_TIMEDOUT:
            return timeout(.connect)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
            return TransferFailure(.untrustedServer, "the certificate of \(host) is not trusted: \(said)")
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            return TransferFailure(.pinMismatch, "no pin for \(host) fits the key that it showed")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_USE_SSL_FAILED, CURLE_SSL_INVALIDCERTSTATUS:
            return TransferFailure(.tls, "TLS with \(host) failed: \(said)")
        case CURLE_ABORTED_BY_CALLBACK where connections > 1, CURLE_SEND_FAIL_REWIND:
            return deadConnection(host)
        case CURLE_PARTIAL_FILE where head != nil:
            return TransferFailure(.truncatedBody, "the body from \(host) ended after \(receivedText)")
        // libcurl's header parser returns this for a line that it cannot take apart.
        case CURLE_BAD_FUNCTION_ARGUMENT where isConnected && head == nil:
            let reason = "it begins with a blank line, or a header field has no name"
            return TransferFailure(.malformedResponse, "the response from \(host) is malformed: \(reason)")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
            return TransferFailure(.malformedResponse, "what \(host) sent is not HTTP: \(said)")
        // Without a head it is an HTTP/2 stream whose connection ended.
        case CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM:
            return lostConnection(result, host: host, message: said)
        case CURLE_OUT_OF_MEMORY:
            // libcurl also returns this for a line beyond its own limit.
            let what = hasResponse && head == nil ? "a line of the response's head is too long, or " : ""
            return TransferFailure(.tooLarge, "\(what)libcurl has no memory left")
        case CURLE_URL_MALFORMAT:
            return TransferFailure(.invalidRequest, "libcurl cannot read the URL: \(said)")
        default:
            return unknownFailure(result, host: host, message: said)
        }
    }

    /// Returns the failure for a result without a more specific kind. It says that nothing was sent only if that is
    /// known.
    private func unknownFailure(_ result: CURLcode, host: String, message said: String) -> TransferFailure {
        let text = said.isEmpty ? unsafe String(cString: curl_easy_strerror(result)) : said
        let reason = "\(host): \(text) (libcurl \(result.rawValue))"
        if hasResponse { return TransferFailure(.malformedResponse, "the response cannot be read: \(reason)") }
        if isConnected { return TransferFailure(.connectionLost, "\(reason); the server may have acted") }
        return TransferFailure(.connectionFailed, reason)
    }

    /// Removes a URL that libcurl quotes, as in "Unsupported proxy syntax in '…'", because it can contain a password.
    static func withoutURL(_ said: String) -> String {
        guard said.contains("://") || said.contains("@") else { return said }
        let start = said.firstIndex(of: "'") ?? said.lastIndex(of: ":") ?? said.startIndex
        return said[..<start] + "(a URL that is not shown)"
    }

    private func isSOCKSFailure(_ said: String) -> Bool { said.contains("SOCKS") }

    private func proxyFailure(_ host: String, _ said: String) -> TransferFailure {
        let proxy = pool.settings.proxies.name(isSecure: transfer.request.target.isSecure) ?? "without a name"
        return TransferFailure(.proxy, "the proxy \(proxy) made no connection to \(host): \(said)")
    }

    func timeout(_ phase: Timeouts.Phase) -> TransferFailure {
        let host = "\(transfer.request.target.host):\(transfer.request.target.port)"
        switch phase {
        case .connect:
            return TransferFailure(
                .connectTimedOut, "no connection to \(host) within \(Self.text(transfer.request.timeouts.connect))")
        case .idle:
            return TransferFailure(
                .idleTimedOut,
                "no byte moved to or from \(host) for \(Self.text(transfer.request.timeouts.idle)), after \(receivedText)"
            )
        case .total:
            let limit = Self.text(transfer.request.timeouts.total)
            return TransferFailure(.totalTimedOut, "not done within \(limit), after \(receivedText) from \(host)")
        }
    }

    private static func text(_ limit: Duration?) -> String { limit.map { "\($0)" } ?? "its limit" }

    private func connectFailure(_ host: String, _ said: String) -> TransferFailure {
        let code = Int32(truncatingIfNeeded: handle?.number(CURLINFO_OS_ERRNO) ?? 0)
        let destination = destination(host, said)
        if code == ECONNREFUSED { return TransferFailure(.connectionRefused, "\(destination) refused the connection") }
        let reason = code == 0 ? said : ErrorText.text(code)
        return TransferFailure(.connectionFailed, "no connection to \(destination): \(reason)")
    }

    /// Returns the destination of a connection: a Unix socket, the proxy if libcurl's text names it, or the host.
    private func destination(_ host: String, _ said: String) -> String {
        if let path = transfer.request.unixSocketPath { return "the Unix socket \(path.printable(limit: 200))" }
        guard let proxy = pool.settings.proxies.name(isSecure: transfer.request.target.isSecure),
            let colon = proxy.lastIndex(of: ":")
        else { return host }
        let (name, port) = (proxy[..<colon].filter { $0 != "[" && $0 != "]" }, proxy[colon...].filter(\.isNumber))
        return said.contains("to \(name) port \(port) ") ? "the proxy \(proxy)" : host
    }

    private func deadConnection(_ host: String) -> TransferFailure {
        var failure = TransferFailure(
            .connectionLost,
            "\(host) closed a kept-alive connection while the request was sent on it; the server may have acted")
        failure.isDeadPooledConnection = true
        return failure
    }

    private func lostConnection(_ result: CURLcode, host: String, message said: String) -> TransferFailure {
        // The chunked decoder reports a broken size as a failed read.
        if said.contains("chunk") {
            return TransferFailure(.malformedResponse, "the chunked body from \(host) is malformed: \(said)")
        }
        // libcurl's own limit for all heads of a transfer.
        if said.contains("Too large response headers") {
            return TransferFailure(.tooLarge, "the head of the response from \(host) is too large: \(said)")
        }
        guard head != nil else {
            let isReused = handle?.number(CURLINFO_NUM_CONNECTS) == 0 && isConnected
            if isReused, !hasResponse, result != CURLE_HTTP2 {
                return deadConnection(host)
            }
            let text = "\(host) closed the connection without a response; the server may have acted: \(said)"
            return TransferFailure(.connectionLost, text)
        }
        return TransferFailure(.connectionLost, "the connection to \(host) was lost after \(receivedText): \(said)")
    }
}
#endif
