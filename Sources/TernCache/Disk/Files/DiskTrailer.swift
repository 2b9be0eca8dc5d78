import CTernSQLite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The data behind the value in its file: all that the index knows of it, so that the index can be rebuilt.
///
/// The value itself begins at offset 0, so that it can be mapped or sent from the file. Numbers are little-endian:
/// magic "TernVal1" · value's XXH64 (8) · value's length (8) · created (8) · expires (8) · counts of key, metadata (4
/// each) and tags (2), 6 zero bytes · key · metadata · tags (length in 2 bytes, then UTF-8) · footer: length of the
/// trailer (4), 4 zero bytes, XXH64 of the trailer up to here (8).
struct DiskTrailer: Equatable {
    var checksum: UInt64
    var size: Int
    var created: Int64
    var expires: Int64
    var key: Data
    var metadata: Data
    var tags: [String]

    static let magic = UInt64(0x316C_6156_6E72_6554)
    static let headCount = 56
    static let footerCount = 16
    /// The maximum length of a trailer: a key, metadata and tags at their limits.
    static let maximumCount = 256 << 10
    /// The valid lengths of a trailer.
    static let counts = headCount + footerCount...maximumCount

    func encoded() -> Data {
        var bytes = Data(capacity: Self.headCount + key.count + metadata.count + Self.footerCount + 64)
        bytes.append(word: Self.magic)
        bytes.append(word: checksum)
        bytes.append(word: UInt64(size))
        bytes.append(word: UInt64(bitPattern: created))
        bytes.append(word: UInt64(bitPattern: expires))
        bytes.append(word: UInt32(key.count))
        bytes.append(word: UInt32(metadata.count))
        bytes.append(word: UInt16(tags.count))
        bytes.append(word: UInt16(0))
        bytes.append(word: UInt32(0))
        bytes.append(key)
        bytes.append(metadata)
        for tag in tags {
            bytes.append(word: UInt16(tag.utf8.count))
            bytes.append(contentsOf: tag.utf8)
        }
        bytes.append(word: UInt32(bytes.count + Self.footerCount))
        bytes.append(word: UInt32(0))
        bytes.append(word: DiskChecksum.of(bytes))
        return bytes
    }

    /// Returns the length in the last 16 bytes of a file; nil if they are not a footer.
    static func count(footer: Data) -> Int? { unsafe footer.withUnsafeBytes { unsafe count(footer: $0) } }

    private static func count(footer: UnsafeRawBufferPointer) -> Int? {
        guard footer.count == footerCount else { return nil }
        var reader = unsafe LittleEndianReader(footer)
        guard let count = reader.word(UInt32.self), reader.word(UInt32.self) == 0 else { return nil }
        return counts.contains(Int(count)) ? Int(count) : nil
    }

    /// Decodes a whole trailer. Returns nil if anything differs from the encoding.
    init?(_ bytes: Data) {
        guard let trailer = unsafe bytes.withUnsafeBytes({ unsafe DiskTrailer($0) }) else { return nil }
        self = trailer
    }

    /// Decodes a whole trailer from bytes that do not change in the meantime, and copies them.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headCount + Self.footerCount,
            unsafe Self.count(footer: bytes.part(bytes.count - Self.footerCount, Self.footerCount)) == bytes.count
        else { return nil }
        var footer = unsafe LittleEndianReader(bytes.part(bytes.count - 8, 8))
        guard let sum = footer.word(UInt64.self), unsafe DiskChecksum.of(bytes.part(0, bytes.count - 8)) == sum else {
            return nil
        }
        var reader = unsafe LittleEndianReader(bytes)
        guard reader.word(UInt64.self) == Self.magic, let checksum = reader.word(UInt64.self),
            let size = reader.word(UInt64.self), let created = reader.word(UInt64.self),
            let expires = reader.word(UInt64.self), let keyCount = reader.word(UInt32.self),
            let metadataCount = reader.word(UInt32.self), let tagCount = reader.word(UInt16.self),
            reader.skip(6), let key = reader.bytes(Int(keyCount)),
            let metadata = reader.bytes(Int(metadataCount)), let length = Int(exactly: size)
        else { return nil }
        var tags: [String] = []
        for _ in 0..<tagCount {
            guard let count = reader.word(UInt16.self), let tag = reader.bytes(Int(count)) else { return nil }
            tags.append(String(decoding: tag, as: UTF8.self))
        }
        self.init(
            checksum: checksum, size: length, created: Int64(bitPattern: created),
            expires: Int64(bitPattern: expires), key: key, metadata: metadata, tags: tags)
    }

    init(
        checksum: UInt64, size: Int, created: Int64, expires: Int64, key: Data, metadata: Data, tags: [String]
    ) {
        self.checksum = checksum
        self.size = size
        self.created = created
        self.expires = expires
        self.key = key
        self.metadata = metadata
        self.tags = tags
    }
}

/// Reads little-endian numbers and byte runs in sequence. Returns nil past the end. Must not outlive the bytes.
@safe private struct LittleEndianReader {
    private let data: UnsafeRawBufferPointer
    private var place = 0

    init(_ data: UnsafeRawBufferPointer) { unsafe self.data = data }

    private var rest: Int { unsafe data.count - place }

    mutating func skip(_ count: Int) -> Bool {
        guard count <= rest else { return false }
        place += count
        return true
    }

    /// Returns a copy, so that the caller can keep a key without the whole trailer.
    mutating func bytes(_ count: Int) -> Data? {
        guard count <= rest else { return nil }
        defer { place += count }
        return unsafe Data(data.part(place, count))
    }

    mutating func word<Word: FixedWidthInteger & BitwiseCopyable>(_: Word.Type) -> Word? {
        let count = MemoryLayout<Word>.size
        guard count <= rest else { return nil }
        defer { place += count }
        return unsafe Word(littleEndian: data.loadUnaligned(fromByteOffset: place, as: Word.self))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func part(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: self[start..<start + count])
    }
}

extension Data {
    fileprivate mutating func append<Word: FixedWidthInteger>(word: Word) {
        for index in 0..<Word.bitWidth / 8 { append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
    }
}

/// An incremental XXH64: 13 GB/s on one core, so that verifying costs less than reading. It finds damage, not forgery.
struct DiskChecksum {
    private var state = tern_xxh64_state()

    init(seed: UInt64 = 0) { unsafe tern_xxh64_begin(&state, seed) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe tern_xxh64_update(&state, bytes.baseAddress, bytes.count)
    }

    mutating func update(_ bytes: Data) { unsafe bytes.withUnsafeBytes { unsafe update($0) } }

    var value: UInt64 {
        var copy = state
        return unsafe tern_xxh64_finish(&copy)
    }

    static func of(_ bytes: Data, seed: UInt64 = 0) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe tern_xxh64($0.baseAddress, $0.count, seed) }
    }

    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        unsafe tern_xxh64(bytes.baseAddress, bytes.count, seed)
    }

    /// Returns the checksum of a row of the index: that of the data beside a value, chained to the checksum of the
    /// value.
    static func row(value: UInt64, key: Data, metadata: Data) -> UInt64 { of(metadata, seed: of(key, seed: value)) }
}
