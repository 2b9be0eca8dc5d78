import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests which requests are the same image. The texts of keys are on disks, so they must not change.
@Suite struct ImageKeyTests {
    private func key(_ text: String, _ change: (inout ImageRequest) -> Void = { _ in }) throws -> ImageKey {
        var request = ImageRequest(try url(text))
        change(&request)
        return ImageKey(request)
    }

    @Test func theTextOfAKeyIsAPromise() throws {
        let address = "https://a.example/1@2x.png?v=1"
        #expect(try key(address).text == "image https://a.example/1@2x.png?v=1")
        let target = try key(address) {
            $0.targetSize = PixelSize(width: 20, height: 30)
            $0.contentMode = .fill
            $0.processors = [.rotate(degrees: 90)]
            $0.scale = 1
        }
        let rotation = ImageProcessors.Rotate(degrees: 90).identifier
        #expect(target.text == "image \(address) 20×30 fill | \(rotation)")
        #expect(try key(address) { $0.options.decodedByteLimit = 100 }.text == "image \(address) ≤100")
        #expect(try key(address) { $0.options.decodesFirstFrameOnly = true }.text == "image \(address) first")
        #expect(
            try key(address) { $0.processors = [.rotate(degrees: 90)] }.text == "image \(address) @2.0 | \(rotation)")
        #expect(try key(address) { $0.options.handlesCookies = true }.text == "image \(address)")
        #expect(
            try key(address) { $0.options.allowsInvalidCertificates = true }.text == "image \(address) !certificates")
    }

    @Test func aRequestsHeadersMethodAndBodyCountAsADigest() throws {
        var request = try Request(.get, "https://a.example/1.png")
        #expect(SourceKey(request).text == "https://a.example/1.png")
        request.headers["X-Request-ID"] = "1"
        #expect(SourceKey(request).text == "https://a.example/1.png")
        request.headers["Authorization"] = "Bearer ada"
        let ada = SourceKey(request).text
        #expect(ada == "https://a.example/1.png #35b84c67f5a38a4e09f5c6c6e7ea7ee1" || ada.count == 57)
        request.headers["authorization"] = "Bearer ada"
        #expect(SourceKey(request).text == ada)
        request.headers["Authorization"] = "Bearer eve"
        #expect(SourceKey(request).text != ada)
        var post = try Request(.post, "https://a.example/1.png")
        post.body = .data(Data("a".utf8))
        #expect(SourceKey(post).text.hasPrefix("POST https://a.example/1.png #"))
        // The order of different headers has no meaning.
        var (one, other) = (try Request(.get, "https://a.example/1.png"), try Request(.get, "https://a.example/1.png"))
        one.headers = ["Accept": "a", "X-B": "b"]
        other.headers = ["X-B": "b", "Accept": "a"]
        #expect(SourceKey(one) == SourceKey(other))
    }

    @Test(arguments: [
        ("https://a.example/photo@2x.png", 2.0), ("https://a.example/photo@3x.png?v=@2x.png", 3),
        ("https://a.example/photo@2x", 2), ("https://a.example/photo.png", 1), ("https://a.example/@2x/photo.png", 1),
        ("https://a.example/photo@0x.png", 1), ("https://a.example/photo@22x.png", 1),
        ("https://a.example/me@2xy.png", 1),
        ("https://me@2x.example/photo.png", 1), ("file:///my%20photos/photo@3x.png", 3), ("https://a.example/", 1),
    ])
    func theNameSaysTheScale(_ text: String, scale: Double) throws {
        #expect(try key(text).scale == scale)
        #expect(try key(text) { $0.scale = 1.5 }.scale == 1.5)
    }

    @Test func aTargetsModeCountsOnlyWithATarget() throws {
        let text = "https://a.example/1.png"
        #expect(try key(text) { $0.contentMode = .fill } == (try key(text)))
        #expect(try key(text) { $0.targetSize = PixelSize(width: 1, height: 1) } != (try key(text)))
        #expect(try key(text) { $0.options.processesAnimations = true } == (try key(text)))
    }

    @Test func compositionsAreTheirSteps() throws {
        let text = "https://a.example/1.png"
        let steps: [any ImageProcessor] = [.rotate(degrees: 90), .flip(.horizontal)]
        let plain = try key(text) { $0.processors = steps }
        #expect(try key(text) { $0.processors = [ImageProcessors.Composition(steps)] } == plain)
        #expect(try plain.inputKey == key(text) { $0.processors = [.rotate(degrees: 90)] })
        #expect(try plain.inputKey?.inputKey == key(text))
        #expect(try key(text).inputKey == nil)
    }

    /// The caller chooses such names, and they can come from users.
    @Test func noNameIsTheKeyOfAnotherImage() throws {
        func data(_ name: String, _ change: (inout ImageRequest) -> Void = { _ in }) -> String {
            var request = ImageRequest(.data(name) { throw CancellationError() })
            change(&request)
            return ImageKey(request).text
        }
        #expect(data("a first") != data("a") { $0.options.decodesFirstFrameOnly = true })
        #expect(data("a 10×10 fit") != data("a") { $0.targetSize = PixelSize(width: 10, height: 10) })
        let rotation = ImageProcessors.Rotate(degrees: 90).identifier
        #expect(data("a | \(rotation)") != data("a") { $0.processors = [.rotate(degrees: 90)] })
    }
}
