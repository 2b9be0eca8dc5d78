#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The addresses to use for a host in place of its resolved addresses.
enum HostOverride {
    /// Returns the addresses by the canonical `host`, which stands for all of its ports, or by `host:port`.
    static func addresses(_ hosts: [String: [String]]) -> [String: [String]] {
        var result: [String: [String]] = [:]
        for (host, addresses) in hosts {
            // Invalid hosts are a `problem`, which prevents every request.
            if let key = key(host) { result[key] = addresses }
        }
        return result
    }

    /// Returns what belongs to a port of a host: the entry with the port, else that of the host; nil without either.
    static func entry<Value>(of host: String, port: UInt16, in entries: [String: Value]) -> Value? {
        entries.isEmpty ? nil : entries["\(host):\(port)"] ?? entries[host]
    }

    static func problem(_ hosts: [String: [String]]) -> String? {
        var seen: Set<String> = []
        for (host, addresses) in hosts {
            let written = host.printable(limit: 80)
            guard let key = key(host) else {
                return "\"\(written)\" is not a valid host or host:port (hostAddresses)"
            }
            if addresses.isEmpty { return "there is no address for the host \(written)" }
            if let wrong = addresses.first(where: { address($0) == nil }) {
                return "\"\(wrong.printable(limit: 80))\" is not an IP address (hostAddresses for \(written))"
            }
            guard seen.insert(key).inserted else { return "addresses for \(key) are given twice" }
        }
        return nil
    }

    /// Returns the numeric address of a text, and the port that it names, if any; nil for any other text.
    static func address(_ text: String) -> (address: String, port: UInt16?)? {
        if IPAddress.isValid(text) { return (text, nil) }
        guard let colon = text.lastIndex(of: ":"), let port = port(text[text.index(after: colon)...]) else {
            return nil
        }
        var address = text[..<colon]
        if address.first == "[", address.last == "]" {
            address = address.dropFirst().dropLast()
            guard address.contains(":") else { return nil }
        } else if address.contains(":") {
            return nil
        }
        return IPAddress.isValid(String(address)) ? (String(address), port) : nil
    }

    private static func port(_ digits: Substring) -> UInt16? {
        guard digits.utf8.allSatisfy(\.isASCIIDigit), let port = UInt16(digits), port > 0 else { return nil }
        return port
    }

    /// Returns the canonical host, with the port if the key names one; nil for a key that names no host. An IPv6
    /// address needs no look-up.
    private static func key(_ host: String) -> String? {
        let colon = host.lastIndex(of: ":")
        let name = colon.map { String(host[..<$0]) } ?? host
        let port = colon.map { host[host.index(after: $0)...] }
        // The reason of the error is not needed, because the message quotes the key.
        guard let canonical = try? CanonicalHost(name), !canonical.text.contains(":") else { return nil }
        guard let port else { return canonical.text }
        guard port.utf8.allSatisfy(\.isASCIIDigit), let number = UInt16(port) else { return nil }
        return "\(canonical):\(number)"
    }
}

/// Addresses as text.
enum IPAddress {
    /// Returns whether the text is an IPv4 or IPv6 address, the latter without brackets.
    static func isValid(_ text: String) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 16)
        return unsafe bytes.withUnsafeMutableBytes { bytes in
            guard let place = bytes.baseAddress else { return false }
            return unsafe inet_pton(AF_INET, text, place) == 1 || inet_pton(AF_INET6, text, place) == 1
        }
    }
}
