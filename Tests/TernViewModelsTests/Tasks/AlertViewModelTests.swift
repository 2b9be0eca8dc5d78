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

@MainActor
@Suite("Binding alerts", .timeLimit(.minutes(1)))
struct AlertViewModelTests {
    private final class Window: AlertViewModel {
        let bindings = ViewBindings()
        let log = Log<TaskAlert>()

        func showAlert(_ alert: TaskAlert) { log.append(alert) }
    }

    private final class German: AlertViewModel {
        let bindings = ViewBindings()
        let log = Log<TaskAlert>()

        func showAlert(_ alert: TaskAlert) { log.append(alert) }

        func alert(for error: NetworkError) -> TaskAlert? {
            error.status == 404 ? TaskAlert(title: "Nicht gefunden", message: "Schade.", error: error) : nil
        }
    }

    private let session = Session(
        stub: StubTransport { call in
            if call.path == "/refused" { throw StubTransport.Failure(.connectionRefused, "nobody listens") }
            return .status(call.path == "/ok" ? 204 : 404)
        })
    private let window = Window()

    private func task(_ path: String) throws -> SessionTask<Response<Data>> {
        session.task(for: try Request(.get, "https://a.example\(path)?token=s3cret"))
    }

    @Test func aFailureIsOneAlert() async throws {
        let task = try task("/refused")
        let binding = window.bindAlert(to: task)
        task.resume()
        await window.log.wait(for: 1)
        let alert = try #require(window.log.events.first)
        #expect(alert.title == "Cannot Connect" && alert.message == "Nobody listens.")
        #expect(alert.error.kind == .connectionRefused && binding.outcome == .finished && window.alertBindings.isEmpty)
    }

    @Test func aTaskThatHasFailedAlreadyIsAnAlertToo() async throws {
        let task = try task("/missing")
        task.resume()
        await eventually { task.state.isTerminal }
        window.bindAlert(to: task)
        await window.log.wait(for: 1)
        #expect(window.log.events.first?.title == "Not Found")
        #expect(window.log.events.first?.message.contains("s3cret") == false)
    }

    @Test func successAndCancellationHaveNoAlert() async throws {
        let (good, cancelled) = (try task("/ok"), try task("/refused"))
        let bindings = [window.bindAlert(to: good), window.bindAlert(to: cancelled)]
        good.resume()
        cancelled.cancel()
        await eventually { bindings.allSatisfy { !$0.isActive } }
        await settle()
        #expect(window.log.events.isEmpty && bindings.allSatisfy { $0.outcome == .finished })
    }

    @Test func severalTasksAreBoundAtOnceAndTheSameOneOnce() async throws {
        let (first, second) = (try task("/refused"), try task("/missing"))
        let replaced = window.bindAlert(to: first)
        window.bindAlert(to: second)
        window.bindAlert(to: first)
        #expect(replaced.outcome == .replaced && window.alertBindings.count == 2)
        first.resume()
        second.resume()
        await window.log.wait(for: 2)
        await settle()
        #expect(Set(window.log.events.map(\.title)) == ["Cannot Connect", "Not Found"])
        #expect(window.log.events.count == 2 && Set(window.log.events.map(\.id)).count == 2)
    }

    @Test func unboundTasksFailSilently() async throws {
        let task = try task("/refused")
        let binding = window.bindAlert(to: task)
        window.unbindAlerts()
        task.resume()
        await eventually { task.state.isTerminal }
        await settle()
        #expect(window.log.events.isEmpty && binding.outcome == .unbound)
    }

    @Test func theViewMayChooseTheAlert() async throws {
        let view = German()
        let (shown, silent) = (try task("/missing"), try task("/refused"))
        let bindings = [view.bindAlert(to: shown), view.bindAlert(to: silent)]
        shown.resume()
        silent.resume()
        await eventually { bindings.allSatisfy { !$0.isActive } }
        #expect(view.log.events.map(\.title) == ["Nicht gefunden"])
    }

    @Test func everyKindOfErrorHasAnAlert() async throws {
        let kinds: [NetworkError.Kind] = [
            .dns, .idleTimedOut, .connectionLost, .pinMismatch, .authentication, .decoding, .fileSystem, .unsupported,
        ]
        for kind in kinds {
            let session = Session(stub: StubTransport { _ in throw StubTransport.Failure(kind, "why") })
            let task = session.task(for: try Request(.get, "https://a.example/"), startsImmediately: true)
            window.bindAlert(to: task)
            await eventually { window.alertBindings.isEmpty }
        }
        #expect(window.log.events.count == kinds.count && Set(window.log.events.map(\.title)).count == kinds.count)
        #expect(window.log.events.allSatisfy { $0.message == "Why." })
    }

    @Test func aPictureThatTheServerDoesNotHaveReadsAsAnyTask() async throws {
        let photos = Photos()
        let error = await #expect(throws: ImageError.self) { try await photos.load("/missing") }
        let again = await #expect(throws: ImageError.self) { try await photos.load("/missing") }
        #expect(again?.kind == .failedBefore)
        let german = German()
        for error in [error, again].compactMap(\.self) {
            window.showAlert(for: error)
            german.showAlert(for: error)
        }
        #expect(window.log.events.map(\.title) == ["Not Found", "Not Found"])
        #expect(german.log.events.map(\.title) == ["Nicht gefunden", "Nicht gefunden"])
    }

    @Test func anInvalidImageHasItsOwnAlert() throws {
        window.showAlert(for: ImageError(.unknownFormat, "the first bytes are of no known format"))
        window.showAlert(for: ImageError(.cancelled, "the load was cancelled"))
        #expect(window.log.events.map(\.title) == ["The Picture Cannot Be Shown"])
        let alert = try #require(window.log.events.first)
        #expect(alert.message == "The first bytes are of no known format.")
        #expect((alert.error.underlying as? ImageError)?.kind == .unknownFormat)
    }

    @Test(arguments: [
        (ImageError.Kind.invalidURL, "The Address Is Not Valid"), (.source, "The Picture Could Not Be Read"),
        (.notCached, "The Picture Is Not There Yet"), (.limitExceeded, "The Picture Is Too Large"),
    ])
    func thePicturesFailuresHaveTitles(kind: ImageError.Kind, title: String) {
        #expect(TaskAlert(ImageError(kind, "x"))?.title == title)
    }
}
