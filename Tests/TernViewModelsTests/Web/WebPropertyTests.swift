import Tern
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests random orders of loads, cancellations, pauses, failures and released views: only the current load is
/// shown, each load ends once for its caller, each start has one end for its view, and no view is kept alive.
@MainActor
@Suite("Web loads in any order", .timeLimit(.minutes(1)))
struct WebPropertyTests {
    private final class View: WebContentViewModel {
        /// The view's own bindings; nil for bindings in the table.
        let stored: ViewBindings?
        /// The load that may be shown.
        var current: String?
        var faults: [String] = []
        private var started: String?

        init(isStored: Bool) { stored = isStored ? ViewBindings() : nil }

        var bindings: ViewBindings { stored ?? ViewBindings(of: self) }

        func showContent(_ content: WebContent) {
            let path = content.baseURL?.path() ?? ""
            if path != current { faults.append("\(path) was shown, not \(current ?? "nothing")") }
        }

        func didStartLoading(_ load: WebLoad) {
            if let started { faults.append("\(started) was not ended") }
            started = path(load)
        }

        func didFinishLoading(_ load: WebLoad) { end(load, isCurrent: true) }
        func didFailLoading(_ load: WebLoad, _ error: NetworkError) { end(load, isCurrent: true) }
        func didCancelLoading(_ load: WebLoad) { end(load, isCurrent: false) }

        private func end(_ load: WebLoad, isCurrent: Bool) {
            if started != path(load) { faults.append("\(path(load)) ended, and not \(started ?? "nothing")") }
            if isCurrent, current != path(load) { faults.append("\(path(load)) was told of, and not \(current ?? "")") }
            started = nil
        }

        private func path(_ load: WebLoad) -> String { load.request.url?.path() ?? "" }
    }

    private final class Weak {
        weak var view: View?
        init(_ view: View) { self.view = view }
    }

    /// One run of random steps.
    @MainActor
    private final class Run {
        private struct Refusal: Error {}

        private var random: SeededGenerator
        private let clock = ManualClock()
        private let session: Session
        private var views: [View] = []
        private var gone: [Weak] = []
        /// The loads of released views.
        private var orphans: [WebLoad] = []
        private var faults: [String] = []
        private var loads: [WebLoad] = []
        private var ends: [Int: Int] = [:]
        private var callers: [Task<Void, Never>] = []

        init(seed: Int) {
            random = SeededGenerator(seed: seed)
            session = Session(
                stub: StubTransport(clock: clock) { call in
                    if call.path.hasPrefix("/bad") { return .status(404) }
                    let answer = StubTransport.Answer.text(call.path, contentType: "text/html; charset=utf-8")
                    return call.path.hasPrefix("/slow") ? answer.delayed(by: .seconds(1)) : answer
                })
            for _ in 0..<2 { addView() }
        }

        private func addView() {
            let view = View(isStored: Bool.random(using: &random))
            view.webSession = session
            views.append(view)
        }

        func step() async throws {
            let view = views[Int.random(in: 0..<views.count, using: &random)]
            let load = loads.randomElement(using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1, 2: try start(view)
            case 3: load?.resume()
            case 4: load?.pause()
            case 5:
                for view in views where view.webLoad === load { view.current = nil }
                load?.cancel()
            case 6:
                view.current = nil
                view.cancelLoading()
            case 7: clock.advance(by: .milliseconds(600))
            case 8: replaceView()
            default: for _ in 0..<Int.random(in: 1..<20, using: &random) { await Task.yield() }
            }
        }

        private func start(_ view: View) throws {
            let number = loads.count
            let kind = ["/slow", "/bad", "/page", "/refused"][Int.random(in: 0..<4, using: &random)]
            let path = "\(kind)/\(number)"
            let transform = kind == "/refused" ? WebTransform.data { _, _ in throw Refusal() } : .none
            let options = WebOptions(transform: transform, startsImmediately: Int.random(in: 0..<4, using: &random) > 0)
            view.current = path
            let load = view.load(try Request(.get, "https://a.example\(path)"), options: options)
            loads.append(load)
            callers.append(
                Task { [weak self] in
                    // `try?`: other tests check the result; this one only counts the ends.
                    _ = try? await load.value
                    self?.ends[number, default: 0] += 1
                })
        }

        private func replaceView() {
            let index = Int.random(in: 0..<views.count, using: &random)
            faults += views[index].faults
            gone.append(Weak(views[index]))
            if let load = views[index].webLoad { orphans.append(load) }
            views.remove(at: index)
            addView()
        }

        func finish() async {
            // No load continues after its view was released, whatever the clock shows.
            BindingTable.shared.sweep()
            await eventually { orphans.allSatisfy { !$0.isActive } }
            for load in loads where Bool.random(using: &random) { load.resume() }
            for _ in 0..<5 {
                clock.advance(by: .seconds(1))
                await Task.yield()
            }
            for load in loads { load.cancel() }
            for caller in callers { await caller.value }
        }

        func verify(_ seed: Int) {
            faults += views.flatMap(\.faults)
            #expect(faults.isEmpty, "seed \(seed)")
            #expect(ends.count == loads.count && ends.values.allSatisfy { $0 == 1 }, "seed \(seed)")
            #expect(loads.allSatisfy { !$0.isActive }, "seed \(seed): a load has not ended")
            #expect(gone.allSatisfy { $0.view == nil }, "seed \(seed): a view was kept alive")
            #expect(views.allSatisfy { $0.webLoad == nil }, "seed \(seed): a load is left in its slot")
        }
    }

    @Test(arguments: 0..<10)
    func onlyTheCurrentLoadIsShownAndEachEndsOnce(block: Int) async throws {
        for seed in block * 20..<(block + 1) * 20 {
            let run = Run(seed: seed)
            for _ in 0..<80 { try await run.step() }
            await run.finish()
            run.verify(seed)
        }
    }
}
