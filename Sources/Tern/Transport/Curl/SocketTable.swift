#if os(Linux)
import CTernCurl
import Glibc

/// Which descriptor belongs to which multi handle, and what epoll knows of it.
///
/// Lazy: `CURL_POLL_REMOVE` for a connection changes nothing at epoll, since the next request on it asks for the same
/// again. A descriptor that fires while nobody wants it is deregistered then, and one that closes leaves by itself.
/// Confined to the loop's thread.
final class SocketTable {
    private struct Entry {
        /// What epoll reports, 0 when not registered.
        var registered: UInt32 = 0
        /// What libcurl wants.
        var wanted: UInt32 = 0
        /// Kept until the connection closes, or `forget`: a weak reference costs twenty times as much, four times a request.
        var multi: CurlMulti?
        /// Opened by us: its close is seen. The resolver's own descriptors close unseen, and a later one may get the same
        /// number.
        var isLazy = false
    }

    private let epoll: Int32
    private var entries: [Entry] = []
    /// The local port of each descriptor that libcurl opened through Tern, once it is known; `unknown` before, and
    /// `foreign` for all other descriptors.
    private var ports: [Int32] = []
    /// The error number of the last attempt to open a socket; 0 if it succeeded. libcurl does not report this number.
    var openError: Int32 = 0
    private static let unknown: Int32 = 0
    private static let foreign: Int32 = -1
    private static let unix: Int32 = -2

    init(epoll: Int32) { self.epoll = epoll }

    private func ensure(_ descriptor: Int) {
        while entries.count <= descriptor {
            entries.append(Entry())
            ports.append(Self.foreign)
        }
    }

    func opened(_ descriptor: Int32, isUnix: Bool) {
        openError = 0
        ensure(Int(descriptor))
        entries[Int(descriptor)] = Entry(isLazy: true)
        ports[Int(descriptor)] = isUnix ? Self.unix : Self.unknown
    }

    func closed(_ descriptor: Int32) {
        guard entries.indices.contains(Int(descriptor)) else { return }
        entries[Int(descriptor)] = Entry()
        ports[Int(descriptor)] = Self.foreign
    }

    // MARK: Idle connections

    /// Returns whether an idle connection has nothing to read, neither a byte nor the end of the stream.
    ///
    /// libcurl identifies its chosen connection only by the local port; nil stands for a Unix socket, which has none.
    /// If several sockets match, all of them must have nothing to read. If no socket matches, the result is false.
    func isSilent(localPort: Int32?) -> Bool {
        let port = localPort ?? Self.unix
        var isFound = false
        for (index, known) in ports.enumerated() where known == port {
            isFound = true
            if tern_has_input(Int32(index)) != 0 { return false }
        }
        if isFound || localPort == nil { return isFound }
        // The first time that this connection is used again.
        for index in ports.indices where ports[index] == Self.unknown {
            ports[index] = tern_local_port(Int32(index))
            guard ports[index] == port else { continue }
            isFound = true
            if tern_has_input(Int32(index)) != 0 { return false }
        }
        return isFound
    }

    /// What libcurl wants to hear of a descriptor: a `CURL_POLL_…`.
    func want(_ descriptor: Int32, _ what: Int32, for multi: CurlMulti) {
        let index = Int(descriptor)
        ensure(index)
        if entries[index].multi !== multi { entries[index].multi = multi }
        entries[index].wanted =
            switch what {
            case CURL_POLL_IN: EPOLLIN.rawValue
            case CURL_POLL_OUT: EPOLLOUT.rawValue
            case CURL_POLL_INOUT: EPOLLIN.rawValue | EPOLLOUT.rawValue
            default: 0
            }
        let (wanted, registered) = (entries[index].wanted, entries[index].registered)
        if wanted == 0, entries[index].isLazy { return }
        // A registration for reading may stay; one for writing fires all the time.
        if registered == wanted || registered == wanted | EPOLLIN.rawValue { return }
        register(index, wanted)
    }

    /// The multi handle goes away, and what is open is closed with it.
    func forget(_ multi: CurlMulti) {
        for index in entries.indices where entries[index].multi === multi {
            entries[index].multi = nil
            entries[index].wanted = 0
        }
    }

    private func register(_ index: Int, _ events: UInt32) {
        let operation =
            events == 0 ? EPOLL_CTL_DEL : entries[index].registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
        var result = tern_epoll_control(epoll, operation, Int32(index), events)
        // A descriptor that closed unseen took its registration along.
        if result == ENOENT, operation == EPOLL_CTL_MOD {
            result = tern_epoll_control(epoll, EPOLL_CTL_ADD, Int32(index), events)
        } else if result == EEXIST {
            result = tern_epoll_control(epoll, EPOLL_CTL_MOD, Int32(index), events)
        }
        entries[index].registered = result == 0 ? events : 0
    }

    /// What epoll reported, for the multi handle that wants it: nil when nobody does.
    func fired(_ descriptor: Int32, _ events: UInt32) -> (multi: CurlMulti, mask: Int32)? {
        let index = Int(descriptor)
        guard entries.indices.contains(index) else { return nil }
        let wanted = entries[index].wanted
        let ended = EPOLLERR.rawValue | EPOLLHUP.rawValue
        guard let multi = entries[index].multi, wanted != 0, events & (wanted | ended) != 0 else {
            register(index, entries[index].multi == nil ? 0 : wanted)
            return nil
        }
        var mask: Int32 = 0
        if events & EPOLLIN.rawValue != 0 { mask |= CURL_CSELECT_IN }
        if events & EPOLLOUT.rawValue != 0 { mask |= CURL_CSELECT_OUT }
        // An error shows itself at the next read or write: libcurl tells it better than epoll.
        if events & ended != 0 { mask |= wanted & EPOLLOUT.rawValue != 0 ? CURL_CSELECT_OUT : CURL_CSELECT_IN }
        return (multi, mask)
    }
}
#endif
