import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageRequest.Source {
    /// The URL of a request or a file; nil for bytes that a closure gives, and where there is no URL.
    public var url: URL? {
        switch content {
        case .request(let request): request.url
        case .file(let path): URL(filePath: path)
        case .data, .invalid: nil
        }
    }

    /// Why nothing can be loaded from it; nil if something can.
    package var refusal: ImageError? {
        guard case .invalid(let reason) = content else { return nil }
        return ImageError(.invalidURL, reason).from(description)
    }
}

extension ImagePipeline {
    /// Whether two requests would be one load, shown in one way.
    package nonisolated func isOneLoad(_ one: ImageRequest, _ other: ImageRequest) -> Bool {
        one.options.presentation == other.options.presentation
            && one.options.requiresAnimation == other.options.requiresAnimation
            && ImageFlight(key(of: one), one) == ImageFlight(key(of: other), other)
    }
}
