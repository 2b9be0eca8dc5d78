import Testing

@testable import TernImages

@Suite struct CompositionProcessorTests {
    private struct Secret: Error {
        let token = "hunter2"
    }

    @Test func nestingChangesNeitherResultNorIdentity() throws {
        let size = PixelSize(width: 9, height: 9)
        let nested = ImageProcessors.Composition([
            .composition([.resize(to: size), .composition([.circle()])]), .composition([]), .tint(.black),
        ])
        let plain = ImageProcessors.Composition([.resize(to: size), .circle(), .tint(.black)])
        #expect(nested.identifier == plain.identifier)
        #expect(nested.identifier.hashValue == plain.identifier.hashValue)
        #expect(nested.steps.count == 3)
        let image = try noise(30, 20, seed: 4)
        #expect(try nested.process(image).bytes == plain.process(image).bytes)
        #expect(ImageProcessors.Composition([.circle()]).identifier == ImageProcessors.Circle().identifier)
        #expect(try ImageProcessors.Composition([]).process(image).bytes == image.bytes)
    }

    @Test func aClosuresErrorsAreTypedAndKeepTheirSecrets() throws {
        let image = try noise(3, 3, seed: 4)
        func kind(_ body: @escaping @Sendable (RasterImage) throws -> RasterImage) -> ImageError? {
            #expect(throws: ImageError.self) {
                try ImageProcessors.Custom(identifier: "mine", body).process(image)
            }
        }
        let foreign = kind { _ in throw Secret() }
        #expect(foreign?.kind == .processing)
        #expect(foreign?.underlying is Secret)
        #expect(foreign?.description.contains("mine") == true)
        #expect(foreign?.description.contains("hunter2") == false)
        #expect(kind { _ in throw CancellationError() }?.kind == .cancelled)
        #expect(kind { _ in throw ImageError(.corrupt, "so") } == ImageError(.corrupt, "so"))
    }
}
