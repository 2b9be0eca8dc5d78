// The declarations of AppKit that Tern uses, as Apple documents them (developer.apple.com/documentation/appkit):
// names, types, labels and actors, without behavior. Only scripts/checks/apple compiles it.
@_exported public import CoreGraphics
@_exported public import Foundation

/// Sendable since macOS 14 in newer SDKs, and not in older ones: the weaker is the one to be checked against.
open class NSImage: NSObject {
    public convenience init(cgImage: CGImage, size: NSSize) { self.init() }
}

@MainActor open class NSWindow: NSResponder {
    open var backingScaleFactor: CGFloat { 1 }
}

@MainActor open class NSResponder: NSObject {}

@MainActor open class NSView: NSResponder {
    public init(frame frameRect: NSRect) {}
    open var bounds: NSRect {
        get { NSRect(x: 0, y: 0, width: 0, height: 0) }
        set { _ = newValue }
    }
    open var window: NSWindow? { nil }
    open func layout() {}
}

@MainActor open class NSControl: NSView {}

@MainActor open class NSImageView: NSControl {
    open var image: NSImage? {
        get { nil }
        set { _ = newValue }
    }
}

@MainActor open class NSButton: NSControl {
    open var image: NSImage? {
        get { nil }
        set { _ = newValue }
    }
    open var alternateImage: NSImage? {
        get { nil }
        set { _ = newValue }
    }
}

@MainActor open class NSProgressIndicator: NSView {
    open var isIndeterminate: Bool {
        get { true }
        set { _ = newValue }
    }
    open var doubleValue: Double {
        get { 0 }
        set { _ = newValue }
    }
    open var minValue: Double {
        get { 0 }
        set { _ = newValue }
    }
    open var maxValue: Double {
        get { 100 }
        set { _ = newValue }
    }
    open func startAnimation(_ sender: Any?) {}
    open func stopAnimation(_ sender: Any?) {}
}

@MainActor open class NSAlert: NSObject {
    public struct Style: RawRepresentable, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }

    open var messageText: String {
        get { "" }
        set { _ = newValue }
    }
    open var informativeText: String {
        get { "" }
        set { _ = newValue }
    }
    open func beginSheetModal(for sheetWindow: NSWindow) async -> NSApplication.ModalResponse {
        NSApplication.ModalResponse(rawValue: 0)
    }
}

@MainActor open class NSApplication: NSResponder {
    public struct ModalResponse: RawRepresentable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
    }

    public enum ActivationPolicy: Int, Sendable { case regular, accessory, prohibited }

    open class var shared: NSApplication { NSApplication() }
    @discardableResult open func setActivationPolicy(_ activationPolicy: NSApplication.ActivationPolicy) -> Bool { true }
}
