// The declarations of ImageIO that Tern uses, as Apple documents them (developer.apple.com/documentation/imageio):
// names, types and labels, without behavior. Only scripts/checks/apple compiles it. Constants are getters: NSString
// is not Sendable.
@_exported public import CoreGraphics
public import Foundation

public final class CGImageSource {}

public final class CGImageDestination {}

public enum CGImageSourceStatus: Int32, Sendable {
    case statusUnexpectedEOF = -5
    case statusInvalidData = -4
    case statusUnknownType = -3
    case statusReadingHeader = -2
    case statusIncomplete = -1
    case statusComplete = 0
}

public func CGImageSourceCopyTypeIdentifiers() -> CFArray { NSArray() }
public func CGImageSourceCreateWithData(_ data: CFData, _ options: CFDictionary?) -> CGImageSource? { nil }
public func CGImageSourceCreateIncremental(_ options: CFDictionary?) -> CGImageSource { CGImageSource() }
public func CGImageSourceUpdateData(_ isrc: CGImageSource, _ data: CFData, _ final: Bool) {}
public func CGImageSourceGetType(_ isrc: CGImageSource) -> CFString? { nil }
public func CGImageSourceGetCount(_ isrc: CGImageSource) -> Int { 0 }
public func CGImageSourceGetPrimaryImageIndex(_ isrc: CGImageSource) -> Int { 0 }
public func CGImageSourceGetStatus(_ isrc: CGImageSource) -> CGImageSourceStatus { .statusComplete }
public func CGImageSourceGetStatusAtIndex(_ isrc: CGImageSource, _ index: Int) -> CGImageSourceStatus {
    .statusComplete
}
public func CGImageSourceCopyProperties(_ isrc: CGImageSource, _ options: CFDictionary?) -> CFDictionary? { nil }
public func CGImageSourceCopyPropertiesAtIndex(
    _ isrc: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CFDictionary? { nil }
public func CGImageSourceCreateImageAtIndex(
    _ isrc: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? { nil }
public func CGImageSourceCreateThumbnailAtIndex(
    _ isrc: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? { nil }

public func CGImageDestinationCreateWithData(
    _ data: CFMutableData, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? { nil }
public func CGImageDestinationAddImage(_ idst: CGImageDestination, _ image: CGImage, _ properties: CFDictionary?) {}
public func CGImageDestinationSetProperties(_ idst: CGImageDestination, _ properties: CFDictionary?) {}
public func CGImageDestinationFinalize(_ idst: CGImageDestination) -> Bool { true }

public var kCGImageSourceShouldCache: CFString { NSString() }
public var kCGImageSourceCreateThumbnailFromImageAlways: CFString { NSString() }
public var kCGImageSourceCreateThumbnailWithTransform: CFString { NSString() }
public var kCGImageSourceThumbnailMaxPixelSize: CFString { NSString() }
public var kCGImagePropertyPixelWidth: CFString { NSString() }
public var kCGImagePropertyPixelHeight: CFString { NSString() }
public var kCGImagePropertyOrientation: CFString { NSString() }
public var kCGImagePropertyProfileName: CFString { NSString() }
public var kCGImagePropertyGIFDictionary: CFString { NSString() }
public var kCGImagePropertyGIFUnclampedDelayTime: CFString { NSString() }
public var kCGImagePropertyGIFDelayTime: CFString { NSString() }
public var kCGImagePropertyGIFLoopCount: CFString { NSString() }
public var kCGImagePropertyPNGDictionary: CFString { NSString() }
public var kCGImagePropertyAPNGUnclampedDelayTime: CFString { NSString() }
public var kCGImagePropertyAPNGDelayTime: CFString { NSString() }
public var kCGImagePropertyAPNGLoopCount: CFString { NSString() }
public var kCGImagePropertyWebPDictionary: CFString { NSString() }
public var kCGImagePropertyWebPUnclampedDelayTime: CFString { NSString() }
public var kCGImagePropertyWebPDelayTime: CFString { NSString() }
public var kCGImagePropertyWebPLoopCount: CFString { NSString() }
public var kCGImagePropertyHEICSDictionary: CFString { NSString() }
public var kCGImagePropertyHEICSUnclampedDelayTime: CFString { NSString() }
public var kCGImagePropertyHEICSDelayTime: CFString { NSString() }
public var kCGImagePropertyHEICSLoopCount: CFString { NSString() }
public var kCGImagePropertyAVISDictionary: CFString { NSString() }
public var kCGImageDestinationLossyCompressionQuality: CFString { NSString() }
public var kCGImagePropertyJFIFDictionary: CFString { NSString() }
public var kCGImagePropertyJFIFIsProgressive: CFString { NSString() }
