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

    @Test func aPrefixIsSharedByListsThatBeginAlike() throws {
        let size = PixelSize(width: 9, height: 9)
        let one = ImageProcessors.Composition([.resize(to: size), .circle(), .tint(.black)])
        let other = ImageProcessors.Composition([.resize(to: size), .circle(), .tint(.white)])
        #expect(one.prefixes.map(\.identity).prefix(2) == other.prefixes.map(\.identity).prefix(2))
        #expect(one.prefixes.last?.identity != other.prefixes.last?.identity)
        #expect(one.prefixes.last?.identity == one.identifier)
        #expect(Set((one.prefixes + other.prefixes).map(\.identity)).count == 4)
        #expect(ImageProcessors.Composition([]).prefixes.isEmpty)
        var image = try noise(30, 20, seed: 4)
        let whole = try one.process(image)
        for prefix in one.prefixes { image = try prefix.last.process(image) }
        #expect(image.bytes == whole.bytes)
    }

    @Test func aStepRepeatedMakesAPrefixOfItsOwn() {
        let list = ImageProcessors.Composition([.flip(.vertical), .flip(.vertical)])
        #expect(list.prefixes.count == 2)
        #expect(list.prefixes[0].identity != list.prefixes[1].identity)
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
