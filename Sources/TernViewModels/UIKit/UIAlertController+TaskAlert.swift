#if canImport(UIKit) && !os(watchOS)
public import UIKit

extension UIAlertController {
    /// An alert with one button, to be presented in a view controller's `showAlert(_:)`.
    public convenience init(_ alert: TaskAlert, dismissal: String = "OK") {
        self.init(title: alert.title, message: alert.message, preferredStyle: .alert)
        addAction(UIAlertAction(title: dismissal, style: .cancel))
    }
}
#endif
