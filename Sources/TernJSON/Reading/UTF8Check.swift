/// Checks bytes beyond ASCII against the table of well-formed sequences (Unicode, table 3-7).
enum UTF8Check {
    /// Returns whether bytes are well-formed UTF-8.
    @unsafe @inline(never)
    static func isValid(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Bool {
        unsafe firstError(start, end) == end
    }

    /// Returns the beginning of the first sequence that is not well-formed, or the end.
    @unsafe @inline(__always)
    static func firstError(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
        var place = unsafe start
        while unsafe place < end {
            let left = unsafe end - place
            if left >= 8 {
                let count = unsafe ByteWords.lengthOfUsualCharacters(ByteWords.load(place))
                unsafe place += count
                if count > 0 { continue }
            }
            let byte = unsafe place[0]
            if byte < 0x80 {
                unsafe place += 1
                continue
            }
            let length = byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0
            guard length > 0, left >= length else { return unsafe place }
            let second = unsafe place[1]
            // The second byte is limited for sequences that would be too long, surrogates, and beyond U+10FFFF.
            let lowest: UInt8 = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80
            let highest: UInt8 = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF
            guard second >= lowest, second <= highest else { return unsafe place }
            if length > 2, unsafe place[2] & 0xC0 != 0x80 { return unsafe place }
            if length > 3, unsafe place[3] & 0xC0 != 0x80 { return unsafe place }
            unsafe place += length
        }
        return unsafe end
    }
}
