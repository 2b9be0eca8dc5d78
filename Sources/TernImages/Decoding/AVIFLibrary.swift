#if os(Linux)
import CTernCodecs

/// The libavif that is looked for at run time.
enum AVIFLibrary {
    /// Why AVIF cannot be decoded here; nil if it can.
    static var obstacle: String? {
        guard let text = unsafe tern_avif_obstacle() else { return nil }
        return unsafe String(cString: text)
    }

    /// Why a library of the file name cannot be used; nil if it can.
    static func obstacle(of name: String) -> String? {
        var text = [CChar](repeating: 0, count: 160)
        unsafe tern_avif_look(name, &text)
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
#endif
