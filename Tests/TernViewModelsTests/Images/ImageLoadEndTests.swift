import Tern
import TernTesting
import Testing

@testable import TernImages
@testable import TernViewModels

/// The end of a load, where it meets what comes at the same time.
@MainActor
@Suite("Image loads' ends", .timeLimit(.minutes(1)))
struct ImageLoadEndTests {
    private let photos = Photos()

    @MainActor
    private final class Answering: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var widths: [Int] = []
        /// What happens while the first picture is shown.
        var meanwhile: (@MainActor () -> Void)?

        func showImage(_ shown: ShownImage, in slot: ImageSlot) {
            widths += shown.image.map { [$0.size.width] } ?? []
            let work = meanwhile
            meanwhile = nil
            work?()
        }
    }

    private func response(_ width: Int, _ source: ImageResponse.Source) async throws -> ImageResponse {
        var response = try await photos.pipeline.response(for: photos.request("/\(width)"))
        response.source = source
        return response
    }

    @Test(arguments: [false, true])
    func aChangedPictureThatComesWhileTheFirstIsShownIsShownToo(isThereAtOnce: Bool) async throws {
        let (first, changed) = (try await response(40, .original), try await response(50, .network))
        let view = Answering()
        var request = photos.request("/slow/1")
        request.options.revalidation = .always
        let task = photos.pipeline.task(for: request)
        view.meanwhile = { task.end(.success(changed)) }
        if isThereAtOnce { task.deliver(first) }
        let load = view.showImage(of: task)
        if !isThereAtOnce { task.deliver(first) }
        #expect(try await load.value.image.size.width == 50)
        #expect(view.widths == [40, 50])
    }

    @Test func theFirstEndCounts() async throws {
        let core = ImageLoadCore()
        #expect(core.finish(.success(try await response(40, .network))))
        #expect(!core.finish(.success(try await response(50, .network))))
        #expect(!core.cancel())
        #expect(try await core.value().image.size.width == 40)
    }

    @Test func aCallerWhoGivesUpEndsItsWaitAlone() async throws {
        let core = ImageLoadCore()
        let caller = Task { () -> ImageError.Kind? in
            do throws(ImageError) {
                _ = try await core.value()
                return nil
            } catch {
                return error.kind
            }
        }
        caller.cancel()
        #expect(await caller.value == .cancelled)
        #expect(core.result == nil)
    }
}
