import Testing

@testable import TernImages

/// One of each processor, and each with every parameter changed, on an asymmetric image.
private func everyProcessor() throws -> [any ImageProcessor] {
    let size = PixelSize(width: 13, height: 9)
    let red = ImageColor(red: 250, green: 3, blue: 9, alpha: 130)
    let line = ImageBorder(width: 1.25, color: red)
    let mark = try noise(5, 4, seed: 99)
    return [
        .resize(to: size), .resize(to: size, mode: .fill), .resize(to: size, mode: .atLeast),
        .resize(to: size, allowsUpsampling: true), .resize(to: size, mode: .fill, allowsUpsampling: true),
        .resize(to: size, mode: .atLeast, allowsUpsampling: true), .resize(to: PixelSize(width: 9, height: 13)),
        .crop(to: size), .crop(x: 0, y: 0, width: 13, height: 9), .crop(x: 0, y: 0, width: 12, height: 9),
        .crop(x: -1, y: 0, width: 12, height: 9), .circle(), .circle(border: line),
        .circle(border: ImageBorder(width: 1.25, color: red, unit: .points)),
        .circle(border: ImageBorder(width: 1, color: red)), .roundedCorners(radius: 4),
        .roundedCorners(radius: 4.5), .roundedCorners(radius: 4, unit: .points),
        .roundedCorners(radius: 4, corners: [.topLeft]), .roundedCorners(radius: 4, border: line),
        .border(width: 1.25, color: red), .border(width: 1.25, color: .white), .border(width: 2, color: red),
        .border(width: 2, color: red, unit: .points), .flip(.horizontal), .flip(.vertical), .rotate(degrees: 90),
        .rotate(degrees: 180), .rotate(degrees: 33), .rotate(degrees: 33, background: red), .rotate(degrees: 0),
        .gaussianBlur(radius: 1.5), .gaussianBlur(radius: 6), .gaussianBlur(radius: 6, unit: .points), .tint(red),
        .tint(.black), .overlay(red), .overlay(.black), .overlay(mark, identifier: "mark"),
        .overlay(mark, identifier: "other"), .overlay(mark, identifier: "mark", opacity: 0.3),
        .overlay(mark, identifier: "mark", placement: .centered),
        .overlay(mark, identifier: "mark", placement: .at(x: 2, y: 3)),
        .overlay(mark, identifier: "mark", placement: .at(x: 3, y: 2)), .monochrome(),
        .composition([.circle(), .monochrome()]), .composition([.monochrome(), .circle()]), .composition([]),
        .custom(identifier: "a") { $0 }, .custom(identifier: "b") { $0 }, .custom(identifier: "a,b") { $0 },
    ]
}

@Suite(.timeLimit(.minutes(1))) struct ProcessorTests {
    @Test(arguments: [(1, 1), (1, 30), (31, 1), (40, 27), (90, 140)])
    func noProcessorLiftsAColorAboveItsAlpha(_ width: Int, _ height: Int) throws {
        for seed in 0..<4 {
            let image = try noise(width, height, seed: UInt64(seed))
            let before = image.bytes
            for processor in try everyProcessor() {
                let made = try processor.process(image)
                #expect(made.isPremultiplied, "\(processor.identifier)")
                #expect(made.bytes.count == made.size.pixelCount * 4)
                #expect(try processor.process(image).bytes == made.bytes)
            }
            #expect(image.bytes == before)
        }
    }

    @Test func identitiesAreEqualExactlyWhenTheParametersAre() throws {
        let (all, again) = (try everyProcessor().map(\.identifier), try everyProcessor().map(\.identifier))
        for (left, one) in all.enumerated() {
            for (right, other) in again.enumerated() {
                #expect((one == other) == (left == right), "\(one) and \(other)")
                #expect((one.description == other.description) == (left == right))
                #expect((one.hashValue == other.hashValue) == (left == right))
            }
        }
        #expect(ImageProcessors.Rotate(degrees: 450).identifier == ImageProcessors.Rotate(degrees: 90).identifier)
        #expect(ImageProcessors.Rotate(degrees: -0.0).identifier == ImageProcessors.Rotate(degrees: 0).identifier)
        #expect(ProcessorIdentity("a", parameters: [.nan]) == ProcessorIdentity("a", parameters: [.nan]))
    }

    @Test func theTextOfAnIdentityIsTheSameInEveryProcess() throws {
        let size = PixelSize(width: 400, height: 300)
        let list: [any ImageProcessor] = [
            .resize(to: size), .roundedCorners(radius: 7.5, unit: .points, corners: [.topLeft, .topRight]),
            .tint(ImageColor(red: 1, green: 2, blue: 3, alpha: 4)), .gaussianBlur(radius: 0.1), .flip(.vertical),
            .custom(identifier: "com.example.sepia") { $0 },
        ]
        #expect(
            ImageProcessors.Composition(list).identifier.description
                == "resize.fit(400,300)|corners(7.5,1,3)|tint(16909060)|blur(0.1,0)|flip.vertical"
                + "|custom(\"com.example.sepia\")")
        #expect(ImageProcessors.Composition([]).identifier.description == "")
        let mine = ProcessorIdentity("x", parameters: [1e300, -2, .infinity])
        #expect(mine.description == "custom(\"x\",1e+300,-2,inf)")
    }

    @Test func noNameImitatesAnotherIdentity() {
        let names = [
            "a", "a\"", "a\\", "a\\\"", "a\",1", "", "a\")|custom(\"b", "flip.vertical", "a|b", "é", "e\u{301}",
            "a\"\u{301}", "a\\\"\u{301}",
        ]
        let alone = names.map { ProcessorIdentity($0) }
        let all = alone + names.map { ProcessorIdentity($0, parameters: [1]) } + [ProcessorIdentity(alone)]
        #expect(Set(all).count == all.count)
        #expect(Set(all.map { Array($0.description.utf8) }).count == all.count)
    }

    @Test func everyProcessorStopsForACancelledTask() async throws {
        let image = try noise(40, 27, seed: 1)
        let size = PixelSize(width: 13, height: 9)
        let working: [any ImageProcessor] = [
            .resize(to: size), .crop(to: size), .circle(), .roundedCorners(radius: 3), .border(width: 1, color: .white),
            .flip(.vertical), .rotate(degrees: 90), .rotate(degrees: 180), .rotate(degrees: 3),
            .gaussianBlur(radius: 1), .tint(.black), .overlay(.white), .overlay(image, identifier: "x"),
            .monochrome(), .composition([.custom(identifier: "x") { $0 }]),
            .custom(identifier: "y") { image in
                try Task.checkCancellation()
                return image
            },
        ]
        let kinds = await Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return working.map { processor in
                do throws(ImageError) {
                    _ = try processor.process(image)
                    return ImageError.Kind(rawValue: "none")
                } catch {
                    return error.kind
                }
            }
        }.value
        #expect(kinds.allSatisfy { $0 == .cancelled }, "\(kinds)")
    }

    @Test func cancellationIsSeenBetweenTwoGroupsOfRows() async throws {
        let image = try noise(2, 2, seed: 1)
        let (seen, kind) = await Task {
            var seen: [UInt32] = []
            do throws(ImageError) {
                try image.forEachGroup(of: 1_000) { first, count in
                    seen += [first, count]
                    if first == 64 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                    return true
                }
                return (seen, ImageError.Kind(rawValue: "none"))
            } catch {
                return (seen, error.kind)
            }
        }.value
        #expect(seen == [0, 64, 64, 64])
        #expect(kind == .cancelled)
        let short = #expect(throws: ImageError.self) { try image.forEachGroup(of: 65) { first, _ in first == 0 } }
        #expect(short?.kind == .outOfMemory)
    }

    @Test func scaleFormatAndMetadataStay() throws {
        var image = try noise(40, 27, seed: 1)
        image.scale = 3
        image.format = .png
        image.metadata.orientation = 6
        for processor in try everyProcessor() {
            let made = try processor.process(image)
            #expect(made.scale == 3)
            #expect(made.format == .png)
            #expect(made.metadata == image.metadata)
        }
    }
}
