public import Tern
import TernCache

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request for an image: its source, its size, its processors, and the caches that it may use. A value.
///
/// ```swift
/// var request = ImageRequest(url, targetSize: PixelSize(width: 200, height: 200), contentMode: .fill)
/// request.processors = [.circle()]
/// request.priority = .high
/// let image = try await ImagePipeline.shared.image(from: request)
/// ```
public struct ImageRequest: Sendable {
    /// The source of the bytes.
    public var source: Source
    /// Other sources of the image, which are tried in order after a failure, or preferred to save data; none by
    /// default.
    public var alternatives: [Alternative] = []
    /// The target size in pixels; nil, the default, for the image's own size, as is a size without pixels. An image is
    /// never enlarged, but a drawing (`SVGImageDecoder`) is drawn at this size.
    public var targetSize: PixelSize?
    /// The mode that fits the image to the target size, `.fit` by default. Without a target it has no effect.
    public var contentMode: ImageDecodingOptions.ContentMode
    /// The processors that are applied to the decoded image, in order; none by default.
    public var processors: [any ImageProcessor]
    /// The priority among the loads that wait, `.normal` by default. The priority of a running task can be changed.
    public var priority: Request.Priority
    /// A Boolean value that indicates whether the image is on the screen now. It then goes before others of the same
    /// priority. False by default.
    public var isVisible = false
    /// The number of pixels per point; nil, the default, for the scale in the URL's name (`photo@2x.png`), or else 1. A
    /// scale that is not finite and above 0 counts as nil.
    public var scale: Double?
    /// The caches that may be read and written, and whether the network may be used.
    public var caching = Caching()
    /// Further options.
    public var options = Options()

    /// Creates a request for the image at a URL (http, https or file). Without a URL the load fails with `.invalidURL`,
    /// and no cache or network is used.
    public init(
        _ url: URL?, targetSize: PixelSize? = nil, contentMode: ImageDecodingOptions.ContentMode = .fit,
        processors: [any ImageProcessor] = [], priority: Request.Priority = .normal
    ) {
        self.init(
            Source(url), targetSize: targetSize, contentMode: contentMode, processors: processors, priority: priority)
    }

    /// Creates a request for the image of a source.
    public init(
        _ source: Source, targetSize: PixelSize? = nil, contentMode: ImageDecodingOptions.ContentMode = .fit,
        processors: [any ImageProcessor] = [], priority: Request.Priority = .normal
    ) {
        self.source = source
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.processors = processors
        self.priority = priority
    }
}

extension ImageRequest {
    /// The source of an image's bytes.
    public struct Source: Sendable {
        enum Content: Sendable {
            case request(Request)
            case file(String)
            case data(@concurrent @Sendable () async throws -> Data)
            case image(@concurrent @Sendable (ImageDecodingOptions) async throws -> RasterImage)
            case invalid(String)

            /// The file name, without a query.
            fileprivate func name(_ key: SourceKey) -> String {
                switch self {
                case .request(let request): request.target.path
                case .file(let path): path
                case .data, .image, .invalid: key.text
                }
            }
        }

        /// One reference: a request is copied with every task and every load.
        private final class Storage: Sendable {
            let content: Content
            let key: SourceKey
            let serial: UInt64?
            let nameScale: Double

            init(_ content: Content, key: SourceKey, serial: UInt64?) {
                self.content = content
                self.key = key
                self.serial = serial
                nameScale = ImageKey.scale(named: content.name(key))
            }
        }

        private let storage: Storage

        var content: Content { storage.content }
        var key: SourceKey { storage.key }
        /// A unique number for a source that must not share a fetch; nil for most sources.
        var serial: UInt64? { storage.serial }
        /// The scale in the name of the file, such as 2 for `photo@2x.png`; else 1.
        var nameScale: Double { storage.nameScale }

        /// The sources of the URLs that were used last: views ask for the same URLs again and again, and checking a URL
        /// costs several times as much as finding it here.
        private static let recent: MemoryCache<String, Source> = MemoryCache(countLimit: 1_024)

        /// Creates the source of a URL: a GET request for http and https, a file for file URLs. Any other URL, and nil,
        /// fails when it is loaded.
        public init(_ url: URL?) {
            guard let url else {
                self.init(content: .invalid("there is no URL"), key: SourceKey(text: ""))
                return
            }
            let text = url.absoluteString
            if let known = Self.recent.value(for: text) {
                self = known
                return
            }
            self.init(checking: url)
            if case .request = content { Self.recent.insert(self, for: text) }
        }

        private init(checking url: URL) {
            if url.isFileURL {
                self = .file(url)
                return
            }
            do throws(NetworkError) {
                self = .request(try Request(url: url))
            } catch {
                self.init(content: .invalid(error.reason), key: SourceKey(text: ""))
            }
        }

        private init(content: Content, key: SourceKey, serial: UInt64? = nil) {
            storage = Storage(content, key: key, serial: serial)
        }

        static let serials = SerialNumbers()

        /// Returns a source that sends a request. Its method, headers and body are part of the image's identity.
        ///
        /// Equal requests share one fetch and the caches, unless they have interceptors, a policy, a validation,
        /// credentials, cookies or a trust policy of their own, or a body that is not in memory. Images of such
        /// requests are kept only in memory, and are found only by this value and its copies; a name from
        /// `Hooks.cacheKey` makes them shared.
        public static func request(_ request: Request) -> Source {
            let serial = request.mayShare ? nil : serials.next()
            return Source(content: .request(request), key: SourceKey(request, serial: serial), serial: serial)
        }

        /// Returns a source that reads a file, off the caller.
        ///
        /// A pipe is read until its writers have closed it. While no bytes arrive, the load occupies one of the threads
        /// of `ImagePipeline.Configuration.executor`; cancel it if the writer may never come.
        public static func file(_ url: URL) -> Source {
            let path = url.path(percentEncoded: false)
            return Source(content: .file(path), key: SourceKey(text: "file:\(path)"))
        }

        /// Returns a source that gets the bytes from a closure. Equal identifiers must mean equal images, and different
        /// identifiers different images.
        ///
        /// The task of the closure is cancelled together with the load. The closure counts as one of the pipeline's
        /// fetches until it returns. It must not wait for another image of
        /// the same pipeline, because that image may wait for its slot.
        public static func data(
            _ identifier: String, _ load: @escaping @concurrent @Sendable () async throws -> Data
        ) -> Source {
            Source(content: .data(load), key: SourceKey(text: "data:\(identifier)"))
        }

        /// Returns a source that gets the decoded image from a closure, for example a thumbnail of a photo library or a
        /// frame of a video. Equal identifiers must mean equal images, and different identifiers different images.
        ///
        /// ```swift
        /// let request = ImageRequest(.image(photo.id) { options in
        ///     try await library.thumbnail(of: photo, size: options.targetSize)
        /// })
        /// ```
        /// The closure gets the size that the request or the view calls for, and is called once for each size. An image
        /// that is larger than that is made smaller. The task of the closure is cancelled together with the load. As
        /// with `data`, the closure counts as a fetch, and must not wait for another image of the pipeline. Its images
        /// are kept in memory and, with processed images on the disk (`ImagePipeline.DiskContent`), there too.
        /// `ImagePipeline.data(for:)` fails, because there are no encoded bytes.
        public static func image(
            _ identifier: String,
            _ load: @escaping @concurrent @Sendable (ImageDecodingOptions) async throws -> RasterImage
        ) -> Source {
            Source(content: .image(load), key: SourceKey(text: "image:\(identifier)"))
        }

        /// The URL, the file's path, or the kind of the identifier; without user information and query values.
        public var description: String {
            switch content {
            case .request(let request): request.description
            case .file(let path): "file \(path)"
            case .data: "data of \(key.text.dropFirst(5))"
            case .image: "image of \(key.text.dropFirst(6))"
            case .invalid: "an invalid URL"
            }
        }

        /// The request that is sent; nil for other sources.
        public var request: Request? {
            if case .request(let request) = content { request } else { nil }
        }
    }
}

extension ImageRequest.Source: CustomStringConvertible, CustomReflectable {
    /// Empty: the children would show the request's query and headers.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ImageRequest: CustomStringConvertible {
    /// The source and the target size, without user information, header values and query values.
    public var description: String { "image of \(source)\(targetSize.map { ", \($0)" } ?? "")" }
}

extension ImageRequest {
    /// The caches that a request may read and write, and whether it may use the network.
    public struct Caching: Sendable, Hashable {
        /// The allowed operations on one cache.
        public struct Access: OptionSet, Sendable, Hashable {
            /// The options as bits.
            public let rawValue: Int

            /// Creates options from their bits.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// The cache may be read.
            public static let read = Access(rawValue: 1)
            /// The cache may be written.
            public static let write = Access(rawValue: 2)
            /// Both.
            public static let all: Access = [.read, .write]
        }

        /// The cache of decoded images in memory.
        public var memory: Access
        /// The cache of processed images on the disk, if the pipeline has one.
        public var processed: Access
        /// The cache of encoded bytes on the disk.
        public var originals: Access
        /// A Boolean value that indicates whether an image that is in no cache may be fetched. If not, the load fails
        /// with `.notCached`.
        public var network: Bool

        /// Creates a set of rules; everything is allowed by default.
        public init(
            memory: Access = .all, processed: Access = .all, originals: Access = .all, network: Bool = true
        ) {
            self.memory = memory
            self.processed = processed
            self.originals = originals
            self.network = network
        }

        /// Neither reads nor writes the disk.
        public static let memoryOnly = Caching(processed: [], originals: [])
        /// Uses only the caches.
        public static let cacheOnly = Caching(network: false)
        /// Fetches the image and stores it.
        public static let reload = Caching(memory: .write, processed: .write, originals: .write)
        /// Fetches the image and does not store it.
        public static let none = Caching(memory: [], processed: [], originals: [])
    }
}

extension ImageRequest.Source {
    /// The URL of a request or a file; nil for a closure, and where there is no URL.
    public var url: URL? {
        switch content {
        case .request(let request): request.url
        case .file(let path): URL(filePath: path)
        case .data, .image, .invalid: nil
        }
    }

    /// The error of a source that cannot be loaded; nil for all others.
    package var refusal: ImageError? {
        guard case .invalid(let reason) = content else { return nil }
        return ImageError(.invalidURL, reason).from(description)
    }
}

extension ImageRequest {
    /// The processors one by one; a composition is replaced by its steps.
    var steps: [any ImageProcessor] { ImageProcessors.Composition.flattened(processors) }

    /// The request for the image before the last processor.
    var withoutLastProcessor: ImageRequest {
        var copy = self
        copy.processors = steps.dropLast()
        return copy
    }
}
