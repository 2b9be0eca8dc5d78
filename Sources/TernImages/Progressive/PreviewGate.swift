#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides when the decoder of an arriving image works, and which boundaries become previews.
///
/// While the decoder works, new bytes only set a flag, and the decoder checks it when it is done.
struct PreviewGate {
    /// The action for bytes that arrived.
    enum Intake: Equatable {
        /// Start the decoder, which is idle.
        case work
        /// Do nothing. The decoder works and will take the bytes.
        case leave
    }

    /// The action at a boundary.
    enum Boundary: Equatable {
        case render
        case pass
    }

    /// The action when the decoder has used its bytes.
    enum Outcome: Equatable {
        /// Take the bytes that arrived in the meantime.
        case work
        /// All bytes are used: make the final image.
        case finish
        /// Stop until bytes arrive.
        case rest
    }

    let policy: ProgressivePolicy
    private(set) var isWorking = false
    private(set) var isDirty = false
    private(set) var previews = 0
    /// Whether the final image is being made, or the image is no longer needed.
    private(set) var isOver = false
    /// Whether the image is no longer needed, or its decoder failed.
    private(set) var isStopped = false
    private var isEnded = false
    private var boundaries = 0
    private var lastPreview: Duration?

    /// Whether further bytes are ignored.
    var isClosed: Bool { isEnded || isOver }

    init(policy: ProgressivePolicy) { self.policy = policy }

    mutating func received() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        return wake()
    }

    /// Records that all bytes have arrived.
    mutating func ended() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        isEnded = true
        return wake()
    }

    /// - Parameter now: The time on any monotonic clock.
    mutating func boundary(at now: Duration) -> Boundary {
        boundaries += 1
        guard !isOver, policy.every > 0, boundaries.isMultiple(of: policy.every), previews < policy.maxPreviews,
            !(policy.skipsWhenBehind && (isDirty || isEnded))
        else { return .pass }
        if let lastPreview, now - lastPreview < policy.minimumInterval { return .pass }
        previews += 1
        lastPreview = now
        return .render
    }

    mutating func settled() -> Outcome {
        guard !isOver else { return .rest }
        if isDirty {
            isDirty = false
            return .work
        }
        if isEnded {
            isOver = true
            return .finish
        }
        isWorking = false
        return .rest
    }

    /// Ends all work, because the decoder failed or the image is no longer needed.
    mutating func stop() {
        isOver = true
        isStopped = true
    }

    private mutating func wake() -> Intake {
        guard !isWorking else {
            isDirty = true
            return .leave
        }
        isWorking = true
        return .work
    }
}

/// The previews to make of an arriving image.
///
/// Each preview costs about as much as writing the final image: at the target's size 10 to 15% of the decoding.
public struct ProgressivePolicy: Sendable, Hashable {
    /// The number of scans or passes for each preview: 1 for every one, 2 for every second; 0 for no previews.
    public var every: Int
    /// The minimum time between two previews; zero, the default, for no limit.
    public var minimumInterval: Duration
    /// The maximum number of previews.
    public var maxPreviews: Int
    /// A Boolean value that indicates whether an image without scans or passes shows the rows that have arrived. False
    /// by default.
    public var showsRows: Bool
    /// A Boolean value that indicates whether no preview is made while more bytes are waiting, because the next one
    /// will be better. False by default.
    public var skipsWhenBehind: Bool

    /// Creates a policy. By default, each scan or pass gives a preview.
    public init(
        every: Int = 1, minimumInterval: Duration = .zero, maxPreviews: Int = .max, showsRows: Bool = false,
        skipsWhenBehind: Bool = false
    ) {
        self.every = every
        self.minimumInterval = minimumInterval
        self.maxPreviews = maxPreviews
        self.showsRows = showsRows
        self.skipsWhenBehind = skipsWhenBehind
    }

    /// No previews.
    public static let none = ProgressivePolicy(every: 0)
    /// A preview of each scan of a JPEG, and of each pass of an interlaced PNG or GIF.
    public static let scans = ProgressivePolicy()
    /// At most 3 previews, at least 150 ms apart, and none while bytes arrive faster than they are decoded. Suitable
    /// for lists.
    public static let paced = ProgressivePolicy(
        minimumInterval: .milliseconds(150), maxPreviews: 3, skipsWhenBehind: true)
}

/// Decides when a decoder that knows only "all bytes so far", such as ImageIO, is asked for a preview of an arriving
/// file. Pure.
///
/// Points are the ends of the scans of a progressive JPEG, and the growth of an interlaced PNG; with `showsRows`, the
/// growth of every file. Each preview costs as much as decoding the bytes so far, so two points are an eighth of these
/// apart, and the work for all of them is at most nine times that for the file.
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
