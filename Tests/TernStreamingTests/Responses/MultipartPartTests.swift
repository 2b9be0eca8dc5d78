import Tern
import TernStreaming
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Multipart responses", .timeLimit(.minutes(1)))
struct MultipartPartTests {
    private struct Result: Equatable {
        var bodies: [String] = []
        var fields: [[String]] = []
        var failure: MultipartParser.Failure?
    }

    private func parse(
        _ text: String, boundary: String = "b", limit: Int = .max, size: Int = .max
    ) -> Result {
        var parser = MultipartParser(boundary: boundary, maximumPartSize: limit)
        var parts: [MultipartParser.Part] = []
        var failure: MultipartParser.Failure?
        let bytes = Array(text.utf8)
        do throws(MultipartParser.Failure) {
            let size = max(1, min(size, bytes.count))
            for start in stride(from: 0, to: bytes.count, by: size) {
                try parser.parse(Data(bytes[start..<min(start + size, bytes.count)]), into: &parts)
            }
            try parser.finish(into: &parts)
        } catch {
            failure = error
        }
        return Result(
            bodies: parts.map { String(decoding: $0.body, as: UTF8.self) },
            fields: parts.map { $0.headers.map { "\($0.name)=\($0.value)" } }, failure: failure)
    }

    private static let complete =
        "preamble\r\n--bx\r\n--b\r\nContent-Type: text/plain\r\nX: a\r\n  b\r\n\r\none\r\n--b \t\r\n\r\ntwo\r\n\r\n--bc\r\n--b\r\nX: y\r\n\r\n\r\n"
        + "--b--\r\nepilogue\r\n--b\r\n"

    @Test(arguments: [1, 2, 3, 7, .max]) func partsAreIndependentOfChunks(size: Int) {
        let result = parse(Self.complete, size: size)
        #expect(result.bodies == ["one", "two\r\n\r\n--bc", ""] && result.failure == nil)
        #expect(result.fields == [["Content-Type=text/plain", "X=a b"], [], ["X=y"]])
    }

    @Test func linesMayEndInLineFeedsAlone() {
        let result = parse("--b\nA: 1\n\none\n--b\n\n\ntwo\n--b--")
        #expect(result.bodies == ["one", "\ntwo"] && result.failure == nil)
    }

    @Test func bodyWithoutItsLastDelimiterIsTruncated() {
        for text in [
            "", "--b", "--b\r\n\r\none", "--b\r\n\r\none\r\n--b\r\n", "\r\n\r\n", "--b\r\n\r\none\r\n--b-",
        ] {
            #expect(parse(text).failure == .truncated, "\(text)")
        }
        #expect(parse("--b\r\n\r\none\r\n--b\r\n\r\ntw").bodies == ["one"])
    }

    @Test(arguments: [1, .max]) func partBeyondItsLimitFails(size: Int) {
        #expect(parse("--b\r\n\r\n12345678\r\n--b--", limit: 10, size: size).failure == nil)
        #expect(parse("--b\r\n\r\n123456789\r\n--b--", limit: 10, size: size).failure == .partTooLarge(limit: 10))
        let long = String(repeating: "x", count: 10_000)
        #expect(parse("--b\r\n\r\n\(long)", limit: 10, size: size).failure == .partTooLarge(limit: 10))
        #expect(
            parse("\(long)\r\n--b\r\n\r\n1\r\n--b--", limit: 10, size: size).bodies == ["1"], "the preamble is no part")
    }

    @Test(arguments: ["X\r\n\r\n", ": x\r\n\r\n", " x: y\r\n\r\n", "X: \u{0}\r\n\r\n", "one"])
    func malformedFieldsFail(fields: String) {
        #expect(parse("--b\r\n\(fields)\r\n--b--").failure == .malformedFields)
    }

    /// The forms of the documentation's table, as devices send them: the parameter, and the line of the delimiters.
    @Test(arguments: [
        ("frame", "--frame"), ("--frame", "----frame"), ("--frame", "--frame"), ("frame", "frame"), ("frame", "-frame"),
        ("frame", "----frame"), ("--frame", "frame"), ("frame", "--\"frame\""), ("\"frame\"", "--frame"),
        ("\"frame\"", "--\"frame\""), ("'frame'", "--frame"), ("'frame'", "--'frame'"), ("\"--frame\"", "--frame"),
        ("----WebKitX", "------WebKitX"), ("----WebKitX", "----WebKitX"),
    ])
    func delimitersOfDevicesAreAccepted(boundary: String, line: String) {
        for size in [1, 5, .max] {
            for preamble in ["", "\r\n", "\n\n"] {
                let text =
                    "\(preamble)\(line)\r\nContent-Type: image/jpeg\r\n\r\none\r\n\(line)  \r\n\r\ntwo\r\n\(line)--\r\nrest"
                let result = parse(text, boundary: boundary, size: size)
                #expect(result.bodies == ["one", "two"] && result.failure == nil, "\(boundary) \(line) \(result)")
            }
        }
    }

    @Test func firstDelimiterShowsTheFormOfAll() {
        // Lines of a part that would be delimiters of another body are its content.
        let text = "--b\n\nb\n---b\n--\"b\"\n--b--"
        #expect(parse(text).bodies == ["b\n---b\n--\"b\""])
        // A preamble has a line of the boundary alone.
        #expect(parse("text\nb\n--b\n\none\n--b--").bodies == ["one"])
        #expect(parse("text\n--x\n---b\n\none\n---b--").bodies == ["one"])
    }

    @Test(arguments: [1, 3, .max]) func bodyMayBeginWithTheFieldsOfItsFirstPart(size: Int) {
        for (boundary, line) in [("b", "--b"), ("--b", "--b"), ("b", "b")] {
            let text =
                "\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n\r\none\r\n\(line)\r\nX: y\r\n\r\ntwo\r\n\(line)--"
            let result = parse(text, boundary: boundary, size: size)
            #expect(result.bodies == ["one", "two"] && result.failure == nil, "\(boundary) \(line)")
            #expect(result.fields == [["Content-Type=image/jpeg", "Content-Length=3"], ["X=y"]])
        }
        // Other lines with a colon are a preamble.
        #expect(parse("Note: text\r\n--b\r\n\r\none\r\n--b--", size: size).bodies == ["one"])
    }

    @Test(arguments: [1, 1_000, .max]) func preambleIsBounded(size: Int) {
        let line = "--other \u{1B}[31mé\\\r\n"
        let shown = "--other \\x1b[31m\\xc3\\xa9\\x5c"
        let text = String(repeating: line, count: 5_000)
        #expect(parse(text, size: size).failure == .noDelimiter(expected: "--b", found: shown))
        #expect(parse(line, size: size).failure == .noDelimiter(expected: "--b", found: shown))
        let long = parse(String(repeating: "x", count: 100_000), size: size)
        #expect(long.failure == .noDelimiter(expected: "--b", found: String(repeating: "x", count: 80)))
        // The delimiters after the fields of the first part are others.
        let fields = parse(
            "Content-Type: a/b\n\n\(String(repeating: "--c\n", count: 30_000))", limit: 80_000, size: size)
        #expect(fields.failure == .noDelimiter(expected: "--b", found: "Content-Type: a/b"))
    }

    @Test func boundaryIsThatOfTheContentType() {
        func boundary(_ type: String) -> String? { MultipartParser.boundary(ofContentType: type) }
        #expect(
            boundary("multipart/mixed; boundary=\"a b\"") == "a b"
                && boundary("Multipart/X; charset=x; boundary=c") == "c")
        for type in ["multipart/mixed", "text/plain; boundary=a", "", "multipart/mixed; boundary="] {
            #expect(boundary(type) == nil)
        }
        #expect(boundary("multipart/mixed; boundary=\(String(repeating: "x", count: 71))") == nil)
    }

    /// A part that is copied with each of its chunks would be copied 40,000 times, which takes minutes: the time limit
    /// of the suite ends this test. Time is no measure of less beside other tests, and copies cannot be counted.
    @Test func aPartOfManyChunksTakesLinearTime() async throws {
        let count = 40_000
        let chunk = Data(repeating: UInt8(ascii: "x"), count: 1 << 10)
        let start = Data("--b\r\n\r\n".utf8)
        let end = Data("\r\n--b--".utf8)
        let stub = StubTransport { _ in
            .chunks(
                [start] + Array(repeating: chunk, count: count) + [end],
                headers: ["Content-Type": "multipart/mixed; boundary=b"])
        }
        let client = Client(session: Session(configuration: .init(), transport: stub))
        var sizes: [Int] = []
        for try await part in client.stream("https://a.example/").parts { sizes.append(part.body.count) }
        #expect(sizes == [count << 10])
    }

    // MARK: Over the wire

    private func withParts(
        type: String = "multipart/mixed; boundary=b", _ write: @escaping LoopbackServer.Handler,
        test: (Client) async throws -> Void
    ) async throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeChunkedHead(headers: [("Content-Type", type)])
            try write(exchange)
        }
        defer { server.stop() }
        try await test(Client(baseURL: server.url, session: Session(configuration: .direct)))
    }

    @Test func partArrivesWithTheDelimiterAfterIt() async throws {
        let gate = LoopbackServer.Gate()
        try await withParts { exchange in
            try exchange.writeChunk(Array("--b\r\nX: 1\r\n\r\none\r\n--b\r\n".utf8))
            try exchange.wait(for: gate)
            try exchange.writeChunk(Array("\r\ntwo\r\n--b--".utf8))
            try exchange.endChunks()
        } test: { client async throws in
            var parts = client.stream("a").parts.makeAsyncIterator()
            let first = try await parts.next()
            #expect(first == MultipartPart(headers: ["X": "1"], body: Data("one".utf8)))
            gate.open()
            #expect(try await parts.next()?.body == Data("two".utf8))
            #expect(try await parts.next() == nil)
        }
    }

    @Test func truncatedBodyIsAnErrorAfterItsParts() async throws {
        try await withParts { exchange in
            try exchange.writeChunk(Array("--b\r\n\r\none\r\n--b\r\n\r\ntwo".utf8))
            try exchange.endChunks()
        } test: { client async throws in
            var bodies: [Data] = []
            let error = try await streamFailure {
                for try await part in client.stream("a").parts { bodies.append(part.body) }
            }
            #expect(error.kind == .truncatedBody && bodies == [Data("one".utf8)])
        }
    }

    @Test func streamWithOtherDelimitersFailsInsteadOfYieldingNothing() async throws {
        try await withParts { exchange in
            // A camera, which sends pictures for ever.
            while true {
                try exchange.writeChunk(
                    Array("--other\r\nX: 1\r\n\r\n\(String(repeating: "j", count: 5_000))\r\n".utf8))
            }
        } test: { client async throws in
            let error = try await streamFailure { for try await _ in client.stream("a").parts {} }
            #expect(error.kind == .malformedResponse)
            #expect(error.reason.contains("--b") && error.reason.contains("--other"), "\(error.reason)")
        }
    }

    /// The parts that have arrived would keep a slow reader busy for long after the end: 6,000 of them fit into one
    /// chunk.
    @Test(arguments: ["total", "task", "reader"]) func partsThatWereNotReadAreDropped(end: String) async throws {
        let part = "--b\r\nX: 1\r\n\r\none\r\n"
        let ended = LoopbackServer.Gate()
        try await withParts { exchange in
            try exchange.writeChunk(Array(String(repeating: part, count: 5_000).utf8))
            try exchange.waitForClientToClose()
            ended.open()
        } test: { client async throws in
            let reader = Task { () -> (NetworkError, Int) in
                let stream = client.stream("a") { if end == "total" { $0.timeouts.total = .seconds(1) } }
                var parts = stream.parts.makeAsyncIterator()
                #expect(try await parts.next() != nil)
                switch end {
                case "total":
                    try await ended.wait()
                    // The server can learn of the limit before the reader does.
                    while !stream.dropsUnread() { await Task.yield() }
                case "task": stream.task.cancel()
                default: unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                }
                var count = 0
                let error = try await streamFailure { while try await parts.next() != nil { count += 1 } }
                return (error, count)
            }
            let (error, count) = try await reader.value
            #expect(error.kind == (end == "total" ? .totalTimedOut : .cancelled))
            #expect(count == 0)
        }
    }

    @Test func linesAndValuesThatWereNotReadAreDropped() async throws {
        try await withParts { exchange in
            try exchange.writeChunk(Array(String(repeating: "1\n", count: 5_000).utf8))
            try exchange.waitForClientToClose()
        } test: { client async throws in
            let stream = client.stream("a")
            var lines = stream.lines.makeAsyncIterator()
            #expect(try await lines.next() == "1")
            stream.task.cancel()
            var count = 0
            let error = try await streamFailure { while try await lines.next() != nil { count += 1 } }
            #expect(error.kind == .cancelled && count < 64)

            let other = client.stream("a")
            var values = other.decodeLines(Int.self).makeAsyncIterator()
            #expect(try await values.next() == 1)
            other.task.cancel()
            #expect(try await streamFailure { _ = try await values.next() }.kind == .cancelled)

            let third = client.stream("a")
            var bytes = third.bytes.makeAsyncIterator()
            _ = try await bytes.next()
            third.task.cancel()
            var read = 0
            let end = try await streamFailure { while try await bytes.next() != nil { read += 1 } }
            #expect(end.kind == .cancelled && read <= 4_096)
        }
    }

    @Test func otherTypesAreRefused() async throws {
        try await withParts(type: "text/plain") {
            try $0.endChunks()
        } test: { client async throws in
            let error = try await streamFailure { for try await _ in client.stream("a").parts {} }
            #expect(error.kind == .contentType)
        }
    }
}
