#if os(Linux)
import TernConcurrency
import CTernCurl
import CTernTLS
import FoundationEssentials
import Glibc

/// One easy handle of libcurl, used for one attempt after another: what never changes is set once, the rest only when it
/// differs from the last attempt. Before libcurl 8.1.0, each attempt uses a new handle. Confined to the loop's thread.
@safe final class CurlHandle {
    /// What the handle is for, by the size of its buffers.
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
        /// The method is one of those that say how long their body is, also when there is none.
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
    /// The attempt under way: callbacks find it here.
    var transfer: CurlTransfer? {
        didSet { unsafe current = transfer.map { unsafe Unmanaged.passUnretained($0) } }
    }
    /// `transfer` for callbacks, which come for each line of a head.
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

    init?(_ size: Size, _ settings: PoolSettings, _ trust: CurlTrust?, _ sockets: SocketTable) {
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
        // No signals, in a process whose threads are not ours.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_NOPROGRESS, 1)
        // Without it, cancelling during a name look-up blocks the loop until the resolver answers.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_HTTP_VERSION, settings.allowsHTTP2 ? Int(CURL_HTTP_VERSION_2TLS) : Int(CURL_HTTP_VERSION_1_1))
        // The default policy's; libcurl's own default is the TLS library's.
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_PATH_AS_IS, 1)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(CURLOPT_MAXAGE_CONN, max(1, settings.idleSeconds))
        set(CURLOPT_BUFFERSIZE, size == .bulk ? 512 << 10 : 64 << 10)
        if size == .bulk { set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10) }
        unsafe tern_easy_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        // An empty string: no proxy, and above all no look at the environment.
        unsafe tern_easy_set_string(easy, CURLOPT_PROXY, "")
        unsafe tern_easy_set_string(easy, CURLOPT_NOPROXY, "")
        // Where the authorities of a proxy lie is copied for each request, without a proxy too.
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
        // A body is never sent twice by libcurl: whether it may be is the session's decision.
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

    /// Runs `body` with the attempt under way; nil without one. Nothing is retained: libcurl calls back for handles alone
    /// that are on the wire, and the engine takes none off it, and lets go of no attempt, while libcurl runs.
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
        let proxy = transfer.order.unixSocketPath == nil ? proxies.url(for: transfer.order.target) : nil
        if left.proxy != proxy {
            guard unsafe tern_easy_set_string(easy, CURLOPT_PROXY, proxy ?? "") == CURLE_OK else { return false }
            left.proxy = proxy
        }
        setTarget(transfer.order.target)
        if left.unixSocketPath != transfer.order.unixSocketPath {
            let path = transfer.order.unixSocketPath
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
        // A request to a host that is being connected to waits for the connection: it may carry both. Over TLS alone: with
        // plain HTTP libcurl knows only after the first response, which may never come, that the connection carries one.
        let waitsForALPN = allowsHTTP2 && transfer.order.target.isSecure
        if left.waitsForALPN != waitsForALPN {
            left.waitsForALPN = waitsForALPN
            set(CURLOPT_PIPEWAIT, left.waitsForALPN ? 1 : 0)
        }
        if trust != nil, transfer.order.target.isSecure { setTrust(transfer.order.target.host) }
        // libcurl is told as well: it divides the time among a host's addresses.
        let limit = Int(min((transfer.order.timeouts.connect?.wholeNanoseconds ?? 0) / 1_000_000, 86_400_000))
        if left.connectMilliseconds != limit {
            left.connectMilliseconds = limit
            set(CURLOPT_CONNECTTIMEOUT_MS, limit)
        }
        setHeaders(transfer, isForwarded: proxy != nil && proxies.forwards(transfer.order.target))
        return true
    }

    /// libcurl would parse each URL, write it anew and take that apart: a tenth of all it does for a small request. What
    /// stands before the path is parsed once, and the rest is given as it is sent.
    private func setTarget(_ target: Target) {
        let text = target.authority.root
        // To a proxy that is no tunnel goes the whole URL.
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
        // Without a policy no connection is made: the transport has refused before.
        guard let policy = trust?.policies.policy(for: host) else { return }
        if left.trust != policy {
            left.trust = policy
            apply(policy)
        }
    }

    /// Bodies up to this size are given to libcurl whole, and go out with the head.
    private static let wholeBodySize = 64 << 10

    /// Whether libcurl has the body in memory, and no callback of ours gives it.
    static func isWhole(_ source: TransferOrder.Source) -> Bool {
        switch source {
        case .none: true
        case .bytes(let data): data.count <= wholeBodySize
        case .pipe: false
        }
    }

    /// Returns the method's name where libcurl's own would be another.
    private func setMethod(_ transfer: Transfer) -> String? {
        let method = transfer.order.method
        left.isPost = method == .post || method == .put || method == .patch
        switch transfer.order.source {
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

    /// The list holds what libcurl does not write by itself, and no more: it looks every line up for each field of its
    /// own.
    private func setHeaders(_ transfer: Transfer, isForwarded: Bool) {
        let hasBody = if case .none = transfer.order.source { left.isPost } else { true }
        // CURLOPT_ACCEPT_ENCODING is never set: libcurl decompresses nothing.
        let codings = transfer.order.decompresses ? ContentDecoder.acceptEncoding : nil
        // A list with a raw Cookie field is used for one request only.
        let headers = transfer.order.rawCookie == nil ? transfer.order.headers : nil
        let source = ListSource(headers: headers, hasBody: hasBody, codings: codings, isForwarded: isForwarded)
        if source.isSame(as: left.list) { return }
        left.list = source
        var list: UnsafeMutablePointer<curl_slist>?
        for field in transfer.order.headers {
            // Credentials for a proxy are never sent to a server, nor to a server behind a tunnel.
            if !isForwarded, Headers.namesMatch(field.name, "Proxy-Authorization") { continue }
            // A field without a value is written with a semicolon; "Name:" would remove it.
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            unsafe list = curl_slist_append(list, line) ?? list
        }
        if let cookies = transfer.order.rawCookie {
            let line = Array("Cookie: ".utf8) + cookies + [0]
            unsafe list = line.withUnsafeBytes { buffer in
                unsafe curl_slist_append(list, buffer.bindMemory(to: CChar.self).baseAddress) ?? list
            }
        }
        if hasBody {
            if !transfer.order.headers.contains("Expect") { unsafe list = curl_slist_append(list, "Expect:") ?? list }
            // libcurl would say that a body is a form.
            if !transfer.order.headers.contains("Content-Type") {
                unsafe list = curl_slist_append(list, "Content-Type:") ?? list
            }
        }
        if let codings, !transfer.order.headers.contains("Accept-Encoding") {
            // In the list it is formatted once; libcurl formats what it makes of its own option twice.
            unsafe list = curl_slist_append(list, "Accept-Encoding: " + codings) ?? list
        }
        unsafe tern_easy_set_list(easy, CURLOPT_HTTPHEADER, list)
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = list
    }

    // MARK: The connection

    /// Returns whether the next response on the connection can only belong to the next request: the connection is new,
    /// carries HTTP/2, whose frames name their request, or has no unread bytes.
    func isConnectionClean(_ order: TransferOrder, localPort: Int32) -> Bool {
        if number(CURLINFO_NUM_CONNECTS) > 0 { return true }
        if hasReadableTLS(order), let tls = unsafe tern_easy_tls(easy) {
            if allowsHTTP2, unsafe tern_tls_is_http2(tls) != 0 { return true }
            if unsafe tern_tls_has_input(tls) != 0 { return false }
        }
        return sockets.isSilent(localPort: order.unixSocketPath == nil ? localPort : nil)
    }

    /// Returns whether the connection of the attempt is known to carry HTTP/1. HTTP/2 needs TLS and its consent (ALPN);
    /// with a TLS library other than OpenSSL, the result of ALPN is not known.
    func isHTTP1(_ order: TransferOrder) -> Bool {
        guard allowsHTTP2, order.target.isSecure else { return true }
        guard hasReadableTLS(order), let tls = unsafe tern_easy_tls(easy) else { return false }
        return unsafe tern_tls_is_http2(tls) == 0
    }

    private func hasReadableTLS(_ order: TransferOrder) -> Bool {
        (order.target.isSecure || left.proxy != nil) && TLSBackend.current.isOpenSSL
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

    /// What libcurl says of its failure; empty when it says nothing.
    var failureText: String { unsafe String(cString: errorText) }

    /// Not CURLE_OK when what was held back has ended the attempt, which libcurl then does not tell otherwise.
    func pause(_ bits: Int32) -> CURLcode { unsafe curl_easy_pause(easy, bits) }
}

extension SocketTable {
    fileprivate func close(_ descriptor: Int32) -> Int32 {
        closed(descriptor)
        return tern_close(descriptor)
    }
}
#endif
