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
        weak var multi: CurlMulti?
        /// Opened by us: its close is seen. The resolver's own descriptors close unseen, and a later one may get the same
        /// number.
        var isLazy = false
    }

    private let epoll: Int32
    private var entries: [Entry] = []

    init(epoll: Int32) { self.epoll = epoll }

    private func ensure(_ descriptor: Int) {
        while entries.count <= descriptor { entries.append(Entry()) }
    }

    func opened(_ descriptor: Int32) {
        ensure(Int(descriptor))
        entries[Int(descriptor)] = Entry(isLazy: true)
    }

    func closed(_ descriptor: Int32) {
        guard entries.indices.contains(Int(descriptor)) else { return }
        entries[Int(descriptor)] = Entry()
    }

    /// What libcurl wants to hear of a descriptor: a `CURL_POLL_…`.
    func want(_ descriptor: Int32, _ what: Int32, for multi: CurlMulti) {
        let index = Int(descriptor)
        ensure(index)
        entries[index].multi = multi
        entries[index].wanted =
            switch what {
            case CURL_POLL_IN: EPOLLIN.rawValue
            case CURL_POLL_OUT: EPOLLOUT.rawValue
            case CURL_POLL_INOUT: EPOLLIN.rawValue | EPOLLOUT.rawValue
            default: 0
            }
        let entry = entries[index]
        if entry.wanted == 0, entry.isLazy { return }
        // A registration for reading may stay; one for writing fires all the time.
        if entry.registered == entry.wanted || entry.registered == entry.wanted | EPOLLIN.rawValue { return }
        register(index, entry.wanted)
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
        let entry = entries[index]
        let ended = EPOLLERR.rawValue | EPOLLHUP.rawValue
        if events & (entry.wanted | ended) == 0 || entry.wanted == 0 || entry.multi == nil {
            register(index, entry.multi == nil ? 0 : entry.wanted)
            return nil
        }
        var mask: Int32 = 0
        if events & EPOLLIN.rawValue != 0 { mask |= CURL_CSELECT_IN }
        if events & EPOLLOUT.rawValue != 0 { mask |= CURL_CSELECT_OUT }
        // An error shows itself at the next read or write: libcurl tells it better than epoll.
        if events & ended != 0 { mask |= entry.wanted & EPOLLOUT.rawValue != 0 ? CURL_CSELECT_OUT : CURL_CSELECT_IN }
        return entry.multi.map { ($0, mask) }
    }
}
#endif
