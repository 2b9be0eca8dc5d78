import FoundationEssentials
import Synchronization
import Tern
import TernTesting
import Testing

/// Runs the examples of the README and of Documentation/, word for word, against a real socket.
@Suite(.timeLimit(.minutes(1)))
struct DocumentationTests {
    struct User: Codable, Sendable {
        var id: Int
        var name: String
    }

    let server: LoopbackServer
    let client: Client
    private let scratch: ScratchFolder

    init() throws {
        server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/v1/users": try exchange.respond(json: [User(id: 2, name: "Grace")])
            case "/v1/users/1": try exchange.respond(json: User(id: 1, name: "Ada"))
            case "/v1/big.iso": try exchange.serveFile(LoopbackServer.Pattern(count: 3_000_000))
            case "/v1/report":
                let disposition = "attachment; filename=\"r.txt\""
                try exchange.respond(headers: [("Content-Disposition", disposition)], text: "report")
            case "/v1/photos" where exchange.request.method == "POST",
                "/v1/log" where exchange.request.method == "POST":
                let count = try exchange.readBody().count
                try exchange.respond(text: "\(count)")
            case "/v1/log": try exchange.respond(text: "one\ntwo\n")
            case "/v1/nothing": try exchange.respond(status: 404, text: "none")
            default: try exchange.respond(text: "hello")
            }
        }
        client = try Client(baseURL: server.url("/v1").absoluteString, session: Session())
        scratch = try ScratchFolder()
    }

    private var folder: URL { scratch.url }

    @Test func readmeExamplesRun() async throws {
        let draft = User(id: 1, name: "Ada")
        let user: User = try await client.get("users/1")
        let page = try await client.get("users", query: ["page": 2], as: [User].self)
        let made: User = try await client.post("users/1", body: .json(draft))
        try await client.delete("users/1")
        #expect(user.name == "Ada" && page.count == 1 && made.id == 1)
        let greeting: String = try await Client(baseURL: server.url).get("greeting")
        #expect(greeting == "hello")
    }

    @Test func downloadExamplesRun() async throws {
        let file = folder.appending(path: "new/big.iso")
        let task = client.download("big.iso", to: file, options: .init(createsFolders: true))
        var last: Session.Progress?
        for await progress in task.progress { last = progress }
        let place = try await task.value
        #expect(try Data(contentsOf: place).count == 3_000_000)
        #expect(last?.completedBytes == 3_000_000 && last?.isFinished == true)

        let folder = folder
        let named = client.download("report") { temporaryURL, response in
            folder.appending(path: response.suggestedFilename)
        }
        #expect(try await named.value.lastPathComponent == "r.txt")
    }

    @Test func resumingExamplesRun() async throws {
        let file = folder.appending(path: "big.iso")
        let task = client.download("big.iso", to: file, options: .init(isResumable: true))
        for await progress in task.progress where progress.completedBytes > 0 {
            task.cancel()
            break
        }
        _ = try? await task.value  // The task is cancelled, or already complete on a fast machine.
        if let token = task.resumeData {
            let again = client.download(resuming: token, to: file)
            let place = try await again.value
            #expect(try Data(contentsOf: place).count == 3_000_000)
        }
    }

    @Test func uploadAndStreamExamplesRun() async throws {
        let photo = folder.appending(path: "photo")
        try Data(repeating: 7, count: 100_000).write(to: photo)
        let task = client.upload("photos", file: photo)
        for await progress in task.uploadProgress { #expect(progress.completedBytes <= 100_000) }
        let answer: Data = try await task.value
        #expect(String(decoding: answer, as: UTF8.self) == "100000")

        let chunks = AsyncStream<Data> { continuation in
            for _ in 0..<10 { continuation.yield(Data(repeating: 1, count: 100)) }
            continuation.finish()
        }
        let log = client.upload("log", body: .stream(chunks, length: 1_000))
        #expect(try await String(decoding: log.value, as: UTF8.self) == "1000")

        let stream = client.stream("log")
        #expect(try await stream.response.status == 200)
        var lines: [String] = []
        for try await line in stream.lines { lines.append(line) }
        #expect(lines == ["one", "two"])
    }

    @Test func handleExamplesRun() async throws {
        let task: SessionTask<User> = client.task(.get, "users/1")
        task.label = "profile"
        task.priority = .high
        let head = await task.response
        let user = try await task.value
        #expect(head?.status == 200 && user.id == 1)

        let session = Session()
        let url = server.url("/v1/users/1")
        let request = try Request(.get, url: url)
        let counted = session.task(for: request, decode: BodyDecoder { body, head in body.count })
        counted.resume()
        let response = try await counted.value
        #expect(response.value > 0)
    }

    @Test func errorExamplesRun() async throws {
        do throws(NetworkError) {
            let user: User = try await client.get("nothing")
            Issue.record("got \(user)")
        } catch {
            if error.isCancelled { return }
            #expect(error.kind == .status && error.status == 404 && error.body.count == 4)
            guard error.kind == .status else { throw error }
        }
    }

    @Test func errorInAClosureExampleRuns() async throws {
        let client = client
        let task = Task {
            do throws(NetworkError) {
                let user: User = try await client.get("nothing")
                return "\(user.id)"
            } catch {
                if error.isCancelled { return "cancelled" }
                return error.kind.rawValue
            }
        }
        #expect(await task.value == "status")
    }

    @Test func registryExamplesRun() async throws {
        let session = Session()
        let client = Client(baseURL: server.url, session: session)
        let events = session.tasks.events
        try await client.get("greeting")
        await session.finishTasksAndInvalidate()
        var seen: [String] = []
        for await event in events {
            switch event {
            case .resumed(let task): seen.append("started \(task.id)")
            case .completed(let completion): seen.append(completion.error?.shortDescription ?? "ok")
            case .dropped(let count): seen.append("too slow for \(count) events")
            default: break
            }
        }
        #expect(seen == ["started #1", "ok"])
    }
}
