import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Multipart form", .timeLimit(.minutes(1)))
struct MultipartFormTests {
    private func text(_ form: MultipartForm) async throws -> String {
        let message = try await MultipartMessage(form, .shared)
        let source = message.makeSource(.shared)
        var bytes = Data()
        while let chunk = try await source.next() { bytes += chunk }
        #expect(message.length == Int64(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }

    private struct Chunks: AsyncSequence, Sendable {
        var chunks: [String]
        typealias Element = Data
        struct AsyncIterator: AsyncIteratorProtocol {
            var rest: ArraySlice<String>
            mutating func next() async -> Data? { rest.popFirst().map { Data($0.utf8) } }
        }
        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: chunks[...]) }
    }

    @Test func partsAreSeparatedByBoundaries() async throws {
        var form = try MultipartForm(boundary: "b")
        form.append("Ada", named: "name")
        form.append(Data("{}".utf8), named: "meta", filename: "m.json")
        let expected = """
            --b\r
            Content-Disposition: form-data; name="name"\r
            \r
            Ada\r
            --b\r
            Content-Disposition: form-data; name="meta"; filename="m.json"\r
            Content-Type: application/json\r
            \r
            {}\r
            --b--\r

            """
        #expect(try await text(form) == expected)
        #expect(form.contentType == "multipart/form-data; boundary=b")
    }

    @Test func valuesBecomePartsFirst() async throws {
        var form = try MultipartForm(encoding: ["b": ["1", "2"], "a": ["x"]])
        form.append("last", named: "z")
        let text = try await text(form)
        let names = text.matches(of: /name="([^"]*)"/).map { String($0.output.1) }
        #expect(names == ["a[]", "b[]", "b[]", "z"])
    }

    @Test(arguments: [
        ("a\"b", "a%22b", "a%22b"), ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"), ("a\nb", "a%0D%0Ab", "a%0Ab"),
        ("a\rb", "a%0D%0Ab", "a%0Db"), ("a\r", "a%0D%0A", "a%0D"), ("é%22\\", "é%22\\", "é%22\\"),
        ("\n\r", "%0D%0A%0D%0A", "%0A%0D"),
    ])
    func namesCannotEndTheirField(given: String, name: String, filename: String) {
        #expect(MultipartForm.escaped(given, isName: true) == name)
        #expect(MultipartForm.escaped(given, isName: false) == filename)
    }

    @Test func typesCannotEndTheirField() async throws {
        var form = MultipartForm()
        form.append(Data(), named: "a", contentType: "text/plain\r\nX-Injected: 1")
        #expect(!(try await text(form)).contains("\r\nX-Injected"))
    }

    @Test func filesAreNamedAndTypedByTheirPath() async throws {
        let folder = FileManager.default.temporaryDirectory.path
        let path = "\(folder)/tern-\(UInt64.random(in: 0 ... .max)).PNG"
        try Data("pixels".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var form = MultipartForm()
        try form.append(file: URL(filePath: path), named: "f")
        try form.append(file: URL(filePath: path), named: "g", filename: "other", contentType: "x/y")
        let text = try await text(form)
        #expect(text.contains(".PNG\"\r\nContent-Type: image/png\r\n\r\npixels\r\n"))
        #expect(text.contains("filename=\"other\"\r\nContent-Type: x/y\r\n\r\npixels\r\n"))
        #expect(form.isReplayable)
    }

    @Test func invalidFilesAreRefusedWhenAdded() throws {
        var form = MultipartForm()
        let folder = FileManager.default.temporaryDirectory
        for url in [
            URL(filePath: "/none/such/file"), folder, try #require(URL(string: "https://h/file")),
        ] {
            do {
                try form.append(file: url, named: "f")
                Issue.record("\(url) was taken")
            } catch {
                #expect(error.kind == .invalidRequest)
            }
        }
        #expect(form.isEmpty)
    }

    @Test func headersOfTheCallersOwnAreChecked() async throws {
        var form = try MultipartForm(boundary: "b")
        try form.append(headers: ["Content-ID": "<1>", "X-A": "1"], body: Data("x".utf8))
        #expect(try await text(form) == "--b\r\nContent-ID: <1>\r\nX-A: 1\r\n\r\nx\r\n--b--\r\n")
        #expect(throws: NetworkError.self) {
            try form.append(headers: ["X": "a\r\nY: b"], body: Data())
        }
    }

    @Test func formsNest() async throws {
        var inner = MultipartForm.mixed()
        inner.append(Data("1".utf8), named: "", filename: "a.txt")
        var form = MultipartForm()
        form.append(inner, named: "files")
        let text = try await text(form)
        #expect(text.contains("name=\"files\"\r\nContent-Type: multipart/mixed; boundary=\(inner.boundary)\r\n\r\n--"))
        #expect(text.hasSuffix("\r\n--\(inner.boundary)--\r\n\r\n--\(form.boundary)--\r\n"))
    }

    @Test func streamsAreCountedAndSentOnce() async throws {
        var form = MultipartForm()
        form.append(Chunks(chunks: ["ab", "", "c"]), length: 3, named: "s")
        #expect(!form.isReplayable && !Request.Body.multipart(form).isReplayable)
        #expect(try await text(form).contains("\r\n\r\nabc\r\n--"))
    }

    @Test(arguments: [(["ab"], 3), (["ab", "cd"], 3), ([], 1), (["a"], 0), (["a"], -1)] as [([String], Int64)])
    func streamOfAnotherLengthFailsBeforeTheClosingBoundary(chunks: [String], length: Int64) async throws {
        var form = MultipartForm()
        form.append(Chunks(chunks: chunks), length: length, named: "s")
        var bytes = Data()
        do {
            let source = try await MultipartMessage(form, .shared).makeSource(.shared)
            while let chunk = try await source.next() { bytes += chunk }
            Issue.record("nothing failed")
        } catch let error as ChunkSource.WrongLength {
            #expect(error.description.contains("stated \(length) bytes"))
        }
        #expect(!String(decoding: bytes, as: UTF8.self).contains("--\r\n"))
    }

    @Test func boundariesAreChecked() throws {
        #expect(throws: NetworkError.self) { try MultipartForm(boundary: "") }
        #expect(throws: NetworkError.self) { try MultipartForm(boundary: "a\r\n") }
        #expect(throws: NetworkError.self) { try MultipartForm(boundary: String(repeating: "a", count: 71)) }
        #expect(try MultipartForm(boundary: "a/b").contentType == "multipart/form-data; boundary=\"a/b\"")
        #expect(MultipartForm().boundary.count == 38)
        #expect(MultipartForm().boundary != MultipartForm().boundary)
    }

    @Test func formWithoutPartsHasNoBody() {
        #expect(Request.Body.multipart(MultipartForm()).isNone)
    }

    @Test(arguments: [
        ("a.JPG", "image/jpeg"), ("a.tar.gz", "application/gzip"), (".png", "application/octet-stream"),
        ("a", "application/octet-stream"), ("a.unheard", "application/octet-stream"),
        ("a.", "application/octet-stream"),
    ])
    func typesAreGuessedByExtension(name: String, type: String) {
        #expect(MediaType.guess(filename: name) == type)
    }

    @Test func theFormCanBeWrittenToAFileInstead() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/tern-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var form = MultipartForm()
        form.append(Chunks(chunks: ["abc"]), length: 3, named: "s")
        let file = URL(filePath: "\(folder)/form")
        try Data("old".utf8).write(to: file)
        let body = try await form.write(to: file)
        #expect(body.contentType == form.contentType && body.isReplayable)
        var same = try MultipartForm(boundary: form.boundary)
        same.append("abc", named: "s")
        #expect(String(decoding: try Data(contentsOf: file), as: UTF8.self) == (try await text(same)))

        var lying = MultipartForm()
        lying.append(Chunks(chunks: ["abc"]), length: 4, named: "s")
        #expect(await kind(ofWriting: lying, to: file) == .requestBody)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["form"])
        #expect(try Data(contentsOf: file).count > 100)
    }

    /// The error tells whether a part or the file that is written is at fault.
    @Test func aPartThatIsGoneIsNoFaultOfTheFile() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/tern-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let part = "\(folder)/part"
        try Data("pixels".utf8).write(to: URL(filePath: part))
        var form = MultipartForm()
        try form.append(file: URL(filePath: part), named: "f")
        #expect(await kind(ofWriting: form, to: URL(filePath: "\(folder)/none/form")) == .fileSystem)
        #expect(await kind(ofWriting: form, to: URL(filePath: "\(folder)/form")) == nil)
        try FileManager.default.removeItem(atPath: part)
        #expect(await kind(ofWriting: form, to: URL(filePath: "\(folder)/form")) == .requestBody)
    }

    /// Returns the kind of the error with which a form is not written; nil if it is.
    private func kind(ofWriting form: MultipartForm, to file: URL) async -> NetworkError.Kind? {
        do throws(NetworkError) {
            _ = try await form.write(to: file)
            return nil
        } catch {
            return error.kind
        }
    }
}
