import Tern
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/BindingProgress.md, WebContent.md and WritingViewModels.md, verbatim, with plain
// classes in place of widgets.

@MainActor
private final class DrawnBar {
    private(set) var drawn: [Double] = []
    var isPulsing = false
    func setFraction(_ fraction: Double, animated: Bool) { drawn.append(fraction) }
}

extension DrawnBar: ProgressViewModel {
    func showProgress(_ progress: ProgressUpdate) {
        if let fraction = progress.fraction {
            setFraction(fraction, animated: progress.isAnimated)
        } else {
            isPulsing = !progress.isFinished
        }
    }
}

@MainActor
private final class DrawnSpinner {
    private(set) var isSpinning = false
    func start() { isSpinning = true }
    func stop() { isSpinning = false }
}

extension DrawnSpinner: ActivityViewModel {
    var isActivityShown: Bool { isSpinning }
    func beginActivity() { start() }
    func endActivity() { stop() }
}

@MainActor
private final class DrawnIndicator: NetworkActivityViewModel {
    private(set) var isHidden = true
    func showNetworkActivity(_ isVisible: Bool) { isHidden = !isVisible }
}

@MainActor
private final class DrawnWindow {
    let presented = Log<String>()
    func present(_ title: String, _ message: String) { presented.append("\(title): \(message)") }
}

extension DrawnWindow: AlertViewModel {
    func showAlert(_ alert: TaskAlert) { present(alert.title, alert.message) }
}

@MainActor
private final class DrawnPage {
    private(set) var text = ""
    func load(_ data: Data, mimeType: String, encoding: String, baseURL: URL?) {
        text = String(decoding: data, as: UTF8.self)
    }
}

extension DrawnPage: WebContentViewModel {
    func showContent(_ content: WebContent) {
        load(content.data, mimeType: content.mimeType, encoding: content.textEncoding, baseURL: content.baseURL)
    }
}

@MainActor
private protocol StateViewModel: BindableView {
    func showState(_ state: Session.TaskState)
}

extension StateViewModel {
    @discardableResult
    func bindState(of task: any TaskHandle) -> ViewBinding {
        bind(task.states, of: task, for: .state) { view, state in view.showState(state) }
    }
}

extension BindingKey<ViewBinding> {
    fileprivate static var state: Self { Self("state") }
}

private final class Label: StateViewModel {
    let bindings = ViewBindings()
    var text = ""

    func showState(_ state: Session.TaskState) { text = "\(state)" }
}

@MainActor
private final class NameLabel: BindableView {
    var text = ""
}

@MainActor
private final class Lookup: BindingContent {
    private let task: SessionTask<String>
    private var registration: ViewBindings.Registration?

    init(_ task: SessionTask<String>) { self.task = task }

    func start(for view: NameLabel) {
        registration = view.bindings.set(self, for: .lookup)
        // Ends with the task, which is cancelled when the content leaves its slot.
        Task { [weak self, weak view, task] in
            let name = try? await task.value  // No name: the label stays as it is.
            guard let self, self.registration?.isCurrent == true else { return }
            self.registration?.remove()
            if let name { view?.text = name }
        }
    }

    func didLeaveSlot(_ reason: SlotRemovalReason) { task.cancel() }
    nonisolated func viewWasReleased() { task.cancel() }
}

extension BindingKey<Lookup> {
    fileprivate static var lookup: Self { Self("lookup") }
}

@MainActor
@Suite("Documentation: view models", .timeLimit(.minutes(1)))
struct BindingDocumentationTests {
    private let clock = ManualClock()
    private let client: Client

    init() throws {
        let stub = StubTransport(clock: clock) { call in
            switch call.path {
            case "/big":
                let headers: Headers = ["Content-Length": "2"]
                return .chunks([Data("a".utf8), Data("b".utf8)], interval: .seconds(1), headers: headers)
            case "/page": return .text("<body>page", contentType: "text/html")
            case "/search": return .text("\(call.method) \(call.text)", contentType: "text/html")
            case "/name": return .text("Ada")
            default: return .status(500)
            }
        }
        client = try Client(baseURL: "https://example.com", session: Session(stub: stub))
    }

    private func task(_ path: String) -> SessionTask<Data> { client.task(.get, path) }

    private func step() async throws {
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
    }

    @Test func aBarAndItsButtons() async throws {
        let bar = DrawnBar()
        let task: SessionTask<Data> = client.task(.get, "big", startsImmediately: false)
        let binding = try #require(bar.bindDownloadProgress(of: task, animated: true))
        #expect(bar.isPulsing && binding.canResume)
        binding.resume()
        #expect(binding.canPause)
        binding.pause()
        binding.resume()
        try await step()
        await eventually { !binding.isActive }
        #expect(bar.drawn.last == 1)
        binding.cancel()
        binding.unbind()
        bar.unbindProgress()
    }

    @Test func spinnersCount() async throws {
        let spinner = DrawnSpinner()
        let (first, second, third) = (task("big"), task("big"), task("big"))
        spinner.bindActivity(to: first)
        #expect(spinner.isSpinning)
        spinner.bindActivity(to: [first, second])
        spinner.bindActivity(to: [third], adding: true)
        first.cancel()
        second.cancel()
        await eventually { first.state.isTerminal && second.state.isTerminal }
        #expect(spinner.isSpinning)
        spinner.unbindActivity(ending: true)
        #expect(!spinner.isSpinning)
        third.cancel()
    }

    @Test func theIndicatorAndAlerts() async throws {
        let (indicator, window, clock) = (DrawnIndicator(), DrawnWindow(), ManualClock())
        let activity = NetworkActivity(clock: clock)
        await activity.follow(client.session.tasks)
        await activity.setEnabled(true)
        indicator.bindNetworkActivity(activity)
        let task = task("big")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await eventually { !indicator.isHidden }
        task.cancel()
        window.bindAlert(to: self.task("wrong"))
        await window.presented.wait(for: 1)
        #expect(window.presented.events.first?.hasPrefix("The Server Failed: ") == true)
    }

    @Test func observableModels() async throws {
        let task = task("big")
        let model = ObservableProgress()
        model.bindDownloadProgress(of: task)
        try await step()
        await eventually { model.isFinished }
        #expect(model.fraction == 1)
    }

    @Test func webContent() async throws {
        let webView = DrawnPage()
        webView.webSession = client.session
        let load = webView.load(try Request(.post, "https://example.com/search", body: .text("q=tern")))
        let content = try await load.value
        #expect(webView.text == "POST q=tern" && content.mimeType == "text/html")
        let request = try Request(.get, "https://example.com/page")
        let options = WebOptions(
            transform: .html { html, response in
                html.replacing("<body>", with: "<body class=\"night\">")
            })
        _ = try await webView.load(request, options: options).value
        #expect(webView.text == "<body class=\"night\">page")
        webView.loadsLinksThroughTern = true
        let allows = webView.navigate(WebNavigation(.link, request))
        #expect(!allows && webView.webLoad != nil && webView.canGoBack)
        webView.cancelLoading()
    }

    @Test func ownViewModels() async throws {
        let label = Label()
        let task = task("big")
        let binding = label.bindState(of: task)
        await eventually { label.text == "running" }
        task.pause()
        await eventually { label.text == "suspended" }
        label.bindings.cancel(.state)
        task.cancel()
        await eventually { task.state == .cancelled }
        await settle()
        #expect(label.text == "suspended" && binding.outcome == .unbound && binding.task?.id == task.id)
        let other = label.bindState(of: task)
        await eventually { !other.isActive }
        #expect(label.text == "cancelled" && other.outcome == .finished && label.bindings.isEmpty)
    }

    @Test func ownContents() async throws {
        let label = NameLabel()
        let lost: SessionTask<String> = client.task(.get, "big")
        Lookup(lost).start(for: label)
        Lookup(client.task(.get, "name")).start(for: label)
        await eventually { label.text == "Ada" }
        await eventually { lost.state == .cancelled }
        #expect(label.bindings.isEmpty)
    }
}
