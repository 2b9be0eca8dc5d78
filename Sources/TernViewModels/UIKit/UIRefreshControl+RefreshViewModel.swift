#if canImport(UIKit) && !os(watchOS) && !os(tvOS)
public import UIKit

/// Refreshes while a task runs, by the members that UIKit gives it.
extension UIRefreshControl: RefreshViewModel {}
#endif
