// The declarations of UniformTypeIdentifiers that Tern uses, as Apple documents them: names, types and labels,
// without behavior. Only scripts/checks/apple compiles it.
import Foundation

public struct UTType: Sendable, Hashable {
    public init?(_ identifier: String) { return nil }
    public init?(mimeType: String, conformingTo supertype: UTType = .data) { return nil }
    private init() {}
    public var identifier: String { "" }
    public var preferredMIMEType: String? { nil }
    public static var data: UTType { UTType() }
    public static var jpeg: UTType { UTType() }
    public static var png: UTType { UTType() }
    public static var gif: UTType { UTType() }
}
