import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes values in the form of the store. Numbers are little-endian, and texts and lists have their length before
/// them.
struct CacheEncoder {
    private(set) var bytes: [UInt8] = []

    mutating func add(byte: UInt8) { bytes.append(byte) }

    mutating func add(_ number: Int64) {
        let number = UInt64(bitPattern: number)
        for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    /// Writes a length or a count, of which the format allows at most 2³².
    mutating func add(count: Int) {
        for index in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: count >> (8 * index))) }
    }

    mutating func add(_ text: String) {
        add(count: text.utf8.count)
        bytes += text.utf8
    }

    /// Writes a text with a byte before it that tells whether there is one.
    mutating func add(optional text: String?) {
        add(byte: UInt8(text == nil ? 0 : 1))
        if let text { add(text) }
    }

    mutating func add(_ data: Data) {
        add(count: data.count)
        bytes += data
    }

    mutating func add<Element>(_ list: [Element], _ write: (inout CacheEncoder, Element) -> Void) {
        add(count: list.count)
        for element in list { write(&self, element) }
    }
}

/// Reads values in the form of the store. Each function returns nil past the end, and for a value that was not written
/// this way.
struct CacheDecoder {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { index == bytes.count }

    mutating func byte() -> UInt8? { take(1)?.first }

    mutating func number() -> Int64? {
        take(8).map { bytes in
            Int64(bitPattern: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
        }
    }

    mutating func count() -> Int? {
        take(4).map { bytes in Int(bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }) }
    }

    mutating func text() -> String? {
        guard let count = count(), let bytes = take(count) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    mutating func optionalText() -> String?? {
        switch byte() {
        case 0?: .some(nil)
        case 1?: text().map { .some($0) }
        default: nil
        }
    }

    mutating func data() -> Data? {
        guard let count = count(), let bytes = take(count) else { return nil }
        return Data(bytes)
    }

    /// Reads a list. Each element takes at least one byte, so that a false count ends at the end of the bytes.
    mutating func list<Element>(limit: Int, _ read: (inout CacheDecoder) -> Element?) -> [Element]? {
        guard let count = count(), count <= limit else { return nil }
        var result: [Element] = []
        for _ in 0..<count {
            guard let element = read(&self) else { return nil }
            result.append(element)
        }
        return result
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= bytes.count - index else { return nil }
        defer { index += count }
        return bytes[index..<index + count]
    }
}

extension CacheKey {
    func encode(to encoder: inout CacheEncoder) {
        for text in [method, origin, path, trust, partition] { encoder.add(text) }
        encoder.add(optional: query)
    }

    init?(from decoder: inout CacheDecoder) {
        guard let method = decoder.text(), let origin = decoder.text(), let path = decoder.text(),
            let trust = decoder.text(), let partition = decoder.text(), let query = decoder.optionalText()
        else { return nil }
        self.init(method: method, origin: origin, path: path, query: query, trust: trust, partition: partition)
    }
}

extension CacheEntry.Properties {
    func encode(to encoder: inout CacheEncoder) {
        encoder.add(Int64(bitPattern: id))
        key.encode(to: &encoder)
        encoder.add(Int64(status))
        encoder.add(version.rawValue)
        encoder.add(reasonPhrase)
        // Cookies are secrets and are never written to the disk.
        encoder.add(headers.filter { !StoredFields.isCookie($0.name) }) { encoder, field in
            encoder.add(field.name)
            encoder.add(field.value)
        }
        encoder.add(requestTime.milliseconds)
        encoder.add(responseTime.milliseconds)
        encoder.add(selections) { encoder, selection in
            encoder.add(selection.fields) { encoder, field in
                encoder.add(field.name)
                encoder.add(optional: field.value)
            }
        }
        encoder.add(optional: credentials)
        switch content {
        case .whole(let count):
            encoder.add(byte: 0)
            encoder.add(count)
        case .part(let range, let total):
            encoder.add(byte: 1)
            encoder.add(range.first)
            encoder.add(range.count)
            encoder.add(total ?? -1)
        }
        encoder.add(byte: UInt8(mustValidate ? 1 : 0))
        encoder.add(lifetimeLimit.map { $0.wholeSeconds } ?? -1)
        encoder.add(userInfo.sorted { $0.key < $1.key }) { encoder, text in
            encoder.add(text.key)
            encoder.add(text.value)
        }
    }

    /// Reads and checks properties. A value that this version never writes, such as a field that a response cannot
    /// have, makes them invalid.
    init?(from decoder: inout CacheDecoder) {
        guard let id = decoder.number(), let key = CacheKey(from: &decoder), let status = decoder.number(),
            (200...599).contains(status), let version = decoder.text().flatMap({ HTTPVersion(rawValue: $0) }),
            let reason = decoder.text(), let headers = Self.headers(from: &decoder),
            let requestTime = decoder.number(), let responseTime = decoder.number(),
            let selections = Self.selections(from: &decoder), let credentials = decoder.optionalText(),
            let content = Self.content(from: &decoder), let flag = decoder.byte(), flag <= 1,
            let limit = decoder.number(), (-1...CacheTime.longestSeconds).contains(limit),
            let userInfo = Self.userInfo(from: &decoder)
        else { return nil }
        self.init(
            id: UInt64(bitPattern: id), key: key, status: Int(status), version: version, reasonPhrase: reason,
            headers: headers, requestTime: CacheTime(milliseconds: requestTime),
            responseTime: CacheTime(milliseconds: responseTime), selections: selections, credentials: credentials,
            content: content, mustValidate: flag == 1, lifetimeLimit: limit == -1 ? nil : .seconds(limit),
            userInfo: userInfo)
    }

    private static func userInfo(from decoder: inout CacheDecoder) -> [String: String]? {
        let texts = decoder.list(limit: CacheEntry.userInfoLimit) { decoder -> (String, String)? in
            guard let name = decoder.text(), let value = decoder.text() else { return nil }
            return (name, value)
        }
        return texts.map { Dictionary($0) { first, _ in first } }
    }

    private static func headers(from decoder: inout CacheDecoder) -> Headers? {
        let fields = decoder.list(limit: StoredFields.limits.fields + 8) { decoder -> Headers.Field? in
            guard let name = decoder.text(), let value = decoder.text() else { return nil }
            return Headers.Field(name: name, value: value)
        }
        guard let fields else { return nil }
        return Headers(fields)
    }

    private static func selections(from decoder: inout CacheDecoder) -> [VarySelection]? {
        decoder.list(limit: CacheEntry.selectionLimit) { decoder -> VarySelection? in
            let fields = decoder.list(limit: Vary.limit) { decoder -> VarySelection.Field? in
                guard let name = decoder.text(), let value = decoder.optionalText() else { return nil }
                return VarySelection.Field(name: name, value: value)
            }
            return fields.map { VarySelection(fields: $0) }
        }
    }

    private static func content(from decoder: inout CacheDecoder) -> CacheEntry.Content? {
        switch decoder.byte() {
        case 0?:
            guard let count = decoder.number(), (0...ByteRange.limit).contains(count) else { return nil }
            return .whole(count)
        case 1?:
            guard let first = decoder.number(), let count = decoder.number(), let total = decoder.number(),
                (0...ByteRange.limit).contains(first), (1...ByteRange.limit).contains(count),
                total == -1 || first + count <= total
            else { return nil }
            return .part(ByteRange(first: first, count: count), total: total == -1 ? nil : total)
        default:
            return nil
        }
    }
}

// The stored form: magic and version, the entries, and a checksum of everything before it. A record of another version,
// a torn record and an altered one are not read, which is a miss.
extension CacheRecord {
    /// `TernHTTP`, and the version of the format.
    private static let magic = Array("TernHTTP".utf8) + [1]

    func encoded() -> Data {
        var encoder = CacheEncoder()
        for byte in Self.magic { encoder.add(byte: byte) }
        encoder.add(items) { encoder, item in
            item.entry.properties.encode(to: &encoder)
            switch item.body {
            case .inline(let data):
                encoder.add(byte: 0)
                encoder.add(data)
            case .separate:
                encoder.add(byte: 1)
            }
        }
        encoder.add(Int64(bitPattern: Self.checksum(encoder.bytes[...])))
        return Data(encoder.bytes)
    }

    /// Reads a record. Returns nil if anything differs from the encoding.
    init?(_ data: Data) {
        let bytes = Array(data)
        guard bytes.count >= Self.magic.count + 12, bytes.starts(with: Self.magic) else { return nil }
        var end = CacheDecoder(Array(bytes.suffix(8)))
        guard end.number() == Int64(bitPattern: Self.checksum(bytes.dropLast(8))) else { return nil }
        var decoder = CacheDecoder(Array(bytes.dropFirst(Self.magic.count).dropLast(8)))
        let items = decoder.list(limit: Self.limit) { decoder -> Item? in
            guard let properties = CacheEntry.Properties(from: &decoder) else { return nil }
            switch decoder.byte() {
            case 0?:
                guard let data = decoder.data(), Int64(data.count) == properties.storedLength else { return nil }
                return Item(entry: CacheEntry(properties, bodyBesideHead: data), body: .inline(data))
            case 1?: return Item(entry: CacheEntry(properties), body: .separate)
            default: return nil
            }
        }
        guard let items, decoder.isAtEnd else { return nil }
        self.init(items)
    }

    /// FNV-1a with 64 bits. Finds damage, not forgery.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return sum
    }
}
