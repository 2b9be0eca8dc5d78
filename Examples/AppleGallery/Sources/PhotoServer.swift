import Foundation
import TernImages
import TernTesting

/// A photo of the gallery's server.
struct Photo: Codable, Hashable, Identifiable, Sendable {
    let id: Int
    let title: String
    /// The picture, of one colour.
    let url: URL

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
/// | /photos/N.png | the picture of a number |
/// | /bytes/N?rate= | N bytes; `?rate=` bytes per second |
final class PhotoServer: Sendable {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { exchange in
            let path = exchange.request.path
            if path == "/photos" {
                // The number of the request stands for the photos that were added meanwhile.
                let newest = 200 + exchange.number
                let host = exchange.request["Host"] ?? ""
                let photos = (newest - 200..<newest).reversed().compactMap { number in
                    URL(string: "http://\(host)/photos/\(number).png")
                        .map { Photo(id: number, title: "Photo \(number)", url: $0) }
                }
                return try exchange.respond(json: photos)
            }
            guard path.hasPrefix("/photos/"), path.hasSuffix(".png"),
                let number = Int(path.dropFirst("/photos/".count).dropLast(".png".count)), number >= 0
            else { return try LoopbackServer.answerDemo(exchange) }
            let image = RasterImage(color: Photo.color(number), size: PixelSize(width: 640, height: 480))
            try exchange.respond(headers: [("Content-Type", "image/png")], body: image.encoded(as: .png()))
        }
    }

    var baseURL: URL { server.baseURL }
}
