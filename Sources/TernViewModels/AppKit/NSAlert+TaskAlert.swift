#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

extension NSAlert {
    /// An alert with AppKit's own button, to be run in a window's `showAlert(_:)`.
    public convenience init(_ alert: TaskAlert) {
        self.init()
        messageText = alert.title
        informativeText = alert.message
    }
}
#endif
