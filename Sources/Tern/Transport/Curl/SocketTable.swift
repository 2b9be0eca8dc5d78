#if os(Linux)
import CTernCurl
import Glibc

/// The multi handle that each descriptor belongs to, and the events that are registered with epoll.
///
/// Registrations are lazy: `CURL_POLL_REMOVE` for a connection changes nothing in epoll, because the next request on it
/// asks for the same events again. A descriptor that fires while no handle wants it is deregistered then. A descriptor
/// that closes is removed by the system. Confined to the loop's thread.
final class SocketTable {
    private struct Entry {
        /// The events that epoll reports; 0 if the descriptor is not registered.
        var registered: UInt32 = 0
        /// The events that libcurl wants.
        var wanted: UInt32 = 0
        /// Kept until the connection closes, or until `forget`. A weak reference takes twenty times as long, four times
        /// a request.
        var multi: CurlMulti?
        /// A Boolean value that indicates whether Tern opened the descriptor, and therefore sees it close. The
        /// resolver's own descriptors close unseen, and a later one can get the same number.
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
        // The connection is being reused for the first time.
        for index in ports.indices where ports[index] == Self.unknown {
            ports[index] = tern_local_port(Int32(index))
            guard ports[index] == port else { continue }
            isFound = true
            if tern_has_input(Int32(index)) != 0 { return false }
        }
        return isFound
    }

    /// Registers the events that libcurl wants for a descriptor, a `CURL_POLL_…`.
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
        // A registration for reading may stay. A registration for writing would fire all the time.
        if registered == wanted || registered == wanted | EPOLLIN.rawValue { return }
        register(index, wanted)
    }

    /// Forgets a multi handle that is being freed, which closes its open connections.
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
        // A descriptor that closed unseen has lost its registration.
        if result == ENOENT, operation == EPOLL_CTL_MOD {
            result = tern_epoll_control(epoll, EPOLL_CTL_ADD, Int32(index), events)
        } else if result == EEXIST {
            result = tern_epoll_control(epoll, EPOLL_CTL_MOD, Int32(index), events)
        }
        entries[index].registered = result == 0 ? events : 0
    }

    /// Returns the multi handle that wants the events from epoll, and the events in libcurl's form; nil if no handle
    /// wants them.
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
        // An error appears at the next read or write, where libcurl describes it better than epoll.
        if events & ended != 0 { mask |= wanted & EPOLLOUT.rawValue != 0 ? CURL_CSELECT_OUT : CURL_CSELECT_IN }
        return (multi, mask)
    }
}
#endif
