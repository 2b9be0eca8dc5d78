/// The white space of a text that has a line for each member and element, as Foundation's encoder writes it.
extension JSONTextWriter {
    /// Appends a line feed and two spaces for each level.
    @inline(__always)
    func appendLine(_ level: Int) {
        reserve(2 &* level &+ 17)
        unsafe Self.storeLine(level, at: end)
        count &+= 2 &* level &+ 1
    }

    /// Appends the line of a member up to its value.
    ///
    /// - Parameters:
    ///   - name: The name with its quotes, readable up to 16 bytes beyond its end.
    ///   - hasComma: Whether there is a member before.
    @inline(__always)
    func appendLine(of name: UnsafePointer<UInt8>, count nameCount: Int, hasComma: Bool) {
        let lineCount = 2 &* nesting &+ 1
        reserve(lineCount &+ nameCount &+ 24)
        unsafe end[0] = UInt8(ascii: ",")
        count &+= hasComma ? 1 : 0
        unsafe Self.storeLine(nesting, at: end)
        count &+= lineCount
        unsafe Self.storeBlocks(of: name, count: nameCount, at: end)
        count &+= nameCount
        unsafe UnsafeMutableRawPointer(end).storeBytes(of: UInt32(0x0020_3A20).littleEndian, as: UInt32.self)
        count &+= 3
    }

    /// Stores a line feed and spaces in blocks, up to 16 bytes beyond their end.
    @inline(__always)
    private static func storeLine(_ level: Int, at place: UnsafeMutablePointer<UInt8>) {
        unsafe place[0] = UInt8(ascii: "\n")
        let spaces = SIMD16<UInt8>(repeating: UInt8(ascii: " "))
        var offset = 1
        while offset <= 2 &* level {
            unsafe UnsafeMutableRawPointer(place).storeBytes(of: spaces, toByteOffset: offset, as: SIMD16<UInt8>.self)
            offset &+= 16
        }
    }

    /// Appends the line of a closing bracket. An array or object that is empty has an empty line.
    @inline(never)
    func appendLastLine(_ level: Int, isEmpty: Bool) {
        if isEmpty { append(UInt8(ascii: "\n")) }
        appendLine(level)
    }

    /// Appends a colon between spaces.
    @inline(__always)
    func appendColon() { writeWord(0x0020_3A20, count: 3) }
}
