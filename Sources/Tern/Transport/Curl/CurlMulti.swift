#if os(Linux)
import CTernCurl

/// One multi handle of libcurl: connections, and the transfers on them. Confined to the loop's thread.
@safe final class CurlMulti {
    private let multi: UnsafeMutableRawPointer
    private let sockets: SocketTable
    private let turn: LoopTurn
    /// When libcurl wants to be called though no socket fired.
    private(set) var deadline: UInt64 = .max
    private(set) var mayHaveFinished = false

    /// `isExclusive`: a connection carries one transfer at a time, over HTTP/2 too.
    init?(_ settings: PoolSettings, isExclusive: Bool, sockets: SocketTable, turn: LoopTurn) {
        guard let multi = unsafe curl_multi_init() else { return nil }
        unsafe self.multi = multi
        self.sockets = sockets
        self.turn = turn
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe tern_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, context)
        unsafe tern_multi_set_socket(multi) { _, socket, what, context, _ in
            guard let context = unsafe context else { return 0 }
            unsafe Unmanaged<CurlMulti>.fromOpaque(context)._withUnsafeGuaranteedRef { multi in
                multi.sockets.want(socket, what, for: multi)
            }
            return 0
        }
        unsafe tern_multi_set_pointer(multi, CURLMOPT_TIMERDATA, context)
        unsafe tern_multi_set_timer(multi) { _, milliseconds, context in
            guard let context = unsafe context else { return 0 }
            unsafe Unmanaged<CurlMulti>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.setTimer(milliseconds) }
            return 0
        }
        unsafe tern_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.maximumConnections)
        if isExclusive { unsafe tern_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING)) }
    }

    deinit {
        // Closing its connections, libcurl would call back into an object that is going away.
        unsafe tern_multi_set_socket(multi, nil)
        unsafe tern_multi_set_timer(multi, nil)
        unsafe curl_multi_cleanup(multi)
    }

    private func setTimer(_ milliseconds: Int) {
        deadline = milliseconds < 0 ? .max : turn.now + UInt64(milliseconds) * 1_000_000
    }

    func add(_ handle: CurlHandle) -> Bool {
        unsafe curl_multi_add_handle(multi, handle.easy) == CURLM_OK
    }

    func remove(_ handle: CurlHandle) {
        unsafe curl_multi_remove_handle(multi, handle.easy)
    }

    func serve(_ socket: Int32, _ mask: Int32) {
        var running: Int32 = 0
        unsafe curl_multi_socket_action(multi, socket, mask, &running)
        mayHaveFinished = true
    }

    func serveTimer() {
        deadline = .max
        var running: Int32 = 0
        unsafe curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
        mayHaveFinished = true
    }

    /// The next transfer that libcurl has done with, and its result.
    func nextFinished() -> (transfer: CurlTransfer, result: CURLcode)? {
        var result = CURLE_OK
        while let easy = unsafe tern_multi_finished(multi, &result) {
            guard let context = unsafe tern_easy_private(easy) else { continue }
            let handle = unsafe Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
            if let transfer = handle.transfer { return (transfer, result) }
        }
        mayHaveFinished = false
        return nil
    }
}
#endif
