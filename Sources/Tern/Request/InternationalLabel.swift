#if os(Linux)
import CTernIDN
#else
import Foundation
#endif

/// One label of an international host name.
enum InternationalLabel {
    /// Converts a label to the ASCII form that is sent, by UTS #46 without transitional processing: `bücher` to
    /// `xn--bcher-kva`. The result does not depend on the process's locale.
    ///
    /// An ASCII label must begin with `xn--` in lower case. It is checked and returned unchanged. libidn2 converts
    /// labels on Linux, and the system elsewhere.
    ///
    /// - Throws: An error when IDNA does not allow the label.
    static func ascii(_ label: String) throws(Target.Problem) -> [UInt8] {
        guard let result = converted(label) else {
            throw Target.Problem(reason: "the host has a label that IDNA does not allow (UTS #46)")
        }
        return result
    }

    #if os(Linux)
    private static func converted(_ label: String) -> [UInt8]? {
        var ascii: UnsafeMutablePointer<CChar>?
        let code = unsafe label.withCString { unsafe tern_idn_to_ascii($0, &ascii) }
        defer { unsafe tern_idn_free(ascii) }
        guard code == IDN2_OK.rawValue, let text = unsafe ascii else { return nil }
        return Array(unsafe String(cString: text).utf8)
    }
    #else
    private static func converted(_ label: String) -> [UInt8]? {
        URLComponents(string: "https://\(label)/")?.encodedHost.map { Array($0.utf8) }
    }
    #endif
}
