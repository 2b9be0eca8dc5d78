import Tern
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/MovingFromAFNetworking.md and MovingFromSDWebImage.md, verbatim, with plain classes in
// place of widgets.

private struct User: Codable, Equatable { var name: String }
private struct Draft: Codable { var title: String }

private final class Journal: Sendable {
    let (lines, line) = AsyncStream<String>.makeStream()
    func note(_ task: TaskID, _ error: NetworkError?) { line.yield("\(task) \(error?.kind.rawValue ?? "ok")") }
}

private struct StayHere: SessionPolicy {
    @concurrent func redirect(
        to proposed: Request, after response: ResponseHead, of task: AnySessionTask
    ) async throws -> RedirectDecision? { .stop }
}

private struct Noting: SessionObserver {
    let journal: Journal

    func didObserve(_ event: TaskRegistry.Event) {
        if case .completed(let completion) = event { journal.note(completion.task.id, completion.error) }
    }
}

@MainActor
private final class Page: WebContentViewModel {
    private(set) var text = ""
    func showContent(_ content: WebContent) { text = String(decoding: content.data, as: UTF8.self) }
}

@MainActor
private final class PlayButton: ButtonImageViewModel {
    private(set) var states: [ButtonState] = []
    func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) { states.append(state) }
}

@MainActor
@Suite("Documentation: moving from AFNetworking", .timeLimit(.minutes(1)))
struct MovingFromAFNetworkingDocumentationTests {
    private let stub: StubTransport
    private let client: Client

    init() throws {
        stub = StubTransport { call in
            switch call.path {
            case "/users/1": .text(#"{"name":"Ada"}"#, contentType: "application/json")
            case "/drafts": .text(#"[{"title":"one"}]"#, contentType: "application/json")
            case "/page": .text("<p>day", contentType: "text/html")
            case "/moved": .status(302, headers: ["Location": "/users/1"])
            case "/report": .data(Data("all".utf8), headers: ["Content-Disposition": "attachment; filename=all.txt"])
            default: .text("taken")
            }
        }
        client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
    }

    @Test func requests() async throws {
        var shown: [User] = []
        var complaints: [NetworkError] = []
        func show(_ user: User) { shown.append(user) }
        func complain(_ error: NetworkError) { complaints.append(error) }
        do {
            let user: User = try await client.get("users/1")
            show(user)
        } catch {
            complain(error)
        }
        #expect(shown == [User(name: "Ada")] && complaints.isEmpty)
        let title = "a b"
        let drafts = try await client.get("drafts", query: ["page": 2], as: [Draft].self)
        try await client.post("drafts", body: .json(["title": title]))
        try await client.post("drafts", body: .form(["title": title]))
        #expect(drafts.map(\.title) == ["one"])
        #expect(stub.calls.suffix(2).map(\.text) == [#"{"title":"a b"}"#, "title=a%20b"])
    }

    @Test func transfers() async throws {
        let name = "tern-moving-\(UInt64.random(in: 0 ... .max))"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // `try?`: the system removes a folder that stays.
        defer { try? FileManager.default.removeItem(at: folder) }
        let photo = folder.appending(path: "photo.png")
        try Data("picture".utf8).write(to: photo)
        let (progressView, spinner) = (Bar(), Spinner())
        do {
            var form = MultipartForm()
            try form.append(file: photo, named: "photo")
            let task = client.upload("photos", multipart: form)
            progressView.bindUploadProgress(of: task, animated: true)
            spinner.bindActivity(to: task)
            let answer = try await task.value
            #expect(String(decoding: answer, as: UTF8.self) == "taken")
        }
        await progressView.log.wait { $0.last?.isFinished == true }
        await eventually { !spinner.isActivityShown }
        let task = client.download("report") { temporaryURL, response in
            folder.appending(path: response.suggestedFilename)
        }
        let file = try await task.value
        #expect(file.lastPathComponent == "all.txt")
    }

    @Test func hooks() async throws {
        let journal = Journal()
        let url = URL(string: "https://api.example.com")
        let certificates: [Certificate] = []
        var configuration = Session.Configuration()
        configuration.policy = StayHere()
        configuration.observers = [Noting(journal: journal)]
        configuration.trust.hosts["api.example.com"] = .pinnedKeys(of: certificates)
        let real = Client(baseURL: url, session: Session(configuration: configuration))
        #expect(real.session.configuration.trust.policy(for: "api.example.com")?.pins == [])
        // The stub has no TLS.
        configuration.trust = TrustPolicies()
        let client = Client(baseURL: url, session: Session(configuration: configuration, stub: stub))
        let response = try await client.response(for: try client.request(.get, "moved"))
        #expect(response.status == 302)
        var lines = journal.lines.makeAsyncIterator()
        #expect(await lines.next()?.hasSuffix(" ok") == true)
    }

    @Test func groups() async throws {
        func show(_ user: User, _ drafts: [Draft]) { #expect(user.name == "Ada" && drafts.count == 1) }
        async let user: User = client.get("users/1")
        async let drafts: [Draft] = client.get("drafts")
        show(try await user, try await drafts)
        await client.session.drained()
    }

    @Test func views() async throws {
        let photos = Photos()
        let (imageView, button, webView) = (Photo(photos.pipeline), PlayButton(), Page())
        button.imagePipeline = photos.pipeline
        webView.webSession = client.session
        let url = photos.url("/slow/40")
        let grey = try PhotoDecoder.image(1)
        @Sendable func nightly(_ html: String) -> String { html.replacing("day", with: "night") }
        imageView.loadImage(from: url, display: ImageDisplay(placeholder: .image(grey)))
        imageView.cancelImageLoad()
        button.loadImage(from: url, for: .selected)
        let request = try Request(.get, "https://api.example.com/page")
        webView.load(request, options: WebOptions(transform: .html { html, response in nightly(html) }))
        await photos.whileSlowOnesCome {
            await eventually { webView.text == "<p>night" && button.states == [.selected] }
        }
        #expect(imageView.lines.first == "1 placeholder")
    }
}

@MainActor
@Suite("Documentation: moving from SDWebImage", .timeLimit(.minutes(1)))
struct MovingFromSDWebImageDocumentationTests {
    private let photos = Photos()

    @Test func optionsAndContext() async throws {
        let (imageView, url) = (Photo(photos.pipeline), photos.url("/slow/40"))
        let grey = try PhotoDecoder.image(1)
        do {
            var request = ImageRequest(url)
            request.options.retriesFailed = true
            var display = ImageDisplay(placeholder: .image(grey))
            display.revalidatesCachedImage = true
            imageView.loadImage(from: request, display: display)
        }
        await photos.whileSlowOnesCome { await imageView.log.wait { $0.last == "ended" } }
        var request = ImageRequest(url, targetSize: PixelSize(width: 200, height: 200))
        request.processors = [.roundedCorners(radius: 12)]
        request.caching = .memoryOnly
        imageView.loadImage(from: request)
        await imageView.log.wait { $0.filter { $0 == "ended" }.count == 2 }
        #expect(imageView.lines.first == "1 placeholder" && imageView.imagePhase() == .success(.memory))
    }

    @Test func managerAndCache() async throws {
        let pipeline = photos.pipeline
        let url = photos.url("/40")
        func show(_ image: RasterImage, from source: ImageResponse.Source) {
            #expect(image.size.width == 40 && source == .network)
        }
        let response = try await pipeline.response(for: ImageRequest(url))
        show(response.image, from: response.source)
        let (request, image) = (photos.request("/41"), response.image)
        let known = pipeline.cachedImage(for: request)
        pipeline.cache(image, for: request)
        let isThere = await pipeline.isOnDisk(request)
        #expect(known == nil && pipeline.cachedImage(for: request)?.size.width == 40 && !isThere)
        try await pipeline.remove(request)
        #expect(pipeline.cachedImage(for: request) == nil)
    }

    @Test func downloaderAndPrefetcher() async throws {
        @Sendable func token() async throws -> String { "Bearer of its own" }
        let stub = photos.stub
        let pipeline = Photos.pipeline(stub) { configuration in
            configuration.maximumFetches = 8
            configuration.order = .lastInFirstOut
            configuration.hooks.prepare = { request in
                var request = request
                request.headers["Authorization"] = try await token()
                return request
            }
            configuration.hooks.cacheKey = { request in request.source.url?.path() }
        }
        let urls = ["/40", "/41"].compactMap { photos.url($0) }
        let prefetcher = ImagePrefetcher(pipeline: pipeline)
        let batch = prefetcher.prefetch(urls)
        var last: PrefetchBatch.Progress?
        for await progress in batch.progress { last = progress }
        batch.cancel()
        #expect(last?.finished == 2 && last?.total == 2)
        #expect(stub.calls.allSatisfy { $0.headers["Authorization"] == "Bearer of its own" })
        #expect(pipeline.cachedImage(for: photos.request("/40?signature=1")) != nil)
    }

    @Test func transformers() async throws {
        var request = photos.request("/40")
        request.processors = [
            .custom(identifier: "faded") { image in
                try ImageProcessors.Monochrome().process(image)
            }
        ]
        #expect(try await photos.pipeline.image(from: request).size.width == 40)
    }
}
