import Foundation
import Synchronization
import TernImages
import TernTesting

/// A photo of the gallery's server.
struct Photo: Codable, Hashable, Identifiable, Sendable {
    let id: Int
    let title: String
    /// The picture, of one colour.
    let url: URL
    /// The same picture from another place, which is asked if the first has it not.
    let mirror: URL?
    /// The `ThumbHash` of the picture.
    let hash: String?

    /// The request of the rows.
    var request: ImageRequest {
        var request = ImageRequest(url, contentMode: .fill)
        if let mirror { request.alternatives = [.init(mirror)] }
        return request
    }

    /// Whether the first request for the photo fails everywhere.
    static func failsOnce(_ number: Int) -> Bool { number % 25 == 24 }

    /// The colour of a number, which differs from that of the numbers around it.
    static func color(_ number: Int) -> ImageColor {
        ImageColor(red: UInt8(number * 47 % 256), green: UInt8(number * 91 % 256), blue: UInt8(number * 151 % 256))
    }
}

/// Serves the gallery's photos on this machine.
///
/// | Route | Answer |
/// |---|---|
/// | /photos | 200 photos as JSON, the newest first; each request finds one more |
/// | /photos/N.png | the picture of a number; 404 for every tenth number |
/// | /mirror/N.png | the same, without the exception |
/// | /bytes/N?rate= | N bytes; `?rate=` bytes per second |
///
/// The first two requests for every 25th photo are answered by 404, in either place, so that it can be tried again.
final class PhotoServer: Sendable {
    private let server: LoopbackServer

    init() throws {
        let refusals = Mutex<[Int: Int]>([:])
        server = try LoopbackServer { exchange in
            let path = exchange.request.path
            if path == "/photos" {
                // The number of the request stands for the photos that were added meanwhile.
                let newest = 200 + exchange.number
                let host = exchange.request["Host"] ?? ""
                let photos = try (newest - 200..<newest).reversed().compactMap { number in
                    try Self.photo(number, host: host)
                }
                return try exchange.respond(json: photos)
            }
            let words = path.split(separator: "/")
            guard words.count == 2, ["photos", "mirror"].contains(words[0]), words[1].hasSuffix(".png"),
                let number = Int(words[1].dropLast(".png".count)), number >= 0
            else { return try LoopbackServer.answerDemo(exchange) }
            let isRefused =
                Photo.failsOnce(number)
                && refusals.withLock { counts in
                    counts[number, default: 0] += 1
                    return counts[number, default: 0] <= 2
                }
            if isRefused || words[0] == "photos" && number % 10 == 9 { return try exchange.respond(status: 404) }
            let image = RasterImage(color: Photo.color(number), size: PixelSize(width: 640, height: 480))
            try exchange.respond(headers: [("Content-Type", "image/png")], body: image.encoded(as: .png()))
        }
    }

    private static func photo(_ number: Int, host: String) throws -> Photo? {
        guard let url = URL(string: "http://\(host)/photos/\(number).png") else { return nil }
        let small = RasterImage(color: Photo.color(number), size: PixelSize(width: 8, height: 6))
        return Photo(
            id: number, title: "Photo \(number)", url: url, mirror: URL(string: "http://\(host)/mirror/\(number).png"),
            hash: try ThumbHash(small).base64)
    }

    var baseURL: URL { server.baseURL }
}
