public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What picture is wanted, from where, at which size, and what may be done to get it. A value.
///
/// ```swift
/// var request = ImageRequest(url, targetSize: PixelSize(width: 200, height: 200), contentMode: .fill)
/// request.processors = [.circle()]
/// request.priority = .high
/// let image = try await ImagePipeline.shared.image(for: request)
/// ```
public struct ImageRequest: Sendable {
    /// Where the bytes come from.
    public var source: Source
    /// The size wanted in pixels; nil, the default, for the picture's own, as is a size without pixels. A picture is never
    /// made larger than it is.
    public var targetSize: PixelSize?
    /// How the target is met, `.fit` by default. Without a target it has no effect.
    public var contentMode: ImageDecodingOptions.ContentMode
    /// What is done to the decoded picture, in order; nothing by default.
    public var processors: [any ImageProcessor]
    /// The place among loads that wait, `.normal` by default. A task's can be changed while it runs.
    public var priority: Request.Priority
    /// Whether the picture is on the screen now: it goes before its equals of the same priority. False by default.
    public var isVisible = false
    /// Pixels per point of the picture; nil, the default: what the URL's name says (`photo@2x.png`), else 1. What is not
    /// finite and above 0 counts as nil.
    public var scale: Double?
    /// Which caches may be read and written, and whether the network may be asked.
    public var caching = Caching()
    /// All else.
    public var options = Options()

    /// A request for the picture at a URL, of http, https or file. Without a URL the load fails with `.invalidURL`, and no
    /// cache or network is asked.
    public init(
        _ url: URL?, targetSize: PixelSize? = nil, contentMode: ImageDecodingOptions.ContentMode = .fit,
        processors: [any ImageProcessor] = [], priority: Request.Priority = .normal
    ) {
        self.init(
            Source(url), targetSize: targetSize, contentMode: contentMode, processors: processors, priority: priority)
    }

    /// A request for the picture that a source gives.
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
    /// Where a picture's bytes come from.
    public struct Source: Sendable {
        enum Content: Sendable {
            case request(Request)
            case file(String)
            case data(@concurrent @Sendable () async throws -> Data)
            case invalid(String)
        }

        let content: Content
        let key: SourceKey
        /// A number of its own for what must not share a fetch with another; nil for most.
        let serial: UInt64?

        /// What a URL names: http and https by a GET, file by reading it. Anything else, and nil, fails when it is loaded.
        public init(_ url: URL?) {
            guard let url else {
                self.init(content: .invalid("there is no URL"), key: SourceKey(text: ""))
                return
            }
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
            self.content = content
            self.key = key
            self.serial = serial
        }

        static let serials = SerialNumbers()

        /// What the response to a request carries: method, headers and body count for what is the same picture.
        ///
        /// Requests that are alike share one fetch and the caches, unless they have interceptors, a policy, a validation,
        /// credentials, cookies or a trust policy of their own, or a body that is not in memory. What those bring is kept
        /// in memory alone, and found by this very value and its copies; a name by `Hooks.cacheKey` shares it.
        public static func request(_ request: Request) -> Source {
            let serial = request.mayShare ? nil : serials.next()
            return Source(content: .request(request), key: SourceKey(request, serial: serial), serial: serial)
        }

        /// A file, read off the caller.
        public static func file(_ url: URL) -> Source {
            let path = url.path(percentEncoded: false)
            return Source(content: .file(path), key: SourceKey(text: "file:\(path)"))
        }

        /// Bytes that a closure gives, under an identifier that is the same for the same picture and for no other.
        ///
        /// The closure counts as one of the pipeline's fetches until it returns: it must not wait for another picture of the
        /// same pipeline, which may wait for its place.
        public static func data(
            _ identifier: String, _ load: @escaping @concurrent @Sendable () async throws -> Data
        ) -> Source {
            Source(content: .data(load), key: SourceKey(text: "data:\(identifier)"))
        }

        /// The URL as it is sent, the file's path, or the identifier's kind; without user information and query values.
        public var description: String {
            switch content {
            case .request(let request): request.description
            case .file(let path): "file \(path)"
            case .data: "data of \(key.text.dropFirst(5))"
            case .invalid: "an invalid URL"
            }
        }

        /// What its file is called, without a query.
        var name: String {
            switch content {
            case .request(let request): request.target.path
            case .file(let path): path
            case .data, .invalid: key.text
            }
        }

        /// The request that is sent for it, where one is.
        public var request: Request? {
            if case .request(let request) = content { request } else { nil }
        }
    }
}

extension ImageRequest.Source: CustomStringConvertible, CustomReflectable {
    /// Nothing beside ``description``: `dump` would show the request's query and headers.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ImageRequest: CustomStringConvertible {
    /// The source and the size wanted; without user information, header values and query values.
    public var description: String { "image of \(source)\(targetSize.map { ", \($0)" } ?? "")" }
}
