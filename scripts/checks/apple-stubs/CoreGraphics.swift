// The declarations of Core Foundation and CoreGraphics that Tern uses, as Apple documents them
// (developer.apple.com/documentation): names, types and labels, without behavior. Only scripts/checks/apple
// compiles it.
//
// The types of Core Foundation are aliases of those of Foundation to which they bridge without a cast on Apple's
// systems.
public import Foundation

public typealias CFArray = NSArray
public typealias CFData = NSData
public typealias CFDictionary = NSDictionary
public typealias CFMutableData = NSMutableData
public typealias CFString = NSString

public enum CGImageAlphaInfo: UInt32, Sendable {
    case none = 0
    case premultipliedLast = 1
    case premultipliedFirst = 2
    case last = 3
    case first = 4
    case noneSkipLast = 5
    case noneSkipFirst = 6
    case alphaOnly = 7
}

public struct CGBitmapInfo: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let byteOrder16Little = CGBitmapInfo(rawValue: 4096)
    public static let floatComponents = CGBitmapInfo(rawValue: 256)
}

public enum CGColorRenderingIntent: Int32, Sendable {
    case defaultIntent = 0
    case absoluteColorimetric = 1
    case relativeColorimetric = 2
    case perceptual = 3
    case saturation = 4
}

public enum CGColorSpaceModel: Int32, Sendable {
    case unknown = -1
    case monochrome = 0
    case rgb = 1
    case cmyk = 2
    case lab = 3
    case deviceN = 4
    case indexed = 5
    case pattern = 6
    case XYZ = 7
}

public enum CGBlendMode: Int32, Sendable {
    case normal = 0
    case copy = 17
}

public enum CGInterpolationQuality: Int32, Sendable {
    case `default` = 0
    case none = 1
    case low = 2
    case medium = 4
    case high = 3
}

public final class CGColorSpace {
    public class var sRGB: CFString { NSString() }
    public class var displayP3: CFString { NSString() }
    public class var displayP3_PQ: CFString { NSString() }
    public class var displayP3_HLG: CFString { NSString() }
    public class var itur_2020: CFString { NSString() }
    public class var itur_2100_PQ: CFString { NSString() }
    public class var itur_2100_HLG: CFString { NSString() }
    public init?(name: CFString) {}
    public init?(iccData: AnyObject) {}
    public func copyICCData() -> CFData? { nil }
    public var model: CGColorSpaceModel { .rgb }
    public var supportsOutput: Bool { true }
}

public typealias CGDataProviderReleaseDataCallback =
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafeRawPointer, Int
    ) -> Void

public final class CGDataProvider {
    public init?(
        dataInfo info: UnsafeMutableRawPointer?, data: UnsafeRawPointer, size: Int,
        releaseData: @escaping CGDataProviderReleaseDataCallback
    ) {}
}

public final class CGImage {
    public init?(
        width: Int, height: Int, bitsPerComponent: Int, bitsPerPixel: Int, bytesPerRow: Int, space: CGColorSpace,
        bitmapInfo: CGBitmapInfo, provider: CGDataProvider, decode: UnsafePointer<CGFloat>?, shouldInterpolate: Bool,
        intent: CGColorRenderingIntent
    ) {}
    public var width: Int { 0 }
    public var height: Int { 0 }
    public var colorSpace: CGColorSpace? { nil }
}

public final class CGContext {
    public init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32
    ) {}
    public var interpolationQuality: CGInterpolationQuality {
        get { .default }
        set { _ = newValue }
    }
    public func setBlendMode(_ mode: CGBlendMode) {}
    public func draw(_ image: CGImage, in rect: CGRect, byTiling: Bool = false) {}
    public func makeImage() -> CGImage? { nil }
}
