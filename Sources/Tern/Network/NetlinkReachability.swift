#if os(Linux)
import Dispatch
import Glibc
import TernConcurrency

/// Reads interfaces and default routes from the kernel, and reads them again after every change message. The content of
/// a message is not used, because messages are lost when many arrive; a new listing is always complete.
struct NetlinkReachability: ReachabilitySource {
    /// The multicast groups of links, and of the addresses and routes of IPv4 and IPv6: RTMGRP_LINK, _IPV4_IFADDR,
    /// _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    var currentStatus: (@Sendable () -> Reachability.Status)? { { Self.readStatus() ?? .unknown } }

    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        // The watch opens before the first listing, so that no change is missed between the two.
        guard let descriptor = NetlinkSocket.open(groups: Self.groups) else { return nil }
        onChange(Self.readStatus() ?? .unknown)
        let queue = DispatchQueue(label: "tern.reachability")
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            NetlinkSocket.drain(descriptor)
            onChange(Self.readStatus() ?? .unknown)
        }
        source.setCancelHandler { Glibc.close(descriptor) }
        source.activate()
        return NetlinkWatch(source)
    }

    /// Asks the kernel for a route by connecting a UDP socket, which sends nothing.
    func hasRoute(to address: String) -> Bool? {
        let text = address.hasPrefix("[") ? String(address.dropFirst().dropLast()) : address
        var (v4, v6) = (sockaddr_in(), sockaddr_in6())
        // The port is not used, but must be one.
        if unsafe inet_pton(AF_INET, text, &v4.sin_addr) == 1 {
            (v4.sin_family, v4.sin_port) = (sa_family_t(AF_INET), UInt16(9).bigEndian)
            return unsafe withUnsafePointer(to: &v4) { place in
                unsafe Self.hasRoute(AF_INET, to: UnsafeRawPointer(place), size: MemoryLayout<sockaddr_in>.size)
            }
        }
        guard unsafe inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 else { return nil }
        (v6.sin6_family, v6.sin6_port) = (sa_family_t(AF_INET6), UInt16(9).bigEndian)
        return unsafe withUnsafePointer(to: &v6) { place in
            unsafe Self.hasRoute(AF_INET6, to: UnsafeRawPointer(place), size: MemoryLayout<sockaddr_in6>.size)
        }
    }

    private static func hasRoute(_ family: Int32, to address: UnsafeRawPointer, size: Int) -> Bool? {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return errno == EAFNOSUPPORT ? false : nil }
        defer { close(descriptor) }
        if unsafe connect(descriptor, address.assumingMemoryBound(to: sockaddr.self), socklen_t(size)) == 0 {
            return true
        }
        return [ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, ENETDOWN].contains(errno) ? false : nil
    }

    /// Returns the current status; nil if the kernel does not answer.
    static func readStatus() -> Reachability.Status? {
        guard let descriptor = NetlinkSocket.open(groups: 0) else { return nil }
        defer { close(descriptor) }
        var table = NetlinkTable()
        let kinds: [NetlinkTable.DumpKind] = [
            .links, .routes(family: UInt8(AF_INET)), .routes(family: UInt8(AF_INET6)),
        ]
        for (index, kind) in kinds.enumerated() {
            table.beginDump()
            guard NetlinkSocket.send(NetlinkTable.dumpRequest(kind, sequence: UInt32(index + 1)), descriptor) else {
                return nil
            }
            while !table.isDone {
                guard let datagram = NetlinkSocket.receive(descriptor), !datagram.isEmpty else { return nil }
                table.take(datagram)
            }
        }
        return table.hasFailed ? nil : table.status { medium(of: $0) }
    }

    /// Returns the medium of an interface, from the files that the kernel provides about it.
    static func medium(of interface: String) -> Reachability.Medium {
        if unsafe access("/sys/class/net/\(interface)/wireless", F_OK) == 0 { return .wifi }
        return medium(named: interface)
    }

    static func medium(named interface: String) -> Reachability.Medium {
        if interface.hasPrefix("wl") { return .wifi }
        if ["ww", "rmnet", "ppp", "usb"].contains(where: interface.hasPrefix) { return .cellular }
        return ["en", "eth", "bond", "br", "end"].contains(where: interface.hasPrefix) ? .wired : .other
    }
}

/// Receives the kernel's messages until it is closed.
private final class NetlinkWatch: ReachabilityWatch {
    private let source: Lock<any DispatchSourceRead>

    init(_ source: sending any DispatchSourceRead) { self.source = Lock(source) }

    /// Cancels the source. The descriptor is closed later, on the source's own queue.
    func close() { source.withLock { $0.cancel() } }
}

/// Opens and reads sockets to the kernel's routing tables.
enum NetlinkSocket {
    private static let bufferSize = 64 << 10

    static func open(groups: UInt32) -> Int32? {
        let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        // sockaddr_nl: family (2), padding (2), pid (4), groups (4).
        var address = [UInt8](repeating: 0, count: 12)
        unsafe address.withUnsafeMutableBytes { bytes in
            unsafe bytes.storeBytes(of: UInt16(AF_NETLINK), as: UInt16.self)
            unsafe bytes.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self)
        }
        let isBound = unsafe address.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe bind(descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) == 0
        }
        if isBound { return descriptor }
        close(descriptor)
        return nil
    }

    static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, 0) } == bytes.count
    }

    static func receive(_ descriptor: Int32, flags: Int32 = 0) -> ArraySlice<UInt8>? {
        var buffer = [UInt8](repeating: 0, count: bufferSize)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes {
                unsafe recv(descriptor, $0.baseAddress, $0.count, flags)
            }
            if count >= 0 { return buffer[..<count] }
            guard errno == EINTR else { return nil }
        }
    }

    /// Discards all messages that have arrived. ENOBUFS means that messages were lost, which also counts as a change.
    static func drain(_ descriptor: Int32) {
        while receive(descriptor, flags: Int32(MSG_DONTWAIT)) != nil || errno == ENOBUFS {}
    }
}
#endif

/// Parses the kernel's routing messages (rtnetlink(7)): the interfaces that are up, and the default routes. It takes
/// whole datagrams.
struct NetlinkTable {
    private struct Link {
        var name: String
        /// Whether the interface is enabled and has a carrier.
        var isRunning: Bool
        var isLoopback: Bool
    }

    private struct Route {
        var link: Int32
        var metric: UInt32
    }

    private var links: [Int32: Link] = [:]
    private var defaults: [Route] = []
    /// Whether the kernel completed a dump.
    private(set) var isDone = false
    /// Whether the kernel refused a request.
    private(set) var hasFailed = false

    // The numbers of linux/netlink.h and linux/rtnetlink.h, which Swift cannot import.
    private static let (done, error, newLink, newRoute): (UInt16, UInt16, UInt16, UInt16) = (3, 2, 16, 24)
    private static let (up, loopback, running): (UInt32, UInt32, UInt32) = (0x1, 0x8, 0x40)
    private static let interfaceName: UInt16 = 3
    private static let (outInterface, priority, multipath, table): (UInt16, UInt16, UInt16, UInt16) = (4, 6, 9, 15)
    private static let (unicast, mainTable): (UInt8, UInt32) = (1, 254)

    /// Returns a request for all interfaces, or for all routes of one family.
    static func dumpRequest(_ kind: DumpKind, sequence: UInt32) -> [UInt8] {
        let (type, family): (UInt16, UInt8) =
            switch kind {
            case .links: (18, 0)
            case .routes(let family): (26, family)
            }
        // nlmsghdr, then an rtgenmsg padded to the longest form that the kernel uses. NLM_F_REQUEST | NLM_F_DUMP.
        var bytes: [UInt8] = []
        append(UInt32(16 + 16), to: &bytes)
        append(type, to: &bytes)
        append(UInt16(0x1 | 0x300), to: &bytes)
        append(sequence, to: &bytes)
        append(UInt32(0), to: &bytes)
        return bytes + [family] + [UInt8](repeating: 0, count: 15)
    }

    enum DumpKind {
        case links
        case routes(family: UInt8)
    }

    private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        // The kernel uses the machine's byte order.
        unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Parses one datagram: several messages, each aligned to four bytes.
    mutating func take(_ datagram: ArraySlice<UInt8>) {
        var rest = NetlinkBytes(datagram)
        while let length = rest.number(UInt32.self, at: 0), length >= 16, Int(length) <= rest.count {
            let message = rest.prefix(Int(length))
            take(message.number(UInt16.self, at: 4) ?? 0, message.dropFirst(16))
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
    }

    private mutating func take(_ type: UInt16, _ body: NetlinkBytes) {
        switch type {
        case Self.done: isDone = true
        case Self.error: (isDone, hasFailed) = (true, true)
        case Self.newLink: takeLink(body)
        case Self.newRoute: takeRoute(body)
        default: break
        }
    }

    /// Parses ifinfomsg: family, padding, type (2), index (4), flags (4), change (4); then attributes.
    private mutating func takeLink(_ body: NetlinkBytes) {
        guard let index = body.number(Int32.self, at: 4), let flags = body.number(UInt32.self, at: 8) else { return }
        var name = ""
        for (type, value) in body.dropFirst(16).attributes where type == Self.interfaceName { name = value.text }
        let isRunning = flags & Self.up != 0 && flags & Self.running != 0
        links[index] = Link(name: name, isRunning: isRunning, isLoopback: flags & Self.loopback != 0)
    }

    /// Parses rtmsg: family, destination length, source length, tos, table, protocol, scope, type, flags (4); then
    /// attributes.
    private mutating func takeRoute(_ body: NetlinkBytes) {
        guard let length = body.number(UInt8.self, at: 1), length == 0, body.number(UInt8.self, at: 7) == Self.unicast
        else { return }
        var inTable = UInt32(body.number(UInt8.self, at: 4) ?? 0)
        var metric: UInt32 = 0
        var interfaces: [Int32] = []
        for (type, value) in body.dropFirst(12).attributes {
            switch type {
            case Self.table: inTable = value.number(UInt32.self, at: 0) ?? inTable
            case Self.priority: metric = value.number(UInt32.self, at: 0) ?? 0
            case Self.outInterface: interfaces += value.number(Int32.self, at: 0).map { [$0] } ?? []
            case Self.multipath: interfaces += value.nextHops
            default: break
            }
        }
        guard inTable == Self.mainTable else { return }
        defaults += interfaces.map { Route(link: $0, metric: metric) }
    }

    /// Returns the status that the routes give. The default route with the smallest metric decides the medium.
    func status(_ medium: (_ interface: String) -> Reachability.Medium) -> Reachability.Status {
        let usable = defaults.compactMap { route -> (metric: UInt32, name: String)? in
            guard let link = links[route.link], link.isRunning, !link.isLoopback else { return nil }
            return (route.metric, link.name)
        }
        guard let best = usable.min(by: { $0.metric < $1.metric }) else { return .unreachable }
        return .reachable(medium(best.name))
    }

    /// Prepares for another dump.
    mutating func beginDump() { isDone = false }
}

/// A part of a netlink message, read with bounds checks.
struct NetlinkBytes {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var count: Int { bytes.count }

    func prefix(_ count: Int) -> NetlinkBytes { NetlinkBytes(bytes.prefix(count)) }
    func dropFirst(_ count: Int) -> NetlinkBytes { NetlinkBytes(bytes.dropFirst(count)) }

    /// Returns a number in the machine's byte order; nil beyond the end.
    func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= 0, offset + size <= bytes.count else { return nil }
        var number = Number.zero
        for (index, byte) in bytes.dropFirst(offset).prefix(size).enumerated() {
            #if _endian(little)
            number |= Number(truncatingIfNeeded: byte) << Number(index * 8)
            #else
            number |= Number(truncatingIfNeeded: byte) << Number((size - 1 - index) * 8)
            #endif
        }
        return number
    }

    /// The text up to the first NUL.
    var text: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }

    /// The attributes (rtattr): length (2), type (2), value; aligned to four bytes. The upper two bits of the type are
    /// flags.
    var attributes: [(type: UInt16, value: NetlinkBytes)] {
        var result: [(UInt16, NetlinkBytes)] = []
        var rest = self
        while let length = rest.number(UInt16.self, at: 0), length >= 4, Int(length) <= rest.count {
            let type = (rest.number(UInt16.self, at: 2) ?? 0) & 0x3FFF
            result.append((type, rest.prefix(Int(length)).dropFirst(4)))
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return result
    }

    /// The next hops (rtnexthop): length (2), flags, hops, interface (4); aligned to four bytes.
    var nextHops: [Int32] {
        var result: [Int32] = []
        var rest = self
        while let length = rest.number(UInt16.self, at: 0), length >= 8, Int(length) <= rest.count {
            if let interface = rest.number(Int32.self, at: 4) { result.append(interface) }
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return result
    }
}
