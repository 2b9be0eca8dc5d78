#if os(Linux)
import Dispatch
import Glibc
import TernConcurrency

/// Asks the kernel for interfaces and default routes, and again whenever it says that one has changed. What has changed is
/// not looked at: a message may be lost when many come, a whole new look never is.
struct NetlinkReachability: ReachabilitySource {
    /// Links, and the addresses and routes of IPv4 and IPv6: RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR,
    /// _IPV6_ROUTE.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    var ask: (@Sendable () -> Reachability.Status)? { { Self.look() ?? .unknown } }

    func watch(_ tell: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        // The watch begins before the first look, so that no change falls between the two.
        guard let descriptor = NetlinkSocket.open(groups: Self.groups) else { return nil }
        tell(Self.look() ?? .unknown)
        let queue = DispatchQueue(label: "tern.reachability")
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            NetlinkSocket.drain(descriptor)
            tell(Self.look() ?? .unknown)
        }
        source.setCancelHandler { Glibc.close(descriptor) }
        source.activate()
        return NetlinkWatch(source)
    }

    /// nil where the kernel does not answer.
    static func look() -> Reachability.Status? {
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

    /// By the name that the system gives the interface, and by what it says of it.
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

/// The kernel's messages, until closed.
private final class NetlinkWatch: ReachabilityWatch {
    private let source: Lock<any DispatchSourceRead>

    init(_ source: sending any DispatchSourceRead) { self.source = Lock(source) }

    /// Cancelling only queues: the descriptor is closed on the source's own queue.
    func close() { source.withLock { $0.cancel() } }
}

/// Sockets to the kernel's routing tables.
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

    /// Takes out what has come, unread: that something came is all there is to know. ENOBUFS says that more came than fits.
    static func drain(_ descriptor: Int32) {
        while receive(descriptor, flags: Int32(MSG_DONTWAIT)) != nil || errno == ENOBUFS {}
    }
}
#endif
