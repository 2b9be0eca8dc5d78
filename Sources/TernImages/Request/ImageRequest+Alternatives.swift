#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageRequest {
    /// Another source of a request's image, such as a second host, another format, or a smaller file.
    ///
    /// ```swift
    /// var request = ImageRequest(url)
    /// request.alternatives = [.init(mirror), .lowData(small)]
    /// ```
    ///
    /// The sources of a request are tried in order, each after the failure of the one before. The next one is tried
    /// after any failure of a source: there is no connection, a status such as 404 or 503, a file that is missing, a
    /// closure that throws, bytes of a format that is not decoded here, damaged bytes, or a limit that is exceeded. It
    /// is not tried after a cancellation, after an error of the kinds `.processing`, `.outOfMemory` and
    /// `.invalidArgument`, which another source would not mend, and for an image that the request rejects
    /// (`Options.requiresAnimation`). The retries of the session come before the next source.
    ///
    /// Each source has its own keys in the caches, and its loads are shared with all other loads of the same source.
    /// The image of an alternative is therefore never found as that of the first source. If memory has the image of one
    /// of the sources, the request is answered with it at once, so that a failing host does not delay an image again
    /// that another one has sent.
    public struct Alternative: Sendable {
        /// The source of the bytes.
        public var source: Source
        /// A Boolean value that indicates whether the source is meant to save data.
        ///
        /// While `ImagePipeline.Configuration.lowDataMode` is on, such sources are fetched before all others, unless one
        /// of the others is in a cache. Otherwise they are the last that are tried.
        public var isForLowData: Bool

        /// Creates an alternative that is tried after a failure.
        public init(_ source: Source) {
            self.source = source
            isForLowData = false
        }

        /// Creates an alternative of a URL (http, https or file) that is tried after a failure. Without a URL, it
        /// fails.
        public init(_ url: URL?) { self.init(Source(url)) }

        /// Returns an alternative that saves data.
        public static func lowData(_ source: Source) -> Alternative {
            var alternative = Alternative(source)
            alternative.isForLowData = true
            return alternative
        }

        /// Returns an alternative of a URL that saves data.
        public static func lowData(_ url: URL?) -> Alternative { lowData(Source(url)) }
    }

    /// The error of a request of whose sources none can be loaded; nil for all others.
    package var refusal: ImageError? {
        guard let refusal = source.refusal, alternatives.allSatisfy({ $0.source.refusal != nil }) else { return nil }
        return refusal
    }

    /// Returns whether two requests have the same alternatives.
    func hasAlternatives(of other: ImageRequest) -> Bool {
        alternatives.elementsEqual(other.alternatives) { one, other in
            one.source.key == other.source.key && one.isForLowData == other.isForLowData
        }
    }
}
