#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// How large a terminal is.
struct WindowSize: Equatable {
    /// Cells from left to right.
    var columns: Int
    /// Cells from top to bottom.
    var rows: Int
    /// Pixels from left to right; 0 where the terminal does not tell.
    var pixelWidth = 0
    /// Pixels from top to bottom; 0 where the terminal does not tell.
    var pixelHeight = 0

    /// Where nobody tells otherwise.
    static let usual = WindowSize(columns: 80, rows: 24)

    /// That of the terminal behind a descriptor, at this moment: a window may be resized. The usual one where there is
    /// none.
    static func of(_ descriptor: Int32) -> WindowSize {
        var size = winsize()
        let answer = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        guard answer == 0, size.ws_col > 0 else { return usual }
        return WindowSize(
            columns: Int(size.ws_col), rows: size.ws_row > 0 ? Int(size.ws_row) : usual.rows,
            pixelWidth: Int(size.ws_xpixel), pixelHeight: Int(size.ws_ypixel))
    }
}
