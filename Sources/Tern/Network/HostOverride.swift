#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The addresses that are used for a host in place of what its name resolves to.
enum HostOverride {
    /// `host:port:address,address`, as libcurl takes it; a host without a port stands for the two of HTTP.
    static func lines(_ hosts: [String: [String]]) -> [String] {
        hosts.sorted { $0.key < $1.key }.flatMap { host, addresses in
            let list = addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
            let (name, port) = split(host)
            return (port.map { [$0] } ?? ["80", "443"]).map { "\(name):\($0):\(list)" }
        }
    }

    static func problem(_ host: String, _ addresses: [String]) -> String? {
        let (name, port) = split(host)
        let isName = !name.isEmpty && name.utf8.allSatisfy { ByteSet.unreserved.contains($0) }
        guard isName, port.map({ UInt16($0) != nil }) ?? true else {
            return "\"\(host.printable(limit: 80))\" is no host, or host and port, to give addresses for"
        }
        if addresses.isEmpty { return "there is no address for the host \(name)" }
        guard let wrong = addresses.first(where: { !IPAddress.isValid($0) }) else { return nil }
        return "\"\(wrong.printable(limit: 80))\", given for the host \(name), is no IP address"
    }

    private static func split(_ host: String) -> (name: String, port: String?) {
        guard let colon = host.lastIndex(of: ":") else { return (host, nil) }
        return (String(host[..<colon]), String(host[host.index(after: colon)...]))
    }
}

/// Addresses as text.
enum IPAddress {
    /// Whether the text is an IPv4 or IPv6 address, the latter without brackets.
    static func isValid(_ text: String) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 16)
        return unsafe bytes.withUnsafeMutableBytes { bytes in
            guard let place = bytes.baseAddress else { return false }
            return unsafe inet_pton(AF_INET, text, place) == 1 || inet_pton(AF_INET6, text, place) == 1
        }
    }
}
