import Synchronization
import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An image that is drawn by code: a sun over hills. The colour of the sun depends on the number.
struct Photo: Sendable, Hashable {
    let number: Int

    typealias Color = SIMD3<UInt8>

    /// The colour of the sun, different for each number below 1,000.
    var sun: Color {
        Color(
            UInt8(255 - number % 10 * 3), UInt8(245 - number / 10 % 10 * 9), UInt8(200 - number / 100 % 10 * 14))
    }

    /// The centre of the sun, in fractions of the image's width and height.
    static let sunPlace = (x: 0.5, y: 0.375)

    /// Draws the image at a size; returns nil for an empty size.
    func drawn(width: Int, height: Int) -> RasterImage? {
        let hue = Double(number * 47 % 360)
        let (zenith, horizon) = (
            Self.color(hue: hue, saturation: 0.55, brightness: 0.55),
            Self.color(hue: hue + 40, saturation: 0.35, brightness: 0.98)
        )
        let hills = (0..<3).map { layer in
            (
                color: Self.color(hue: hue + 80, saturation: 0.5, brightness: 0.55 - 0.15 * Double(layer)),
                line: line(of: layer, width, height)
            )
        }
        let (sunX, sunY) = (Double(width) * Self.sunPlace.x, Double(height) * Self.sunPlace.y)
        let radius = Double(height) * 0.16
        let sun = sun
        var bytes: [UInt8] = []
        bytes.reserveCapacity(width * height * 4)
        for y in 0..<height {
            let depth = Double(y) / Double(height)
            let sky = zenith + (horizon - zenith) * min(1, depth * 1.4)
            let sky8 = Color(truncatingIfNeeded: SIMD3<Int>(sky * 255))
            let distanceY = (Double(y) - sunY) * (Double(y) - sunY)
            for x in 0..<width {
                var pixel = sky8
                let distance = (Double(x) - sunX) * (Double(x) - sunX) + distanceY
                if distance < radius * radius { pixel = sun }
                for hill in hills where y > hill.line[x] {
                    pixel = Color(truncatingIfNeeded: SIMD3<Int>(hill.color * 255))
                }
                bytes.append(pixel.x)
                bytes.append(pixel.y)
                bytes.append(pixel.z)
                bytes.append(255)
            }
        }
        return RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes)
    }

    /// Returns the upper edge of a range of hills for each column; all of them are below the sun.
    private func line(of layer: Int, _ width: Int, _ height: Int) -> [Int] {
        let seed = Double(number * 7 + layer * 13)
        return (0..<width).map { column in
            let x = Double(column) / Double(width) * 6
            let wave = wave(x * 0.9 + seed) * 0.06 + wave(x * 2.3 + seed * 1.7) * 0.025
            return Int(Double(height) * (0.68 + 0.11 * Double(layer) + wave))
        }
    }

    /// A function like sine, from -1 to 1, made of parabolas.
    private func wave(_ x: Double) -> Double {
        let phase = x - (x / 2).rounded(.down) * 2
        return phase < 1 ? 4 * phase * (1 - phase) : -4 * (phase - 1) * (2 - phase)
    }

    /// Returns a colour from a hue in degrees, a saturation and a brightness, with channels from 0 to 1.
    private static func color(hue: Double, saturation: Double, brightness: Double) -> SIMD3<Double> {
        func channel(_ offset: Double) -> Double {
            let place = (hue / 60 + offset).truncatingRemainder(dividingBy: 6)
            return brightness * (1 - saturation * max(0, min(place, 4 - place, 1)))
        }
        return SIMD3(channel(5), channel(3), channel(1))
    }
}

/// Serves photos that are drawn on their first request, and the routes of Tern's demo server.
///
/// | Route | Answer |
/// |---|---|
/// | /photos/N.png, /photos/N.jpg | the photo of a number; `?width=` pixels, 352 by default |
/// | /bytes/N?rate= | N bytes; `?rate=` bytes per second |
///
/// For a photo, `?held` waits for `release()`; `?missing` is answered by 404, and so is
/// the first request with `?fails` and the same `?n=`.
final class PhotoServer: Sendable {
    private let server: LoopbackServer
    private let gate = LoopbackServer.Gate()
    private let archive = PhotoArchive()

    init() throws {
        let failed = Mutex<Set<String>>([])
        server = try LoopbackServer { [gate, archive] exchange in
            let request = exchange.request
            guard let address = PhotoAddress(path: request.path) else { return try LoopbackServer.answerDemo(exchange) }
            func has(_ name: String) -> Bool { request.query.contains { $0.name == name } }
            if has("held") { try exchange.wait(for: gate) }
            let name = "\(address) \(request.query("n") ?? "")"
            if has("missing") || has("fails") && failed.withLock({ $0.insert(name).inserted }) {
                return try exchange.respond(status: 404)
            }
            let width = request.query("width").flatMap { Int($0) } ?? PhotoArchive.usualWidth
            let bytes = try archive.bytes(of: address, width: width)
            try exchange.respond(headers: [("Content-Type", address.format.rawValue)], body: bytes)
        }
    }

    var baseURL: URL { server.baseURL }

    /// Returns the URL of a photo.
    func url(_ address: PhotoAddress, query: String? = nil) -> URL {
        server.url(address.path + (query.map { "?" + $0 } ?? ""))
    }

    /// The numbers of requests received and served.
    var counts: LoopbackServer.Counts { server.counts }

    /// Releases the held responses.
    func release() { gate.open() }

    /// Draws a photo in advance, so that it takes no time later.
    func make(_ address: PhotoAddress, width: Int) throws { _ = try archive.bytes(of: address, width: width) }

    func stop() { server.stop() }
}

/// The number and the format of a photo, such as `/photos/17.png`.
struct PhotoAddress: Sendable, Hashable {
    let number: Int
    let format: ImageFormat

    init(_ number: Int, _ format: ImageFormat) {
        self.number = number
        self.format = format
    }

    init?(path: String) {
        let parts = path.split(separator: "/")
        guard parts.count == 2, parts[0] == "photos" else { return nil }
        let name = parts[1].split(separator: ".")
        guard name.count == 2, let number = Int(name[0]), number >= 0 else { return nil }
        switch name[1] {
        case "png": self.init(number, .png)
        case "jpg": self.init(number, .jpeg)
        default: return nil
        }
    }

    var path: String { "/photos/\(number).\(format == .png ? "png" : "jpg")" }
}

/// The files of photos, each drawn once. May be used on any thread.
final class PhotoArchive: Sendable {
    /// The width in pixels; the height is three quarters of it.
    static let usualWidth = 352

    private struct Key: Hashable {
        let address: PhotoAddress
        let width: Int
    }

    private let files = Mutex<[Key: Data]>([:])

    func bytes(of address: PhotoAddress, width: Int) throws -> Data {
        let key = Key(address: address, width: width)
        if let file = files.withLock({ $0[key] }) { return file }
        // Two simultaneous callers may both draw the same photo, so that no caller waits for another's.
        guard let image = Photo(number: address.number).drawn(width: width, height: width * 3 / 4) else {
            throw ImageError(.invalidArgument, "a photo \(width) pixels wide")
        }
        let file = try image.encoded(as: address.format == .png ? .png(level: 3) : .jpeg(quality: 88))
        files.withLock { $0[key] = file }
        return file
    }
}
