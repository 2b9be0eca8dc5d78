import Tern
import Testing

@testable import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the stored form of entries: what is read is what was written, or nothing.
@Suite struct CacheRecordTests {
    private func entry(_ id: UInt64, _ headers: Headers = [:], content: CacheEntry.Content = .whole(4)) -> CacheEntry {
        CacheEntry(
            CacheEntry.Properties(
                id: id,
                key: CacheKey(origin: "https://example.com:443", path: "/a", query: "q=1", trust: "t", partition: "p"),
                status: 200, version: .http2, reasonPhrase: "OK", headers: headers,
                requestTime: CacheTime(milliseconds: 1), responseTime: CacheTime(milliseconds: Int64(id)),
                selections: [
                    VarySelection(fields: [
                        VarySelection.Field(name: "foo", value: nil), VarySelection.Field(name: "bar", value: "\(id)"),
                    ])
                ], credentials: "c", content: content, mustValidate: true))
    }

    private func record(_ count: Int = 2) -> CacheRecord {
        var record = CacheRecord()
        for id in 1...UInt64(count) {
            let headers: Headers = ["ETag": "\"\(id)\"", "X": "ä\t\u{1F600}", "Cache-Control": "max-age=5"]
            _ = record.insert(
                CacheRecord.Item(entry: entry(id, headers), body: .inline(Data("body".utf8))), replacing: [])
        }
        _ = record.insert(
            CacheRecord.Item(
                entry: entry(99, content: .part(ByteRange(first: 3, count: 5), total: nil)), body: .separate),
            replacing: [])
        return record
    }

    @Test func recordsAreReadAsTheyWereWritten() throws {
        let record = record()
        let read = try #require(CacheRecord(record.encoded()))
        #expect(read.items.map(\.entry.properties) == record.items.map(\.entry.properties))
        #expect(read.items.map(\.body) == record.items.map(\.body))
        #expect(read.entries.first?.validators.tag?.text == "\"1\"")
        #expect(try #require(CacheRecord(CacheRecord().encoded())).isEmpty)
    }

    @Test func numbersAtTheirLimitsAreKept() throws {
        for number in [Int64.min, .max, -1, 0] {
            var encoder = CacheEncoder()
            encoder.add(number)
            var decoder = CacheDecoder(encoder.bytes)
            #expect(decoder.number() == number)
            #expect(decoder.isAtEnd)
        }
    }

    @Test func eachTornRecordIsAMiss() {
        let bytes = record().encoded()
        for count in 0..<bytes.count { #expect(CacheRecord(bytes.prefix(count)) == nil) }
        #expect(CacheRecord(bytes + [0]) == nil)
        #expect(CacheRecord(bytes) != nil)
    }

    @Test func eachAlteredByteIsAMiss() {
        let bytes = record(1).encoded()
        for index in bytes.indices {
            for mask in [1, 0x80] as [UInt8] {
                var altered = bytes
                altered[index] ^= mask
                #expect(CacheRecord(altered) == nil, "\(index)")
            }
        }
    }

    @Test func anotherVersionIsAMiss() {
        var bytes = Array(record().encoded().dropLast(8))
        bytes[8] = 2
        #expect(CacheRecord(Self.withChecksum(bytes)) == nil)
        bytes[8] = 1
        #expect(CacheRecord(Self.withChecksum(bytes)) != nil)
    }

    @Test func damageWithARightChecksumNeverTrapsAndIsNeverWrong() {
        let bytes = Array(record().encoded().dropLast(8))
        var random = SeededGenerator(7)
        var readable = 0
        for _ in 0..<4_000 {
            var altered = bytes
            for _ in 0...Int(random.next() % 3) {
                let index = 9 + Int(random.next() % UInt64(altered.count - 9))
                altered[index] = UInt8(truncatingIfNeeded: random.next())
            }
            guard let record = CacheRecord(Self.withChecksum(altered)) else { continue }
            readable += 1
            for entry in record.entries {
                #expect((200...599).contains(entry.status))
                #expect(entry.freshness.lifetime <= CacheTime.longest)
                _ = entry.freshness.age(at: CacheTime(milliseconds: .max))
                _ = entry.isOlder(than: entry)
            }
        }
        // Most changes are within texts.
        #expect(readable > 100)
    }

    @Test func theOldestEntryLeavesFirst() throws {
        var record = CacheRecord()
        for id in 1...UInt64(CacheRecord.limit + 2) {
            let removed = record.insert(CacheRecord.Item(entry: entry(id), body: .separate), replacing: [])
            #expect(removed.map(\.id) == (id > UInt64(CacheRecord.limit) ? [id - UInt64(CacheRecord.limit)] : []))
        }
        #expect(record.items.count == CacheRecord.limit)
    }

    @Test func replacingAndRemovingNameTheBodiesThatAreNotUsedAnyMore() {
        var record = record()
        #expect(
            record.insert(CacheRecord.Item(entry: entry(5), body: .separate), replacing: [1, 99]).map(\.id) == [99])
        #expect(record.remove([2]).isEmpty)
        #expect(record.remove([5, 5, 6]).map(\.id) == [5])
        #expect(record.isEmpty)
        record.update([entry(5)])
        #expect(record.isEmpty)
    }

    private static func withChecksum(_ bytes: [UInt8]) -> Data {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        var encoder = CacheEncoder()
        encoder.add(Int64(bitPattern: sum))
        return Data(bytes + encoder.bytes)
    }
}
