import Tern
import TernTesting
import Testing

@testable import TernStreaming

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("JSON lines", .timeLimit(.minutes(1)))
struct JSONLineTests {
    private struct Row: Codable, Equatable, Sendable {
        var id: Int
    }

    private func lines(_ text: String, limit: Int = .max, size: Int = .max) throws -> [String] {
        var scanner = LineScanner(limit: limit)
        var lines: [LineScanner.Line] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: min(size, bytes.count)) {
            try scanner.split(Data(bytes[start..<min(start + min(size, bytes.count), bytes.count)]), into: &lines)
        }
        if let last = scanner.finish() { lines.append(last) }
        return lines.map { "\($0.number) \(String(decoding: $0.bytes, as: UTF8.self))" }
    }

    @Test(arguments: [1, 2, 3, .max]) func linesAreIndependentOfChunks(size: Int) throws {
        #expect(try lines("a\nbc\r\n\n\r\nd\re\nf", size: size) == ["1 a", "2 bc", "5 d\re", "6 f"])
        #expect(try lines("a\n", size: size) == ["1 a"] && lines("\n", size: size).isEmpty)
    }

    @Test(arguments: [1, .max]) func lineBeyondItsLimitIsNamed(size: Int) throws {
        #expect(try lines("a\nbcd\r\nefg", limit: 3, size: size) == ["1 a", "2 bcd", "3 efg"])
        for text in ["a\nbcde\n", "a\nbcde", "a\nbcde\r\n"] {
            #expect(throws: LineScanner.TooLong(line: 2)) { try lines(text + "ffffff", limit: 3, size: size) }
        }
    }

    private func rows(
        _ chunks: [String], configure: @escaping @Sendable (inout Session.Configuration) -> Void = { _ in }
    ) async throws -> (rows: [Row], error: NetworkError?) {
        let server = try LoopbackServer { exchange in
            try exchange.writeChunked(chunks: chunks.map { Array($0.utf8) })
        }
        defer { server.stop() }
        var configuration = Session.Configuration.direct
        configure(&configuration)
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        var rows: [Row] = []
        do {
            for try await row in client.stream("rows").decodeLines(Row.self) { rows.append(row) }
        } catch {
            return (rows, error)
        }
        return (rows, nil)
    }

    @Test func valuesAreDecodedFromChunksOfAnySize() async throws {
        let result = try await rows(["{\"id\":1}\n{\"id\"", ":2}\r\n\n", "{\"id\":3}"])
        #expect(result.rows == [Row(id: 1), Row(id: 2), Row(id: 3)] && result.error == nil)
    }

    @Test func errorNamesTheLineAfterTheValuesBeforeIt() async throws {
        let result = try await rows(["{\"id\":1}\n\n{\"no\":2}\n{\"id\":3}\n"])
        #expect(result.rows == [Row(id: 1)] && result.error?.kind == .decoding)
        #expect(
            result.error?.reason
                == "line 3 of the response (8 bytes) could not be decoded as Row: no value for 'id', at offset 0 (line 1, "
                + "column 1), in ▸{\"no\": number}◂")
    }

    @Test func bytesThatAreNoTextAreAnErrorOfTheirLine() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeChunked(chunks: [Array("{\"id\":1}\n{\"".utf8), [0xFF, 0xC3], Array("\":2}\n".utf8)])
        }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: .direct))
        var rows = client.stream("rows").decodeLines(Row.self).makeAsyncIterator()
        #expect(try await rows.next() == Row(id: 1))
        let error = try await streamFailure { try await rows.next() }
        #expect(error.kind == .decoding && error.reason.hasPrefix("line 2 of the response (8 bytes)"))
        #expect(try await rows.next() == nil)
    }

    @Test func lineBeyondTheSizeOfABodyIsAnError() async throws {
        let result = try await rows(["{\"id\":1}\n{\"id\":2000000}\n"]) { $0.maximumBodySize = 10 }
        #expect(result.rows == [Row(id: 1)] && result.error?.kind == .tooLarge)
        #expect(result.error?.reason == "line 2 of the response has more than 10 bytes")
    }
}
