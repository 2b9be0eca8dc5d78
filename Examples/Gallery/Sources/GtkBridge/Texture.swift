import CGtk

/// Pixels as GTK draws them.
@MainActor
@safe
public final class Texture {
    let pointer: OpaquePointer?

    /// A copy of premultiplied RGBA pixels, rows from the top without padding. A copy, since GTK keeps it as long as it
    /// likes, and bytes that Swift lends may not be kept.
    public init(width: Int, height: Int, premultiplied pixels: RawSpan) {
        let bytes = unsafe pixels.withUnsafeBytes { unsafe g_bytes_new($0.baseAddress, gsize($0.count)) }
        unsafe pointer = gdk_memory_texture_new(
            gint(width), gint(height), GDK_MEMORY_R8G8B8A8_PREMULTIPLIED, bytes, gsize(width * 4))
        unsafe g_bytes_unref(bytes)
    }

    /// Takes a texture over.
    init(owned pointer: OpaquePointer?) { unsafe self.pointer = pointer }

    isolated deinit { if let pointer = unsafe pointer { unsafe g_object_unref(UnsafeMutableRawPointer(pointer)) } }

    /// In pixels.
    public var width: Int { unsafe Int(gdk_texture_get_width(pointer)) }
    /// In pixels.
    public var height: Int { unsafe Int(gdk_texture_get_height(pointer)) }

    /// Red, green, blue and alpha of every pixel, premultiplied.
    public func pixels() -> [UInt8] {
        let (width, height) = (width, height)
        var bytes = [UInt8](repeating: 0, count: width * height * 4)
        // GDK's format: 32 bits a pixel in the machine's order, alpha in the highest eight.
        unsafe bytes.withUnsafeMutableBufferPointer {
            unsafe gdk_texture_download(pointer, $0.baseAddress, gsize(width * 4))
        }
        for index in stride(from: 0, to: bytes.count, by: 4) { bytes.swapAt(index, index + 2) }
        return bytes
    }
}
