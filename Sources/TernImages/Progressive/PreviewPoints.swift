#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides when a decoder that knows only "all bytes so far", such as ImageIO, is asked for a preview of an arriving file.
/// Pure.
///
/// Points are the ends of the scans of a progressive JPEG, and the growth of an interlaced PNG; with `showsRows`, the growth
/// of every file. Each preview costs as much as decoding the bytes so far, so two points are an eighth of these apart, and
/// the work for all of them is at most nine times that for the file.
struct PreviewPoints {
    private enum State {
        /// The first bytes, which tell the format.
        case start
        /// Before a marker of a JPEG.
        case marker
        /// After the 0xFF of a marker.
        case code
        /// The bytes of a segment's length that are still to come.
        case length(marker: UInt8, high: UInt8?)
        /// The rest of a segment.
        case segment(left: Int, marker: UInt8)
        /// The coded data of a scan.
        case data
        /// After a 0xFF in coded data.
        case dataCode
        /// A file whose structure is not followed.
        case other
    }

    private static let pngHeader = 29
    private static let least = 1_024

    private let showsRows: Bool
    private var state = State.start
    private var head: [UInt8] = []
    private var isInterlaced = false
    private var isProgressive = false
    private var isEnded = false
    private var byteCount = 0
    private var lastPoint = 0
    private var hasNewScan = false
    /// The number of complete scans of a JPEG.
    private(set) var scans = 0

    init(showsRows: Bool) { self.showsRows = showsRows }

    /// Receives the next bytes. Returns a Boolean value that indicates whether a preview of all bytes so far is due.
    mutating func receive(_ bytes: Data) -> Bool {
        for byte in bytes { take(byte) }
        byteCount += bytes.count
        guard !isEnded, hasNewScan || isInterlaced || showsRows, byteCount >= Self.least,
            byteCount - lastPoint >= byteCount / 8
        else { return false }
        lastPoint = byteCount
        hasNewScan = false
        return true
    }

    private mutating func take(_ byte: UInt8) {
        switch state {
        case .start: takeHead(byte)
        case .marker: if byte == 0xFF { state = .code }
        case .code: takeMarker(byte)
        case .length(let marker, nil): state = .length(marker: marker, high: byte)
        case .length(let marker, let high?):
            let left = Int(high) << 8 | Int(byte)
            state = left > 2 ? .segment(left: left - 2, marker: marker) : after(marker)
        case .segment(let left, let marker): state = left > 1 ? .segment(left: left - 1, marker: marker) : after(marker)
        case .data: if byte == 0xFF { state = .dataCode }
        case .dataCode:
            switch byte {
            case 0x00, 0xD0...0xD7: state = .data
            case 0xFF: break
            default:
                scans += 1
                if isProgressive { hasNewScan = true }
                takeMarker(byte)
            }
        case .other: break
        }
    }

    private mutating func takeHead(_ byte: UInt8) {
        head.append(byte)
        if head == [0xFF, 0xD8] {
            state = .marker
        } else if head.count == Self.pngHeader {
            // The last byte of IHDR states the interlacing (PNG, third edition, §11.2.1).
            isInterlaced = head.starts(with: [0x89, 0x50, 0x4E, 0x47]) && byte == 1
            state = .other
        }
    }

    private mutating func takeMarker(_ marker: UInt8) {
        switch marker {
        case 0xFF: state = .code
        case 0xD9:
            isEnded = true
            state = .other
        case 0x01, 0xD0...0xD8: state = .marker
        default:
            if marker == 0xC2 || marker == 0xCA { isProgressive = true }
            state = .length(marker: marker, high: nil)
        }
    }

    /// Returns the state after a segment: coded data follow the head of a scan.
    private func after(_ marker: UInt8) -> State { marker == 0xDA ? .data : .marker }
}
