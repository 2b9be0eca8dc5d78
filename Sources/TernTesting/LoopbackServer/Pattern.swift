#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension LoopbackServer {
    /// A body of any length that needs no storage. Each byte is a function of its offset, so that any piece can be
    /// verified.
    ///
    /// The bytes repeat every 65,521 bytes, a prime number. A piece that is displaced by a multiple of a power of two
    /// (below 1 GiB) is therefore always detected.
    public struct Pattern: Sendable, Hashable {
        /// The length in bytes.
        public let count: Int

        /// The seed. Patterns with different seeds have different bytes and a different `etag`, like two versions of
        /// one file.
        public let seed: Int

        /// Creates a pattern of `count` bytes.
        public init(count: Int, seed: Int = 0) {
            precondition(count >= 0, "a pattern has no negative length")
            self.count = count
            self.seed = seed
        }

        /// A strong entity tag for exactly these bytes.
        public var etag: String { "\"pattern-\(count)-\(seed)\"" }

        /// Returns the byte at an offset.
        public func byte(at offset: Int) -> UInt8 { Self.block[position(of: offset)] }

        /// Returns the bytes of a range; by default all.
        public func bytes(in range: Range<Int>? = nil) -> [UInt8] {
            let range = (range ?? 0..<count).clamped(to: 0..<count)
            var bytes: [UInt8] = []
            bytes.reserveCapacity(range.count)
            var offset = range.lowerBound
            while offset < range.upperBound {
                let start = position(of: offset)
                let part = Self.block[start..<min(Self.block.count, start + range.upperBound - offset)]
                bytes.append(contentsOf: part)
                offset += part.count
            }
            return bytes
        }

        /// Returns a Boolean value that indicates whether the bytes equal the pattern from `offset` on. Compares
        /// contiguous bytes, such as `Data` and `[UInt8]`, at the speed of memory.
        public func matches(_ bytes: some Sequence<UInt8>, at offset: Int = 0) -> Bool {
            let answer = bytes.withContiguousStorageIfAvailable {
                unsafe matches(raw: UnsafeRawBufferPointer($0), at: offset)
            }
            if let answer { return answer }
            var offset = offset
            for byte in bytes {
                guard offset < count, byte == self.byte(at: offset) else { return false }
                offset += 1
            }
            return true
        }

        private func matches(raw bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
            guard offset >= 0, bytes.count <= count - offset else { return false }
            var done = 0
            while let base = bytes.baseAddress, done < bytes.count {
                let start = position(of: offset + done)
                let length = min(bytes.count - done, Self.block.count - start)
                let isEqual = unsafe Self.block.withUnsafeBytes { block in
                    guard let expected = block.baseAddress else { return false }
                    return unsafe memcmp(base + done, expected + start, length) == 0
                }
                guard isEqual else { return false }
                done += length
            }
            return true
        }

        static let period = 65_521

        /// Five periods, to send and compare in long runs.
        static let block: [UInt8] = {
            // The mixing steps of SplitMix64: no visible order, and the same result on every machine.
            let one = (0..<period).map { index -> UInt8 in
                var value = UInt64(index) &+ 0x9e37_79b9_7f4a_7c15
                value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
                value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
                return UInt8(truncatingIfNeeded: value ^ (value >> 31))
            }
            return one + one + one + one + one
        }()

        /// Returns the position of an offset's byte in the first period of `block`.
        func position(of offset: Int) -> Int {
            let shift = seed % Self.period
            let position = (offset % Self.period + shift) % Self.period
            return position < 0 ? position + Self.period : position
        }
    }
}

/// The response of a file server to a request for a file of known length (RFC 9110, sections 13 and 14).
enum FileAnswer: Equatable {
    case whole
    case part(Range<Int>)
    case notModified
    case unsatisfiable

    init(
        to request: LoopbackServer.Request, count: Int, etag: String?, lastModified: String?, supportsRanges: Bool
    ) {
        if let etag, let tags = request["If-None-Match"] {
            let known = tags.split(separator: ",").map(\.trimmingOuterSpace)
            if known.contains("*") || known.contains(where: { $0 == etag || $0 == "W/" + etag }) {
                self = .notModified
                return
            }
        }
        guard supportsRanges, request.method == "GET", let wanted = request["Range"] else {
            self = .whole
            return
        }
        // If-Range uses the strong comparison: a weak tag never matches (section 13.1.5).
        if let validator = request["If-Range"] {
            let matches = validator.hasPrefix("W/") ? false : validator == etag || validator == lastModified
            if !matches {
                self = .whole
                return
            }
        }
        self = Self.answer(range: wanted, count: count)
    }

    /// Ignores a header that is malformed or names several ranges, as section 14.2 allows.
    private static func answer(range text: String, count: Int) -> FileAnswer {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return .whole }
        let bounds = parts[1].trimmingOuterSpace.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        switch (Int(bounds[0]), Int(bounds[1])) {
        case (let first?, nil) where bounds[1].isEmpty:
            return first < count ? .part(first..<count) : .unsatisfiable
        case (let first?, let last?) where first <= last:
            return first < count ? .part(first..<(min(last, count - 1) + 1)) : .unsatisfiable
        case (nil, let length?) where bounds[0].isEmpty:
            return length > 0 && count > 0 ? .part(max(0, count - length)..<count) : .unsatisfiable
        default: return .whole
        }
    }
}

extension LoopbackServer.Exchange {
    /// Answers like a file server whose file contains `pattern`. Supports GET and HEAD, one `Range` (206 or 416),
    /// `If-Range`, `If-None-Match` (304) and an entity tag. Sends the body at the speed of the exchange.
    ///
    /// - Parameters:
    ///   - pattern: The bytes of the file.
    ///   - etag: The entity tag with quotes; nil for that of the pattern, an empty one for none.
    ///   - lastModified: The value of `Last-Modified`; nil for none.
    ///   - contentType: The value of `Content-Type`.
    ///   - supportsRanges: False for a server that ignores `Range` and sends no `Accept-Ranges`.
    ///   - headers: Additional fields, such as `Content-Disposition`.
    public func serveFile(
        _ pattern: LoopbackServer.Pattern, etag: String? = nil, lastModified: String? = nil,
        contentType: String = "application/octet-stream", supportsRanges: Bool = true,
        headers: LoopbackServer.Fields = []
    ) throws {
        let etag = etag.map { $0.isEmpty ? nil : $0 } ?? pattern.etag
        let answer = FileAnswer(
            to: request, count: pattern.count, etag: etag, lastModified: lastModified, supportsRanges: supportsRanges)
        var fields = headers
        if let etag { fields.append(("ETag", etag)) }
        if let lastModified { fields.append(("Last-Modified", lastModified)) }
        if supportsRanges { fields.append(("Accept-Ranges", "bytes")) }
        switch answer {
        case .notModified: try respond(status: 304, headers: fields)
        case .unsatisfiable:
            try respond(status: 416, headers: fields + [("Content-Range", "bytes */\(pattern.count)")])
        case .whole:
            fields += [("Content-Type", contentType)]
            try send(pattern, 0..<pattern.count, status: 200, headers: fields)
        case .part(let range):
            let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(pattern.count)"
            fields += [("Content-Type", contentType), ("Content-Range", place)]
            try send(pattern, range, status: 206, headers: fields)
        }
    }

    private func send(
        _ pattern: LoopbackServer.Pattern, _ range: Range<Int>, status: Int, headers: LoopbackServer.Fields
    ) throws {
        let fields = withConnection(headers + [("Content-Length", String(range.count))])
        try writeHead(status: status, headers: fields)
        if request.method != "HEAD" { try streamPattern(pattern, in: range) }
    }
}
