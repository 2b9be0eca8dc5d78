import Tern
import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A picture that says which row of a list it belongs to: ten columns, white for a bit that is set.
enum Row {
    static let size = PixelSize(width: 320, height: 240)
    private static let bits = 10

    static func picture(_ number: Int) throws -> Data {
        var bytes = [UInt8](repeating: 255, count: size.pixelCount * 4)
        for y in 0..<size.height {
            for x in 0..<size.width {
                // A ramp below, so that there is something to decode.
                let bit = UInt8(truncatingIfNeeded: number >> (x * bits / size.width) & 1) * 255
                let ramp = UInt8(truncatingIfNeeded: (x * y + number) >> 5)
                let level = y < size.height / 2 ? bit : ramp
                for channel in 0..<3 { bytes[(y * size.width + x) * 4 + channel] = level }
            }
        }
        guard let image = RasterImage(size: size, premultiplied: bytes) else { throw Failure("no picture of a row") }
        return try image.encoded(as: .jpeg())
    }

    static func number(of image: RasterImage) -> Int {
        image.withPixels { span in
            (0..<bits).reduce(0) { number, bit in
                let place =
                    (image.size.height / 4 * image.size.width + (2 * bit + 1) * image.size.width / (2 * bits)) * 4
                return unsafe span.unsafeLoad(fromByteOffset: place, as: UInt8.self) > 127 ? number | 1 << bit : number
            }
        }
    }
}

/// Scrolls through 1,000 rows of pictures that take 100 ms to answer, 60 rows a second; who leaves the screen cancels.
@MainActor final class ListScroll {
    private static let rows = 1_000
    private static let rowsPerSecond = 60.0
    /// A third of a second.
    private static let rowsOnScreen = 20

    private struct Cell {
        var row = -1
        var task: ImageTask?
        var wait: Task<Void, Never>?
    }

    private let pipeline: ImagePipeline
    private let base: URL
    private var cells = [Cell](repeating: Cell(), count: rowsOnScreen)
    private var appeared: [Double] = []
    /// By row: from its appearance to its picture.
    private var times: [Int: Double] = [:]
    private var stale = 0

    private init(_ pipeline: ImagePipeline, _ base: URL) {
        self.pipeline = pipeline
        self.base = base
    }

    static func run() async throws {
        let pictures = try (0..<rows).map { Array(try Row.picture($0)) }
        let server = try LoopbackServer { exchange in
            guard let number = Int(exchange.request.path.dropFirst()), pictures.indices.contains(number) else {
                return try exchange.respond(status: 404)
            }
            try exchange.pause(for: .milliseconds(100))
            try exchange.respond(headers: [("Content-Type", "image/jpeg")], body: pictures[number])
        }
        defer { server.stop() }
        var (late, wasted, unseen, stale): ([Double], [Double], [Double], Double) = ([], [], [], 0)
        for _ in 0..<3 {
            let decoder = CountingDecoder()
            let pipeline = ImagePipeline.bare { $0.decoders = ImageDecoders([decoder]) }
            let list = ListScroll(pipeline, server.baseURL)
            try await list.scroll()
            stale += Double(list.stale)
            // One that left without its picture waited for ever.
            let all = (0..<rows).map { list.times[$0] ?? .infinity }
            late.append(all.percentile(0.95) / 1e6)
            unseen.append(Double(rows - list.times.count))
            wasted.append(Double(decoder.decodes.value - list.times.count) / Double(decoder.decodes.value) * 100)
        }
        say("scroll-stale", stale)
        say("scroll-wasted.%", wasted.median)
        say("scroll-p95.ms", late.median)
        say("scroll-unseen", unseen.median)
    }

    private func scroll() async throws {
        let clock = ContinuousClock()
        let start = clock.now
        for row in 0..<Self.rows {
            try await clock.sleep(until: start + .seconds(Double(row) / Self.rowsPerSecond))
            bind(row)
        }
        // The last ones stay.
        for cell in cells { await cell.wait?.value }
    }

    /// The cell that has left the screen above comes in below.
    private func bind(_ row: Int) {
        let place = row % Self.rowsOnScreen
        cells[place].task?.cancel()
        appeared.append(Moment.wall())
        var request = ImageRequest(base.appending(path: "\(row)"), targetSize: PixelSize(width: 160, height: 120))
        request.isVisible = true
        let task = pipeline.task(for: request)
        cells[place] = Cell(row: row, task: task)
        cells[place].wait = Task {
            // The end of a load that was cancelled is not shown.
            guard let image = try? await task.image else { return }
            show(image, task, place)
        }
    }

    private func show(_ image: RasterImage, _ task: ImageTask, _ place: Int) {
        // A task that has ended well before its cancellation may be heard of only now: a view looks whose it is.
        guard cells[place].task === task else { return }
        let row = Row.number(of: image)
        if row != cells[place].row { stale += 1 }
        times[cells[place].row] = Moment.wall() - appeared[cells[place].row]
    }
}

/// The system's decoder, and how many pictures it was asked for.
final class CountingDecoder: ImageDecoder {
    let decodes = Held(0)
    private let decoder = CodecImageDecoder()

    func decodes(_ format: ImageFormat) -> Bool { decoder.decodes(format) }

    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        decodes.update { $0 += 1 }
        return try decoder.image(from: data, options: options)
    }

    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        try decoder.animation(from: data, options: options)
    }
}
