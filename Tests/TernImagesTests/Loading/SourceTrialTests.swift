import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the order of the sources and the error that remains, without loads.
@Suite struct SourceTrialTests {
    private func request(_ own: String, _ others: ImageRequest.Alternative...) throws -> ImageRequest {
        var request = ImageRequest(try url("https://\(own).example/"))
        request.alternatives = others
        return request
    }

    private func names(_ trials: SourceTrials) -> [String] {
        trials.trials.map { trial in
            let host = trial.request.source.url?.host()?.split(separator: ".").first ?? "none"
            return trial.isLookUp ? "\(host)?" : "\(host)"
        }
    }

    @Test func sourcesForLowDataAreFirstOrLast() throws {
        let (second, small) = (try url("https://second.example/"), try url("https://small.example/"))
        let request = try request("first", .lowData(small), .init(second))
        #expect(names(SourceTrials(request)) == ["first", "second", "small"])
        #expect(
            names(SourceTrials(request, prefersLowData: true)) == ["first?", "second?", "small", "first", "second"])
        #expect(SourceTrials(request).trials.map(\.isShownFromMemory) == [true, true, false])
        #expect(SourceTrials(request, prefersLowData: true).trials.map(\.alternative) == [nil, 1, 0, nil, 1])
        // Without a source for low data, or without the network, the mode changes nothing.
        let usual = try self.request("first", .init(second))
        #expect(names(SourceTrials(usual, prefersLowData: true)) == ["first", "second"])
        var cached = request
        cached.caching.network = false
        #expect(names(SourceTrials(cached, prefersLowData: true)) == ["first", "second", "small"])
    }

    @Test func everyKindOfErrorIsInTheTable() {
        let mended: [ImageError.Kind] = [
            .unknownFormat, .unsupported, .truncated, .corrupt, .limitExceeded, .invalidURL, .network, .source,
            .notCached, .failedBefore, .hook, .encodingFailed,
        ]
        for kind in mended { #expect(ImageError(kind, "").canBeMendedByAnotherSource, "\(kind)") }
        for kind: ImageError.Kind in [.cancelled, .processing, .outOfMemory, .invalidArgument] {
            #expect(!ImageError(kind, "").canBeMendedByAnotherSource, "\(kind)")
        }
    }

    @Test func aLookUpThatFindsNothingIsNoFailure() throws {
        let small = try url("https://small.example/")
        var trials = SourceTrials(try request("first", .lowData(small)), prefersLowData: true)
        #expect(trials.next(after: ImageError(.notCached, "")) == nil)
        #expect(trials.next(after: ImageError(.corrupt, "small")) == nil)
        let error = trials.next(after: ImageError(.truncated, "first"))
        #expect(error?.message == "small" && error?.alternatives.map(\.message) == ["first"])
    }

    @Test func anErrorThatNothingMendsIsTheLast() throws {
        let second = try url("https://second.example/")
        var trials = SourceTrials(try request("first", .init(second)))
        #expect(trials.next(after: ImageError(.processing, ""))?.kind == .processing)
        #expect(trials.next(after: .cancelled)?.kind == .cancelled && trials.alternative == nil)
    }
}
