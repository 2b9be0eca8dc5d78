import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The recipes for files of Documentation/Cookbook.md, word for word. `scripts/checks/articles` compares them.

/// Downloads the files that a manifest names, four at a time. Files that are there stay as they are.
private func mirror(_ client: Client, into folder: URL) async throws {
    let names = try await client.get("manifest.json", as: [String].self)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, name) in names.enumerated() {
            if index >= 4 { try await group.next() }
            group.addTask {
                // Escapes each part, and refuses ".." before a file is touched.
                let path = try Request.path(name.split(separator: "/").map(String.init))
                let file = folder.appending(path: name)
                if FileManager.default.fileExists(atPath: file.path) { return }
                _ = try await client.download(path, to: file, options: .init(createsFolders: true)).value
            }
        }
        try await group.waitForAll()
    }
}

/// Downloads files at the same time, and shows one fraction for all of them.
private func download(
    _ names: [String], with client: Client, into folder: URL, show: (Double) -> Void
) async throws {
    let tasks = names.map { client.download($0, to: folder.appending(path: $0)) }
    for await progress in Session.Progress.combined(of: tasks) {
        if let fraction = progress.fractionCompleted { show(fraction) }
    }
    for task in tasks { _ = try await task.value }
}

/// Uploads files at the same time, and shows one fraction for all of them.
private func upload(_ files: [URL], with client: Client, show: (Double) -> Void) async throws {
    let tasks = files.map { client.upload("photos", file: $0) }
    for await progress in Session.Progress.combined(ofUploads: tasks) {
        if let fraction = progress.fractionCompleted { show(fraction) }
    }
    for task in tasks { _ = try await task.value }
}

@Suite("Documentation: recipes for files", .timeLimit(.minutes(1)))
struct TransferRecipes {
    let server: LoopbackServer
    let client: Client
    private let scratch: ScratchFolder

    init() throws {
        server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/manifest.json": try exchange.respond(json: ["a.txt", "b/c d.txt", "e", "f", "g", "h"])
            case "/bad/manifest.json": try exchange.respond(json: ["../outside"])
            case "/photos": try exchange.respond(text: "\(exchange.readBody().count)")
            case "/one", "/two": try exchange.serveFile(LoopbackServer.Pattern(count: 300_000))
            default: try exchange.respond(text: exchange.request.target)
            }
        }
        client = Client(baseURL: server.url)
        scratch = try ScratchFolder()
    }

    private var folder: URL { scratch.url }

    @Test func aFolderIsMirrored() async throws {
        try await mirror(client, into: folder)
        let file = folder.appending(path: "b/c d.txt")
        #expect(try String(contentsOf: file, encoding: .utf8) == "/b/c%20d.txt")
        let count = server.requests.count
        try await mirror(client, into: folder)
        #expect(server.requests.count == count + 1)

        let bad = Client(baseURL: server.url("/bad"))
        await #expect(throws: NetworkError.self) { try await mirror(bad, into: folder) }
    }

    @Test func aFormShowsItsProgress() async throws {
        let photo = folder.appending(path: "photo.jpg")
        try Data(repeating: 7, count: 500_000).write(to: photo)
        let last = FractionLog()
        let show: @Sendable (Double) -> Void = { last.add($0) }

        var form = MultipartForm()
        form.append("summer", named: "album")
        try form.append(file: photo, named: "photo", contentType: "image/jpeg")

        let task = client.upload("photos", multipart: form, as: String.self)
        for await progress in task.uploadProgress { show(progress.fractionCompleted ?? 0) }
        print("the server says", try await task.value)

        #expect(last.all.last == 1)
    }

    @Test func severalDownloadsHaveOneBar() async throws {
        let fractions = FractionLog()
        try await download(["one", "two"], with: client, into: folder) { fractions.add($0) }
        #expect(fractions.all.contains(1))
        #expect(try Data(contentsOf: folder.appending(path: "two")).count == 300_000)
    }

    @Test func severalUploadsHaveOneBar() async throws {
        let files = ["a", "b"].map { folder.appending(path: $0) }
        for file in files { try Data(repeating: 7, count: 400_000).write(to: file) }
        let fractions = FractionLog()
        try await upload(files, with: client) { fractions.add($0) }
        #expect(fractions.all.first.map { $0 < 1 } == true)
        #expect(fractions.all.last == 1)
    }
}
