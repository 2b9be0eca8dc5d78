extension LoopbackServer {
    /// The head of a request as received.
    public struct Request: Sendable {
        /// The method as sent, such as `GET`.
        public let method: String

        /// The target as sent, with percent encoding, such as `/items?page=2`.
        public let target: String

        /// The protocol as sent, such as `HTTP/1.1`.
        public let version: String

        /// The header fields in order, including duplicates, without surrounding white space. Invalid UTF-8 is
        /// replaced; `rawHead` has the original bytes.
        public let headers: Fields

        /// All bytes of the head, including the empty line at its end.
        public let rawHead: [UInt8]

        /// The index of the connection, from 0 in the order of acceptance.
        public let connectionIndex: Int

        /// The index of the request on its connection, from 0.
        public let requestIndex: Int

        /// The part of the target before `?`, with percent encoding.
        public var path: String { String(target.prefix { $0 != "?" }) }

        /// The items of the query in order, without percent encoding; an item without `=` has no value.
        public var query: [(name: String, value: String?)] {
            guard let mark = target.firstIndex(of: "?") else { return [] }
            return target[target.index(after: mark)...].split(separator: "&").map { item in
                let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : nil)
            }
        }

        /// Returns the value of the first query item with a name; nil if there is none or it has no value.
        public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

        /// The first value of a header field; the case of the name does not matter: `request["content-type"]`.
        public subscript(name: String) -> String? { headers.first { $0.name.isSameFieldName(as: name) }?.value }

        /// Returns all values of a header field in order, one per line of the head.
        public func values(of name: String) -> [String] {
            headers.filter { $0.name.isSameFieldName(as: name) }.map(\.value)
        }

        /// The length of the body in bytes from `Content-Length`; nil if it is missing or not a number.
        public var contentLength: Int? { self["Content-Length"].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 } }

        /// A Boolean value that indicates whether the body is chunked.
        public var isChunked: Bool { values(of: "Transfer-Encoding").contains { $0.lowercased().hasSuffix("chunked") } }

        /// Whether the connection may carry another request after this one (RFC 9112, section 9.3).
        var keepsAlive: Bool {
            let options = values(of: "Connection").flatMap { $0.lowercased().split(separator: ",") }
                .map { $0.trimmingOuterSpace }
            if options.contains("close") { return false }
            return version != "HTTP/1.0" || options.contains("keep-alive")
        }

        /// Returns nil if the bytes have no request line of three parts.
        init?(rawHead: [UInt8], connectionIndex: Int, requestIndex: Int) {
            var lines = rawHead.split(separator: 10).map { $0.last == 13 ? $0.dropLast() : $0 }[...]
            guard let first = lines.popFirst() else { return nil }
            let parts = first.split(separator: 32, omittingEmptySubsequences: false)
            guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty, parts[2].starts(with: "HTTP/".utf8) else {
                return nil
            }
            method = String(decoding: parts[0], as: UTF8.self)
            target = String(decoding: parts[1], as: UTF8.self)
            version = String(decoding: parts[2], as: UTF8.self)
            headers = lines.compactMap { line in
                guard let colon = line.firstIndex(of: 58) else { return nil }
                return (
                    String(decoding: line[..<colon], as: UTF8.self),
                    String(decoding: line[(colon + 1)...].trimmingOuterSpace, as: UTF8.self)
                )
            }
            self.rawHead = rawHead
            self.connectionIndex = connectionIndex
            self.requestIndex = requestIndex
        }

        /// Removes percent encoding, which Essentials does not offer publicly. A `%` without two digits stays
        /// unchanged.
        private static func decoded(_ text: Substring) -> String {
            var bytes: [UInt8] = []
            var rest = Array(text.utf8)[...]
            while let byte = rest.popFirst() {
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                if byte == UInt8(ascii: "%"), rest.count > 1, let value = UInt8(digits, radix: 16) {
                    bytes.append(value)
                    rest = rest.dropFirst(2)
                } else {
                    bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension BidirectionalCollection<UInt8> {
    /// The bytes without surrounding spaces and tabs, which HTTP calls optional white space.
    var trimmingOuterSpace: SubSequence {
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let last = lastIndex(where: { !isSpace($0) }) else { return self[endIndex...] }
        return self[...last].drop(while: isSpace)
    }
}

extension StringProtocol {
    /// The text without surrounding spaces and tabs.
    var trimmingOuterSpace: String { String(decoding: Array(utf8).trimmingOuterSpace, as: UTF8.self) }

    /// Returns a Boolean value that indicates whether two names of header fields are equal, ignoring case (RFC 9110,
    /// section 5.1).
    func isSameFieldName(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { left, right in
                left == right || (left ^ right == 0x20 && (0x61...0x7a).contains(left | 0x20))
            }
    }
}
