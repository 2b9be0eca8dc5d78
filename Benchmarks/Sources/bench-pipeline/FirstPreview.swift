import Tern
import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// From the end of a progressive JPEG's first scan to the preview of it. A scan ends with the marker behind it: before
/// that nobody can tell that its last byte has come.
enum FirstPreview {
    static func run(_ picture: Data) async throws {
        let bytes = Array(picture)
        let end = try endOfFirstScan(bytes)
        for (name, target) in [("preview", PixelSize(width: 400, height: 300)), ("preview-full", nil)] {
            var times: [Double] = []
            for _ in 0..<15 { times.append(try await latency(bytes, end, target) / 1e6) }
            say("\(name).ms", times.median)
            say("\(name)-p95.ms", times.percentile(0.95))
        }
    }

    private static func latency(_ bytes: [UInt8], _ end: Int, _ target: PixelSize?) async throws -> Double {
        let (seen, sent) = (LoopbackServer.Gate(), Held(0.0))
        let server = try LoopbackServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: \(bytes.count)\r\n\r\n")
            try exchange.write(Array(bytes[..<end]))
            // By then, the bytes before are decoded.
            try exchange.pause(for: .milliseconds(100))
            sent.update { $0 = Moment.wall() }
            try exchange.write(Array(bytes[end..<(end + 3)]))
            try exchange.wait(for: seen)
            try exchange.write(Array(bytes[(end + 3)...]))
        }
        defer { server.stop() }
        var request = ImageRequest(server.baseURL, targetSize: target)
        request.options.progressive = .scans
        let task = ImagePipeline.bare().task(for: request)
        var first = Double.nan
        for await _ in task.previews where first.isNaN {
            first = Moment.wall()
            seen.open()
        }
        _ = try await task.image
        guard !first.isNaN, first > sent.value else { throw Failure("no preview after the first scan") }
        return first - sent.value
    }

    /// The place of the last byte of the first scan, before the two of a marker (ITU-T T.81, B.1.1).
    private static func endOfFirstScan(_ bytes: [UInt8]) throws -> Int {
        var place = 2
        while place + 4 < bytes.count, bytes[place] == 0xFF {
            let isScan = bytes[place + 1] == 0xDA
            place += 2 + Int(bytes[place + 2]) << 8 + Int(bytes[place + 3])
            guard isScan else { continue }
            while place + 1 < bytes.count {
                let (byte, next) = (bytes[place], bytes[place + 1])
                if byte == 0xFF, next != 0, !(0xD0...0xD7).contains(next) { return place - 1 }
                place += 1
            }
        }
        throw Failure("no progressive JPEG")
    }
}
