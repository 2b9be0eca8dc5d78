#if os(Linux)
import TernConcurrency
import CTernCurl
import CTernTLS
import FoundationEssentials
import Glibc

/// One easy handle of libcurl, used for one attempt after another. Options that never change are set once, and the
/// others only when they differ from the last attempt. Before libcurl 8.1.0, each attempt uses a new handle. Confined
/// to the loop's thread.
@safe final class CurlHandle {
    /// The purpose of the handle, which determines the size of its buffers.
    enum Size {
        case small
        case bulk
    }

    /// The options that an attempt sets and the next must not inherit.
    private struct Left {
        var customMethod: String?
        var proxy: String?
        var unixSocketPath: String?
        var isFresh = false
        var forbidsReuse = false
        var waitsForALPN = false
        var connectMilliseconds = 0
        var list = ListSource()
        var trust: TrustPolicy?
        /// A Boolean value that indicates whether the method always states the length of its body, even if there is
        /// none.
        var isPost = false
    }

    /// The inputs of the list of header fields. The list is used again only while all of them are the same.
    private struct ListSource {
        var headers: Headers?
        var hasBody = false
        var codings: String?
        /// A Boolean value that indicates whether a proxy receives the request whole.
        var isForwarded = false

        func isSame(as other: ListSource) -> Bool {
            guard let headers, let others = other.headers else { return false }
            return headers.isSameStorage(as: others) && hasBody == other.hasBody && codings == other.codings
                && isForwarded == other.isForwarded
        }
    }

    private(set) var easy: UnsafeMutableRawPointer
    let size: Size
    /// The attempt under way, for the callbacks.
    var transfer: CurlTransfer? {
        didSet { unsafe current = transfer.map { unsafe Unmanaged.passUnretained($0) } }
    }
    /// The same as `transfer`, for callbacks that run for each line of a head.
    private var current: Unmanaged<CurlTransfer>?
    private let errorText: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private var hostList: UnsafeMutablePointer<curl_slist>?
    private var root: CurlRoot?
    private var left = Left()
    private let proxies: ProxyEnvironment
    private let trust: CurlTrust?
    private let allowsHTTP2: Bool
    private let sockets: SocketTable

    init?(_ size: Size, settings: PoolSettings, trust: CurlTrust?, sockets: SocketTable) {
        guard let easy = unsafe curl_easy_init() else { return nil }
        unsafe self.easy = easy
        self.size = size
        proxies = settings.proxies
        self.trust = trust
        allowsHTTP2 = settings.allowsHTTP2
        self.sockets = sockets
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setConstants(settings)
        setCallbacks(sockets)
    }

    /// Replaces the easy handle of the last attempt with a new one. Returns false when libcurl has no memory for it.
    /// Data made for the last request, above all its header fields, can serve the next request, too.
    func renew(_ settings: PoolSettings) -> Bool {
        guard let new = unsafe curl_easy_init() else { return false }
        unsafe curl_easy_cleanup(easy)
        unsafe easy = new
        var kept = Left()
        kept.list = left.list
        left = kept
        setConstants(settings)
        setCallbacks(sockets)
        unsafe tern_easy_set_list(easy, CURLOPT_HTTPHEADER, headerList)
        if let root { unsafe tern_easy_set_pointer(easy, CURLOPT_CURLU, UnsafeMutableRawPointer(root.url)) }
        return true
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe curl_slist_free_all(headerList)
        unsafe curl_slist_free_all(hostList)
        unsafe errorText.deallocate()
    }

    // MARK: Once

    func set(_ option: CURLoption, _ value: Int) { unsafe tern_easy_set_long(easy, option, value) }

    private func setConstants(_ settings: PoolSettings) {
        unsafe tern_easy_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        // No signals, because the process's threads belong to the program.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_NOPROGRESS, 1)
        // Without it, cancelling during a name look-up blocks the loop until the resolver answers.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_HTTP_VERSION, settings.allowsHTTP2 ? Int(CURL_HTTP_VERSION_2TLS) : Int(CURL_HTTP_VERSION_1_1))
        // The minimum of the default policy. libcurl's own default is that of the TLS library.
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_PATH_AS_IS, 1)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(CURLOPT_MAXAGE_CONN, max(1, settings.idleSeconds))
        set(CURLOPT_BUFFERSIZE, size == .bulk ? 512 << 10 : 64 << 10)
        if size == .bulk { set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10) }
        unsafe tern_easy_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        // An empty string means no proxy, and keeps libcurl from reading the environment.
        unsafe tern_easy_set_string(easy, CURLOPT_PROXY, "")
        unsafe tern_easy_set_string(easy, CURLOPT_NOPROXY, "")
        // libcurl copies the path of a proxy's authorities for each request, even without a proxy.
        if proxies.http == nil, proxies.https == nil {
            unsafe tern_easy_set_string(easy, CURLOPT_PROXY_CAINFO, nil)
            unsafe tern_easy_set_string(easy, CURLOPT_PROXY_CAPATH, nil)
        }
        setNetwork(settings)
        switch settings.authorities {
        case .system: break
        case .file(let path):
            unsafe tern_easy_set_string(easy, CURLOPT_CAINFO, path)
            unsafe tern_easy_set_string(easy, CURLOPT_CAPATH, nil)
        case .pem(let bytes):
            unsafe bytes.withUnsafeBytes { bytes in
                _ = unsafe tern_easy_set_blob(
                    easy, CURLOPT_CAINFO_BLOB, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
            }
            unsafe tern_easy_set_string(easy, CURLOPT_CAPATH, nil)
        }
    }

    private func setCallbacks(_ sockets: SocketTable) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe tern_easy_set_pointer(easy, CURLOPT_PRIVATE, context)
        unsafe tern_easy_set_pointer(easy, CURLOPT_WRITEDATA, context)
        unsafe tern_easy_set_pointer(easy, CURLOPT_HEADERDATA, context)
        unsafe tern_easy_set_pointer(easy, CURLOPT_READDATA, context)
        unsafe tern_easy_set_pointer(easy, CURLOPT_PREREQDATA, context)
        unsafe tern_easy_set_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let bytes = unsafe bytes else { return 0 }
            return unsafe CurlHandle.with(context) { transfer in
                unsafe transfer.receiveBody(UnsafeRawPointer(bytes), size * count)
            } ?? 0
        }
        unsafe tern_easy_set_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let bytes = unsafe bytes else { return 0 }
            return unsafe CurlHandle.with(context) { transfer in
                unsafe transfer.receiveHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
            } ?? 0
        }
        unsafe tern_easy_set_data_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
            unsafe CurlHandle.with(context) { transfer in
                unsafe transfer.sendBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
            } ?? Int(CURL_READFUNC_ABORT)
        }
        // libcurl never sends a body twice. The session decides whether a body may be sent again.
        unsafe tern_easy_set_seek(easy) { _, _, _ in CURL_SEEKFUNC_FAIL }
        unsafe tern_easy_set_prerequest(easy) { context, _, _, _, localPort in
            let goesOn = unsafe CurlHandle.with(context) { $0.connected(localPort: localPort) } ?? false
            return goesOn ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        if trust != nil {
            unsafe tern_easy_set_pointer(easy, CURLOPT_SSL_CTX_DATA, context)
            unsafe tern_easy_set_tls_context(easy) { _, tls, context in
                guard let tls = unsafe tls, let context = unsafe context else { return CURLE_SSL_CONNECT_ERROR }
                let handle = unsafe Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
                return unsafe handle.prepareTLS(tls) ? CURLE_OK : CURLE_SSL_CONNECT_ERROR
            }
        }
        // The table outlives every connection: the loop is never freed.
        let table = unsafe Unmanaged.passUnretained(sockets).toOpaque()
        unsafe tern_easy_set_pointer(easy, CURLOPT_OPENSOCKETDATA, table)
        unsafe tern_easy_set_open_socket(easy) { table, _, address in
            guard let table = unsafe table, let address = unsafe address else { return CURL_SOCKET_BAD }
            let descriptor = unsafe tern_open_socket(address)
            unsafe Unmanaged<SocketTable>.fromOpaque(table)._withUnsafeGuaranteedRef { table in
                if descriptor >= 0 {
                    table.opened(descriptor, isUnix: unsafe address.pointee.family == AF_UNIX)
                } else {
                    table.openError = errno
                }
            }
            return descriptor
        }
        unsafe tern_easy_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, table)
        unsafe tern_easy_set_close_socket(easy) { table, descriptor in
            guard let table = unsafe table else { return 1 }
            return unsafe Unmanaged<SocketTable>.fromOpaque(table).takeUnretainedValue().close(descriptor)
        }
    }

    private func setNetwork(_ settings: PoolSettings) {
        if let endpoint = settings.localEndpoint { unsafe tern_easy_set_string(easy, CURLOPT_INTERFACE, endpoint) }
        if settings.hostOverrides.isEmpty { return }
        if unsafe hostList == nil {
            for line in settings.hostOverrides { unsafe hostList = curl_slist_append(hostList, line) ?? hostList }
        }
        // The list is not copied: it lives as long as the handle.
        unsafe tern_easy_set_list(easy, CURLOPT_RESOLVE, hostList)
    }

    /// Runs `body` with the attempt under way; returns nil without one. Nothing is retained: libcurl only calls back
    /// for handles on the wire, and while libcurl runs, the engine takes none of them off the wire and releases no
    /// attempt.
    @inline(__always)
    private static func with<Result>(
        _ context: UnsafeMutableRawPointer?, _ body: (CurlTransfer) -> Result
    ) -> Result? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<CurlHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { handle in
            unsafe handle.current?._withUnsafeGuaranteedRef(body)
        }
    }

    private func prepareTLS(_ context: UnsafeMutableRawPointer) -> Bool {
        guard let trust, let transfer else { return false }
        return unsafe trust.prepare(context, for: transfer)
    }

    // MARK: For each attempt

    /// Configures the handle. Returns false when libcurl refuses an option without which the request would go to
    /// another place than intended.
    func configure(_ transfer: Transfer, isFresh: Bool) -> Bool {
        unsafe errorText.pointee = 0
        let custom = setMethod(transfer)
        if left.customMethod != custom {
            left.customMethod = custom
            unsafe tern_easy_set_string(easy, CURLOPT_CUSTOMREQUEST, custom)
        }
        // A Unix socket replaces every host and every proxy.
        let proxy = transfer.request.unixSocketPath == nil ? proxies.url(for: transfer.request.target) : nil
        if left.proxy != proxy {
            guard unsafe tern_easy_set_string(easy, CURLOPT_PROXY, proxy ?? "") == CURLE_OK else { return false }
            left.proxy = proxy
        }
        setTarget(transfer.request.target)
        if left.unixSocketPath != transfer.request.unixSocketPath {
            let path = transfer.request.unixSocketPath
            guard unsafe tern_easy_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, path) == CURLE_OK else { return false }
            left.unixSocketPath = path
        }
        if left.isFresh != isFresh {
            left.isFresh = isFresh
            set(CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0)
        }
        if left.forbidsReuse {
            left.forbidsReuse = false
            set(CURLOPT_FORBID_REUSE, 0)
        }
        // A request to a host whose connection is being opened waits for the connection, which may carry both. Only
        // over TLS: with plain HTTP, libcurl learns only from the first response, which may never arrive, that the
        // connection carries one request at a time.
        let waitsForALPN = allowsHTTP2 && transfer.request.target.isSecure
        if left.waitsForALPN != waitsForALPN {
            left.waitsForALPN = waitsForALPN
            set(CURLOPT_PIPEWAIT, left.waitsForALPN ? 1 : 0)
        }
        if trust != nil, transfer.request.target.isSecure { setTrust(transfer.request.target.host) }
        // libcurl gets the limit, too, because it divides the time among a host's addresses.
        let limit = Int(min((transfer.request.timeouts.connect?.wholeNanoseconds ?? 0) / 1_000_000, 86_400_000))
        if left.connectMilliseconds != limit {
            left.connectMilliseconds = limit
            set(CURLOPT_CONNECTTIMEOUT_MS, limit)
        }
        setHeaders(transfer, isForwarded: proxy != nil && proxies.forwards(transfer.request.target))
        return true
    }

    /// Sets the URL. libcurl would parse each URL, write it again, and parse the result, which takes a tenth of its
    /// time for a small request. Tern therefore has the part before the path parsed once, and passes the rest as it is
    /// sent.
    private func setTarget(_ target: Target) {
        let text = target.authority.root
        // A proxy that is not a tunnel gets the whole URL.
        let isWhole = left.proxy != nil && !target.isSecure
        if isWhole || root?.text != text {
            root = isWhole ? nil : CurlRoot(text)
            let url = unsafe root.map { unsafe UnsafeMutableRawPointer($0.url) }
            unsafe tern_easy_set_pointer(easy, CURLOPT_CURLU, url)
        }
        // A string that is passed as it is becomes an array first.
        unsafe target.string.withCString { string in
            let isSplit = root != nil
            if !isSplit { unsafe tern_easy_set_string(easy, CURLOPT_URL, string) }
            let tail = unsafe isSplit ? string + text.utf8.count : nil
            unsafe tern_easy_set_string(easy, CURLOPT_REQUEST_TARGET, tail)
        }
    }

    private func setTrust(_ host: String) {
        // Without a policy, there is no connection, because the transport has refused the request.
        guard let policy = trust?.policies.policy(for: host) else { return }
        if left.trust != policy {
            left.trust = policy
            apply(policy)
        }
    }

    /// The maximum number of bytes of a body that libcurl gets whole and sends with the head.
    private static let wholeBodySize = 64 << 10

    /// Returns whether libcurl has the body in memory, without a callback of Tern.
    static func isWhole(_ source: WireRequest.Source) -> Bool {
        switch source {
        case .none: true
        case .bytes(let data): data.count <= wholeBodySize
        case .pipe: false
        }
    }

    /// Returns the method's name if libcurl would send another one.
    private func setMethod(_ transfer: Transfer) -> String? {
        let method = transfer.request.method
        left.isPost = method == .post || method == .put || method == .patch
        switch transfer.request.source {
        case .none where method == .head:
            set(CURLOPT_NOBODY, 1)
            return nil
        case .none where left.isPost:
            return setWhole(Data(), method)
        case .none:
            set(CURLOPT_HTTPGET, 1)
            return method == .get ? nil : method.rawValue
        case .bytes(let data) where data.count <= Self.wholeBodySize:
            return setWhole(data, method)
        case .bytes(let data):
            return setPulled(Int64(data.count), method)
        case .pipe(_, let length):
            return setPulled(length ?? -1, method)
        }
    }

    private func setWhole(_ data: Data, _ method: Request.Method) -> String? {
        set(CURLOPT_POST, 1)
        unsafe tern_easy_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, Int64(data.count))
        unsafe data.withUnsafeBytes { bytes in
            // libcurl copies: the pointer need not outlive the call.
            let start = unsafe bytes.baseAddress.map { unsafe UnsafeMutableRawPointer(mutating: $0) }
            if let start = unsafe start {
                _ = unsafe tern_easy_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, start)
            } else {
                _ = unsafe tern_easy_set_string(easy, CURLOPT_COPYPOSTFIELDS, "")
            }
        }
        return method == .post ? nil : method.rawValue
    }

    private func setPulled(_ length: Int64, _ method: Request.Method) -> String? {
        set(CURLOPT_UPLOAD, 1)
        unsafe tern_easy_set_offset(easy, CURLOPT_INFILESIZE_LARGE, length)
        return method == .put ? nil : method.rawValue
    }

    /// Sets the header fields. The list contains only the fields that libcurl does not write by itself, because libcurl
    /// searches the whole list for each field of its own.
    private func setHeaders(_ transfer: Transfer, isForwarded: Bool) {
        let hasBody = if case .none = transfer.request.source { left.isPost } else { true }
        // CURLOPT_ACCEPT_ENCODING is never set: libcurl decompresses nothing.
        let codings = transfer.request.decompresses ? ContentDecoder.acceptEncoding : nil
        // A list with a raw Cookie field is used for one request only.
        let headers = transfer.request.rawCookie == nil ? transfer.request.headers : nil
        let source = ListSource(headers: headers, hasBody: hasBody, codings: codings, isForwarded: isForwarded)
        if source.isSame(as: left.list) { return }
        left.list = source
        var list: UnsafeMutablePointer<curl_slist>?
        for field in transfer.request.headers {
            // Credentials for a proxy are never sent to a server, nor to a server behind a tunnel.
            if !isForwarded, Headers.namesMatch(field.name, "Proxy-Authorization") { continue }
            // A field without a value is written with a semicolon; "Name:" would remove it.
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            unsafe list = curl_slist_append(list, line) ?? list
        }
        if let cookies = transfer.request.rawCookie {
            let line = Array("Cookie: ".utf8) + cookies + [0]
            unsafe list = line.withUnsafeBytes { buffer in
                unsafe curl_slist_append(list, buffer.bindMemory(to: CChar.self).baseAddress) ?? list
            }
        }
        if hasBody {
            if !transfer.request.headers.contains("Expect") { unsafe list = curl_slist_append(list, "Expect:") ?? list }
            // libcurl would declare the body a form.
            if !transfer.request.headers.contains("Content-Type") {
                unsafe list = curl_slist_append(list, "Content-Type:") ?? list
            }
        }
        if let codings, !transfer.request.headers.contains("Accept-Encoding") {
            // A field in the list is formatted once. libcurl would format the field of its own option twice.
            unsafe list = curl_slist_append(list, "Accept-Encoding: " + codings) ?? list
        }
        unsafe tern_easy_set_list(easy, CURLOPT_HTTPHEADER, list)
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = list
    }

    // MARK: The connection

    /// Returns whether the next response on the connection can only belong to the next request: the connection is new,
    /// carries HTTP/2, whose frames name their request, or has no unread bytes.
    func isConnectionClean(_ request: WireRequest, localPort: Int32) -> Bool {
        if number(CURLINFO_NUM_CONNECTS) > 0 { return true }
        if hasReadableTLS(request), let tls = unsafe tern_easy_tls(easy) {
            if allowsHTTP2, unsafe tern_tls_is_http2(tls) != 0 { return true }
            if unsafe tern_tls_has_input(tls) != 0 { return false }
        }
        return sockets.isSilent(localPort: request.unixSocketPath == nil ? localPort : nil)
    }

    /// Returns whether the connection of the attempt is known to carry HTTP/1. HTTP/2 needs TLS and its consent (ALPN);
    /// with a TLS library other than OpenSSL, the result of ALPN is not known.
    func isHTTP1(_ request: WireRequest) -> Bool {
        guard allowsHTTP2, request.target.isSecure else { return true }
        guard hasReadableTLS(request), let tls = unsafe tern_easy_tls(easy) else { return false }
        return unsafe tern_tls_is_http2(tls) == 0
    }

    private func hasReadableTLS(_ request: WireRequest) -> Bool {
        (request.target.isSecure || left.proxy != nil) && TLSBackend.current.isOpenSSL
    }

    /// Makes libcurl close the connection when the response ends. libcurl reads the option at that time.
    func closeAfterResponse() {
        left.forbidsReuse = true
        set(CURLOPT_FORBID_REUSE, 1)
    }

    // MARK: Facts

    func number(_ info: CURLINFO) -> Int { unsafe tern_easy_long(easy, info) }
    func offset(_ info: CURLINFO) -> Int64 { unsafe tern_easy_offset(easy, info) }
    func text(_ info: CURLINFO) -> String? {
        guard let text = unsafe tern_easy_string(easy, info) else { return nil }
        return unsafe String(cString: text)
    }

    /// libcurl's text about its failure; empty if there is none.
    var failureText: String { unsafe String(cString: errorText) }

    /// Pauses directions of the transfer or continues them. The result is not CURLE_OK if delivering held-back bytes
    /// has ended the attempt. libcurl does not report this in any other way.
    func pause(_ bits: Int32) -> CURLcode { unsafe curl_easy_pause(easy, bits) }
}

extension SocketTable {
    fileprivate func close(_ descriptor: Int32) -> Int32 {
        closed(descriptor)
        return tern_close(descriptor)
    }
}
#endif
