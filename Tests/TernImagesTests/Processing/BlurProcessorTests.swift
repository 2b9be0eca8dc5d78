import Testing

@testable import TernImages

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite struct BlurProcessorTests {
    @Test(arguments: [0.5, 1, 2.5, 3, 7.3, 40])
    func theMeanStays(_ radius: Double) throws {
        // Noise over a ramp: the result has many levels, so that rounding errors average out.
        var random = SplitMix(state: 11)
        let bytes = (0..<400 * 30).flatMap { index in
            let alpha = UInt64(index % 400 * 190 / 400) + random.next() % 64
            return (0..<3).map { _ in UInt8(random.next() % (alpha + 1)) } + [UInt8(alpha)]
        }
        let image = try picture(400, 30, bytes)
        let made = try ImageProcessors.GaussianBlur(radius: radius).process(image)
        for channel in 0..<4 {
            #expect(abs(made.sum(channel) - image.sum(channel)) / Double(image.size.pixelCount) < 0.1)
        }
        #expect(made.isPremultiplied)
    }

    @Test(arguments: [0.6, 1.7, 2.5, 2.6, 4, 9])
    func anImpulseSpreadsEvenlyAndAsFarAsTheRadiusSays(_ radius: Double) throws {
        // A row of light: the blur along the row has no effect, so that eight bits can hold the response.
        let length = 121
        var bytes = [UInt8](repeating: 0, count: length * length * 4)
        for x in 0..<length { for c in 0..<4 { bytes[(60 * length + x) * 4 + c] = 255 } }
        let made = try ImageProcessors.GaussianBlur(radius: radius).process(picture(length, length, bytes))
        let response = (0..<length).map { made.pixel(30, $0)[3] }
        #expect(response == Array(response.reversed()))
        let turned = try ImageProcessors.Rotate(degrees: 90).process(picture(length, length, bytes))
        let across = try ImageProcessors.GaussianBlur(radius: radius).process(turned)
        #expect((0..<length).map { across.pixel($0, 30)[3] } == response)
        for (index, value) in response.enumerated() {
            let at = Double(index - 60)
            // The weight of a pixel is the kernel at its middle, as for any sampled Gaussian.
            let exact = (-60...60).reduce(0) { $0 + exp(-Double($1 * $1) / (2 * radius * radius)) }
            let wanted = 255 * exp(-at * at / (2 * radius * radius)) / exact
            #expect(abs(Double(value) - wanted) <= (radius > 2.5 ? 2.6 : 1))
        }
    }

    @Test(arguments: [1.3, 6, 500])
    func aFlatPictureStaysFlat(_ radius: Double) throws {
        let pixel: [UInt8] = [200, 10, 77, 200]
        for (width, height) in [(1, 1), (1, 70), (33, 2), (70, 66)] {
            let made = try ImageProcessors.GaussianBlur(radius: radius).process(flat(width, height, pixel))
            #expect(made.bytes == (try flat(width, height, pixel).bytes))
        }
    }

    @Test func aVeryLargeRadiusLeavesTheMean() throws {
        var bytes: [UInt8] = []
        for x in 0..<20 { bytes += x < 10 ? [0, 0, 0, 255] : [200, 100, 50, 255] }
        let made = try ImageProcessors.GaussianBlur(radius: 1e9).process(picture(20, 1, bytes))
        for x in 0..<20 { #expect(made.pixel(x, 0) == [100, 50, 25, 255]) }
    }

    @Test func transparentPixelsLendNoColor() throws {
        // Red beside transparent pixels: the red becomes less opaque, and never darker.
        let image = try picture(2, 1, [255, 0, 0, 255, 0, 0, 0, 0])
        let made = try ImageProcessors.GaussianBlur(radius: 2).process(image)
        for x in 0..<2 { #expect(made.pixel(x, 0)[0] == made.pixel(x, 0)[3]) }
        #expect(made.pixel(1, 0)[3] > 100)
    }

    @Test func noRadiusChangesNothingAndANegativeOneIsAnError() throws {
        let image = try noise(9, 9, seed: 2)
        #expect(try ImageProcessors.GaussianBlur(radius: 0).process(image).bytes == image.bytes)
        for radius in [-1, .nan, Double.infinity] {
            let error = #expect(throws: ImageError.self) {
                try ImageProcessors.GaussianBlur(radius: radius).process(image)
            }
            #expect(error?.kind == .invalidArgument)
        }
        let scaled = try picture(9, 9, image.bytes, scale: 2)
        let points = try ImageProcessors.GaussianBlur(radius: 1, unit: .points).process(scaled)
        #expect(points.bytes == (try ImageProcessors.GaussianBlur(radius: 2).process(image).bytes))
    }

    /// Each direction has the cost of its own length: with that of the longer side, the short lines of these pictures,
    /// 20,000 of them, would take a minute.
    @Test(arguments: [(20_000, 1), (1, 20_000), (20_000, 3)])
    func aLargeRadiusOverThinPicturesStaysFlat(width: Int, height: Int) throws {
        let pixel: [UInt8] = [255, 255, 255, 255]
        let made = try ImageProcessors.GaussianBlur(radius: 40_000).process(flat(width, height, pixel))
        #expect(made.bytes == (try flat(width, height, pixel).bytes))
    }

    /// A radius far beyond the height leaves the mean of each column, whatever the height limits.
    @Test(arguments: [2, 3, 5])
    func aRadiusBeyondTheHeightLeavesTheMeanOfEachColumn(height: Int) throws {
        let width = 300
        var random = SplitMix(state: 7)
        var (rows, means) = (Array(repeating: [UInt8](), count: height), [UInt8]())
        for x in 0..<width {
            let values = (0..<height).map { _ in UInt8(clamping: x / 2 + Int(random.next() % 100)) }
            for y in 0..<height { rows[y] += [values[y], values[y], values[y], 255] }
            let mean = UInt8((values.reduce(0) { $0 + Int($1) } + height / 2) / height)
            means += [mean, mean, mean, 255]
        }
        let made = try ImageProcessors.GaussianBlur(radius: 20).process(picture(width, height, rows.flatMap(\.self)))
        let flat = try ImageProcessors.GaussianBlur(radius: 20).process(picture(width, 1, means))
        for y in 0..<height {
            for x in 0..<width { #expect(abs(Int(made.pixel(x, y)[0]) - Int(flat.pixel(x, 0)[0])) <= 1) }
        }
    }
}
