extension LoopbackServer {
    /// The head of a request as it came over the wire.
    public struct Request: Sendable {
        /// The method as sent: `GET`.
        public let method: String

        /// The target as sent, percent encoding kept: `/items?page=2`.
        public let target: String

        /// The protocol as sent: `HTTP/1.1`.
        public let version: String

        /// The header fields in order, duplicates kept, values without the white space around them. Bytes that are no
        /// UTF-8 are replaced; `rawHead` has them.
        public let headers: Fields

        /// All bytes of the head, the empty line at its end included.
        public let rawHead: [UInt8]

        /// The connection it came on, counted from 0 in the order of acceptance.
        public let connectionIndex: Int

        /// Its place on that connection, from 0.
        public let requestIndex: Int

        /// What stands before `?` in the target, percent encoding kept.
        public var path: String { String(target.prefix { $0 != "?" }) }

        /// The query's items in order, percent encoding removed; an item without `=` has no value.
        public var query: [(name: String, value: String?)] {
            guard let mark = target.firstIndex(of: "?") else { return [] }
            return target[target.index(after: mark)...].split(separator: "&").map { item in
                let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : nil)
            }
        }

        /// The value of the first query item of that name; nil when there is none, or when it has no value.
        public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

        /// The first value of a header field, whatever the case of its name: `request["content-type"]`.
        public subscript(name: String) -> String? { headers.first { $0.name.isSameFieldName(as: name) }?.value }

        /// All values of a header field in order, one per line of the head.
        public func values(of name: String) -> [String] {
            headers.filter { $0.name.isSameFieldName(as: name) }.map(\.value)
        }

        /// The body's length in bytes by `Content-Length`; nil when there is none, or none that is a number.
        public var contentLength: Int? { self["Content-Length"].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 } }

        /// Whether the body comes in chunks.
        public var isChunked: Bool { values(of: "Transfer-Encoding").contains { $0.lowercased().hasSuffix("chunked") } }

        /// Whether the connection may carry another request after this one (RFC 9112, section 9.3).
        var keepsAlive: Bool {
            let options = values(of: "Connection").flatMap { $0.lowercased().split(separator: ",") }
                .map { $0.trimmingOuterSpace }
            if options.contains("close") { return false }
            return version != "HTTP/1.0" || options.contains("keep-alive")
        }

        /// Nil when the bytes have no request line of three parts.
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

        /// Essentials has no public percent decoding. A `%` without two digits behind it stands for itself.
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
    /// Without spaces and tabs at both ends: what HTTP calls optional white space.
    var trimmingOuterSpace: SubSequence {
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let last = lastIndex(where: { !isSpace($0) }) else { return self[endIndex...] }
        return self[...last].drop(while: isSpace)
    }
}

extension StringProtocol {
    /// Without spaces and tabs at both ends.
    var trimmingOuterSpace: String { String(decoding: Array(utf8).trimmingOuterSpace, as: UTF8.self) }

    /// Equal as names of header fields, which have no case (RFC 9110, section 5.1).
    func isSameFieldName(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { left, right in
                left == right || (left ^ right == 0x20 && (0x61...0x7a).contains(left | 0x20))
            }
    }
}
