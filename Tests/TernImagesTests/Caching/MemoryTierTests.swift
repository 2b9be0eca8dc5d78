import Tern
import TernCache
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the memory cache of a pipeline: its limits, the cost of an image, and images that were evicted.
@Suite(.timeLimit(.minutes(1))) struct MemoryTierTests {
    @Test func anImageCostsFourBytesForEachPixelAndTheBytesThatAreKeptWithIt() async throws {
        let picture = try Pictures.png(40, 30)
        let kit = PipelineKit(picture: picture)
        var request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.pipeline.memory.cache.totalCost == 40 * 30 * 4)
        request.options.includesData = true
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.pipeline.memory.cache.count == 1)
        #expect(kit.pipeline.memory.cache.totalCost == 40 * 30 * 4 + picture.count)
    }

    @Test func theDefaultLimitsAreTheMemoryBudgetAndAQuarterOfAGibibyteOnTheDisk() {
        let configuration = ImagePipeline.Configuration()
        #expect(configuration.memoryLimit == MemoryBudget.current.recommendedCost)
        #expect(MemoryTier(configuration).cache.limits.cost == MemoryBudget.current.recommendedCost)
        let (folder, disk) = DiskTier.place(of: configuration.disk)
        #expect(folder.lastPathComponent == "tern-images")
        #expect(disk.byteLimit == 256 << 20)
    }

    @Test func anEvictedImageThatIsInUseIsFoundAgain() async throws {
        let kit = PipelineKit(picture: try Pictures.png(40, 30)) { $0.memoryLimit = 40 * 30 * 4 }
        let first = ImageRequest(try url("https://a.example/1.png"))
        let second = ImageRequest(try url("https://a.example/2.png"))
        let shown = try await kit.pipeline.image(from: first)
        _ = try await kit.pipeline.image(from: second)
        // There is room for one image.
        #expect(kit.pipeline.memory.cache.keys == [kit.pipeline.key(of: second)])
        let response = try await kit.pipeline.response(for: first)
        #expect(response.source == .memory && response.image.pixels === shown.pixels)
        #expect(kit.stub.calls.count == 2)
    }

    /// A server can be asked for each size of a picture.
    @Test func aSourceHasALimitedNumberOfVariants() throws {
        var index = VariantIndex()
        func key(_ side: Int) -> ImageKey {
            ImageKey(
                ImageRequest(.data("a") { throw CancellationError() }, targetSize: PixelSize(width: side, height: side))
            )
        }
        let left = (1...40).compactMap { index.insert(key($0)) }
        #expect(left == (2...9).map { key($0) })
        #expect(index.keys(of: key(1).source).count == 32)
        index.remove((1...30).map { key($0) }, of: key(1).source)
        #expect(index.keys(of: key(1).source) == (31...40).map { key($0) })
    }
}
