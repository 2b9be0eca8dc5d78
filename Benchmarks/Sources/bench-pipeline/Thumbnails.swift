import Tern
import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Thumbnails from a server, end to end, beside the peers of `pipeline_peer.py`.
enum Thumbnails {
    static func run() async throws {
        while let line = readLine() {
            let words = line.split(separator: " ")
            guard words.count == 2, let count = Int(words[1]) else { throw Failure("not a task: \(line)") }
            // Nothing is in memory; the connections stay, as those of the peers do.
            let pipeline = ImagePipeline.bare()
            let start = Moment()
            let requests = try (0..<count).map { index in
                ImageRequest(try address("\(words[0])\(index)"), targetSize: PixelSize(width: 400, height: 300))
            }
            let tasks = requests.map { pipeline.task(for: $0) }
            for task in tasks {
                let size = try await task.image.size
                guard size == PixelSize(width: 400, height: 300) else { throw Failure("a picture of \(size)") }
            }
            let end = Moment()
            print(Int(end.wall - start.wall), Int(end.process - start.process))
            // Each answer is waited for.
            fflush(nil)
        }
    }

    /// Answers all with the same bytes, in a process of its own, so that its costs are nobody's.
    static func serve(_ bytes: [UInt8]) throws {
        let server = try LoopbackServer(requestLogLimit: 0) { exchange in
            try exchange.respond(headers: [("Content-Type", "image/jpeg")], body: bytes)
        }
        print(server.baseURL.absoluteString)
        fflush(nil)
        while readLine() != nil {}
        server.stop()
    }
}
