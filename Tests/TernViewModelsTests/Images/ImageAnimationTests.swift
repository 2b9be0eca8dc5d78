import Tern
import TernImages
import TernTesting
import Testing

@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests animations in views with a manual clock.
@MainActor
@Suite("Image views: animations", .timeLimit(.minutes(1)))
struct ImageAnimationTests {
    private let photos = Photos()
    private let clock = ManualClock()

    private var display: ImageDisplay {
        var display = ImageDisplay()
        display.clock = clock
        return display
    }

    private func frames(_ photo: Photo) -> [String] { photo.lines.filter { $0.hasSuffix("frame") } }

    /// Advances the clock to the next frame.
    private func tick() async throws {
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(100))
    }

    @Test func anAnimationPlaysByTheClock() async throws {
        try await photos.load("/40/3")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40/3"), display: display)
        #expect(photo.lines == ["40 memory", "ended"], "the first frame is there within the call")
        for width in [40, 41, 42, 40, 41] {
            await photo.log.wait { $0.last == "\(width) memory frame" }
            try await tick()
        }
        #expect(photo.imagePlayback() != nil)
    }

    @Test func anotherPictureEndsThePlaying() async throws {
        try await photos.load("/40/3")
        try await photos.load("/50")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40/3"), display: display)
        let player = photo.imagePlayback()?.player
        await photo.log.wait { $0.last == "40 memory frame" }
        photo.loadImage(from: photos.url("/50"), display: display)
        #expect(photo.imagePlayback() == nil)
        clock.advance(by: .seconds(1))
        await settle()
        #expect(photo.lines.suffix(2) == ["50 memory", "ended"])
        // The stream of the frames has ended as well.
        if let player { for await _ in player.frames { Issue.record("a frame") } }
    }

    @Test func whileALoadWaitsTheAnimationOfBeforePlaysOn() async throws {
        try await photos.load("/40/3")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40/3"), display: display)
        photo.loadImage(from: photos.url("/slow/50"), display: display)
        #expect(photo.imagePlayback() != nil)
        await photo.log.wait { $0.last == "40 placeholder frame" }
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.imagePlayback() == nil)
    }

    @Test func anAnimationStandsWhileItsViewIsNotVisible() async throws {
        try await photos.load("/40/3")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40/3"), display: display)
        await photo.log.wait { $0.last == "40 memory frame" }
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(60))
        photo.setImagesVisible(false)
        clock.advance(by: .seconds(10))
        await settle()
        #expect(frames(photo) == ["40 memory frame"])
        photo.setImagesVisible(true)
        // The remaining time of the frame is unchanged.
        await eventually { clock.nextDeadline == ManualClock.Instant(offset: .milliseconds(10_100)) }
        clock.advance(by: .milliseconds(40))
        await photo.log.wait { $0.last == "41 memory frame" }
    }

    @Test func anAnimationPausedByTheUserIsNotResumedByBecomingVisible() async throws {
        try await photos.load("/40/3")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40/3"), display: display)
        let player = try #require(photo.imagePlayback()?.player)
        player.pause()
        photo.setImagesVisible(false)
        photo.setImagesVisible(true)
        #expect(player.isPaused)
        // An animation that begins while the view is not visible starts paused.
        photo.setImagesVisible(false)
        try await photos.load("/60/3")
        photo.loadImage(from: photos.url("/60/3"), display: display)
        #expect(photo.imagePlayback()?.player.isPaused == true)
        photo.setImagesVisible(true)
        #expect(photo.imagePlayback()?.player.isPaused == false)
    }

    @Test func visibilityIsTheLoadsRankToo() async throws {
        let photo = Photo(photos.pipeline)
        let load = photo.loadImage(from: photos.url("/slow/40"))
        #expect(load.task?.isVisible == false)
        photo.setImagesVisible(true)
        #expect(load.task?.isVisible == true)
        let next = photo.loadImage(from: photos.url("/slow/41"))
        #expect(next.task?.isVisible == true)
    }

    @Test func aViewMayPlayItself() async throws {
        try await photos.load("/40/3")
        let view = Framed(photos.pipeline)
        var display = display
        display.playback = nil
        view.loadImage(from: photos.url("/40/3"), display: display)
        #expect(view.shown.count == 1 && view.shown[0].animation?.count == 3 && view.imagePlayback() == nil)
    }

    @MainActor
    private final class Framed: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var shown: [ImageUpdate] = []

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) { self.shown.append(update) }
    }

    @Test func viewsThatShowTheSameAnimationShareItsFrames() async throws {
        try await photos.load("/40/3")
        let views = (0..<3).map { _ in Photo(photos.pipeline) }
        for view in views { view.loadImage(from: photos.url("/40/3"), display: display) }
        let images = views.compactMap { $0.imagePlayback()?.player.image }
        #expect(images.count == 3 && images.allSatisfy { $0 === images[0] })
    }

    @Test func aPlaybackDoesNotKeepItsViewAlive() async throws {
        try await photos.load("/40/3")
        var photo: Photo? = Photo(photos.pipeline)
        photo?.loadImage(from: photos.url("/40/3"), display: display)
        let player = photo?.imagePlayback()?.player
        await photo?.log.wait { $0.last == "40 memory frame" }
        weak let weakly = photo
        photo = nil
        #expect(weakly == nil)
        await eventually { clock.sleeperCount == 0 }
        if let player { for await _ in player.frames { Issue.record("a frame") } }
    }

    // MARK: Pictures of several URLs

    @Test func picturesOfSeveralURLsPlayInTheirPlacesAsTheyCome() async throws {
        try await photos.load("/42")
        let photo = Photo(photos.pipeline)
        let requests = ["/slow/40", "/slow/41", "/42"].map(photos.request)
        let loads = photo.loadAnimationImages(requests, frameDuration: .milliseconds(100), display: display)
        #expect(photo.imageLoads.all(for: .animation).count == 2)
        await photo.log.wait { $0.contains("animation images: 42 memory frame") }
        try await photos.clock.waitForSleepers(2)
        photos.clock.advance(by: .seconds(1))
        for load in loads { _ = try await load.value }
        await eventually { photo.imageLoads[.animation] == nil }
        // The animation restarted with each new image; now all three play from the first.
        let playback = try #require(photo.imagePlayback(in: .animation))
        #expect(playback.player.image.count == 3)
        await photo.log.wait { $0.last?.contains(": 40 ") ?? false }
        // The frame may be that of an earlier player: all later ones are from the last.
        photo.log.removeAll()
        playback.player.seek(toFrame: 1)
        await photo.log.wait { $0.last?.contains(": 41 ") ?? false }
        for width in [42, 40, 41] {
            try await tick()
            await photo.log.wait { $0.last?.contains(": \(width) ") ?? false }
        }
    }

    @Test func oneThatFailsLeavesTheOthersAndTheFailureIsShownWhenAllHave() async throws {
        try await photos.load("/40")
        let photo = Photo(photos.pipeline)
        var display = display
        (display.placeholder, display.failure) = (.custom("grey"), .custom("torn"))
        let mixed = photo.loadAnimationImages(
            [photos.request("/slow"), photos.request("/40"), ImageRequest(nil)], display: display)
        try await photos.advance()
        #expect(await mixed[0].failure() == .network)
        #expect(await mixed[2].failure() == .invalidURL)
        // A single image is shown and no longer plays.
        await eventually { frames(photo) == ["animation images: 40 memory frame"] }
        #expect(photo.imagePhase(of: .animation) == .success(.memory))
        #expect(!photo.lines.contains { $0.contains("torn") })
        let none = photo.loadAnimationImages([ImageRequest(nil), ImageRequest(nil)], display: display)
        #expect(none.allSatisfy { !$0.isActive })
        #expect(photo.lines.last { $0.contains("animation images") }?.contains("torn") == true)
        #expect(photo.imagePlayback(in: .animation) == nil)
    }

    @Test func anotherCallOfTheSlotCancelsAll() async throws {
        let photo = Photo(photos.pipeline)
        let loads = photo.loadAnimationImages(["/slow/40", "/slow/41"].map(photos.request), display: display)
        photo.loadAnimationImages([], display: display)
        for load in loads { #expect(await load.failure() == .cancelled) }
        #expect(photo.imagePlayback(in: .animation) == nil)
    }
}
