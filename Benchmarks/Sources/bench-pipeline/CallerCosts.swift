import Tern
import TernImages

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

/// The cost for a view, on its thread, of an image that is in memory.
enum Binding {
    private static let count = 200_000

    static func run() throws {
        let bench = try Bench()
        var (known, made): ([Double], [Double]) = ([], [])
        for _ in 0..<9 {
            known.append(try bench.spent(count, makesRequests: false))
            made.append(try bench.spent(count, makesRequests: true))
        }
        say("bind.µs", known.median / 1e3)
        say("bind-url.µs", made.median / 1e3)
    }

    /// Between two calls of the system that nobody else makes: what is called between them is what binding calls.
    static func runMarked() throws {
        let bench = try Bench()
        // Make now what is made once, such as blocks of memory.
        try bench.bind(1_000, makesRequests: true)
        getppid()
        try bench.bind(10_000, makesRequests: true)
        getppid()
    }

    private struct Bench {
        let pipeline = ImagePipeline.bare()
        /// As many as a list may show, so that it is not always the same one.
        let urls: [URL]
        let requests: [ImageRequest]
        static let size = PixelSize(width: 200, height: 200)

        init() throws {
            urls = try (0..<64).map { number in
                try address("https://images.example.com/photos/2026/11/photo-\(number)@2x.jpg?width=400")
            }
            requests = urls.map { ImageRequest($0, targetSize: Self.size, contentMode: .fill) }
            let image = try EmptyDecoder().image
            for request in requests { pipeline.cache(image, for: request) }
        }

        /// Nanoseconds of this thread for one binding.
        func spent(_ count: Int, makesRequests: Bool) throws -> Double {
            let start = Moment()
            try bind(count, makesRequests: makesRequests)
            return (Moment().thread - start.thread) / Double(count)
        }

        func bind(_ count: Int, makesRequests: Bool) throws {
            var hits = 0
            for index in 0..<count {
                let place = index & 63
                let request =
                    makesRequests
                    ? ImageRequest(urls[place], targetSize: Self.size, contentMode: .fill) : requests[place]
                if case .success? = pipeline.task(for: request).current { hits += 1 }
            }
            guard hits == count else { throw Failure("\(count - hits) of \(count) were not in memory") }
        }
    }
}

/// The cost for a view, on its thread, of beginning a load.
enum Missing {
    private static let size = PixelSize(width: 200, height: 200)

    static func run() async throws {
        let decoder = try EmptyDecoder()
        let pipeline = ImagePipeline.bare { $0.decoders = ImageDecoders([decoder]) }
        var (known, made): ([Double], [Double]) = ([], [])
        for round in 0..<300 {
            let urls = try (0..<40).map { try address("https://images.example.com/photos/\(round)/photo-\($0)@2x.jpg") }
            // The fetch itself is not what is measured here: the loads are cancelled before they come to it, or in it.
            let requests = urls.map { ImageRequest($0, targetSize: size, contentMode: .fill) }
            var tasks: [ImageTask] = []
            for index in urls.indices {
                let start = Moment.wall()
                let request =
                    round % 2 == 0 ? requests[index] : ImageRequest(urls[index], targetSize: size, contentMode: .fill)
                tasks.append(pipeline.task(for: request))
                let spent = Moment.wall() - start
                if round % 2 == 0 { known.append(spent) } else { made.append(spent) }
            }
            for task in tasks { task.cancel() }
            try await Task.sleep(for: .milliseconds(1))
        }
        say("miss.µs", known.median / 1e3)
        say("miss-p99.µs", known.percentile(0.99) / 1e3)
        say("miss-url.µs", made.median / 1e3)
    }
}
