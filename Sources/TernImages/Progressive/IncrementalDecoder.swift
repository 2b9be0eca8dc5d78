#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes JPEG, PNG, WebP, JPEG XL and GIF (their first frames) while their bytes arrive.
///
/// ```swift
/// var stands = try decoder.append(chunk)
/// while stands {
///     if let preview = try decoder.preview() { show(preview) }
///     stands = try decoder.advance()
/// }
/// // and when the last chunk was appended:
/// let image = try decoder.finish()
/// ```
/// A sound file is decoded once, and each byte is copied a bounded number of times, so the work is proportional to the
/// file for every size of chunks. A PNG that is not interlaced has nothing to show before its end, and is decoded when
/// that arrives, unless `showsRows` is true; this takes less time and memory. A preview of a JPEG XL is decoded from all
/// bytes so far, and the next one when half as many again have arrived: all previews take at most three times the work
/// for the file.
///
/// The type has one caller at a time and is not `Sendable`. Run it on an executor that it may occupy. It checks the
/// current task's cancellation between groups of rows and then throws the kind `.cancelled`.
///
/// `finish()` has the same result as a decoder of whole files, for every file and every split of its bytes: the same
/// image, or an error of the same kind. For that purpose the decoder keeps references to the chunks. A damaged or
/// incomplete file is decoded again as a whole.
public final class IncrementalDecoder {
    /// The options of the final image and of the previews. The target size is reached while decoding.
    public let options: ImageDecodingOptions
    /// A Boolean value that indicates whether an image without scans or passes gives previews of the rows that have
    /// arrived. The rest is transparent.
    public let showsRows: Bool
    /// The format of the file; nil until enough bytes have arrived.
    public private(set) var format: ImageFormat?
    /// A Boolean value that indicates whether the whole image is decoded, so that `finish()` only writes it. The end of
    /// the file may follow; `metadata.isComplete` of the image tells whether it has.
    public private(set) var isComplete = false

    /// Whether a damaged file is decoded as a whole. If false, `finish()` throws, and the caller, who has the bytes,
    /// decodes them.
    private let keepsBytes: Bool
    private var head: [UInt8] = []
    /// All bytes so far, in pieces.
    private var pieces: [Data] = []
    private var feed: IncrementalFeed?
    /// The state of a feed that was released.
    private var knownSize: PixelSize?
    private var knownPasses: Int32 = 0
    private var knownCopied: UInt64 = 0
    private var failure: ImageError?
    private var byteCount = 0
    private var joined = 0
    /// Whether a file that was decoded as a whole is an animation; nil for all other files.
    private var isAnimatedWhole: Bool?
    private var standsAtBoundary = false
    private var knownRows: UInt32 = 0

    /// Creates a decoder without bytes. Rows are not shown by default.
    public convenience init(options: ImageDecodingOptions = ImageDecodingOptions(), showsRows: Bool = false) {
        self.init(options: options, showsRows: showsRows, keepsBytes: true)
    }

    init(options: ImageDecodingOptions, showsRows: Bool, keepsBytes: Bool) {
        self.options = options
        self.showsRows = showsRows
        self.keepsBytes = keepsBytes
    }

    /// Returns whether files of the format can be decoded incrementally: JPEG, PNG, WebP, GIF, and on Linux JPEG XL.
    public static func decodes(_ format: ImageFormat) -> Bool {
        [.jpeg, .png, .webp, .gif, .jpegXL].contains(format)
    }

    /// The file's displayed size in pixels before scaling; nil until the header has arrived.
    public var originalSize: PixelSize? { feed?.header.flatMap { feed?.call.upright($0.info) } ?? knownSize }

    /// The number of complete scans of a JPEG, or passes of an interlaced PNG (of 7) or GIF (of 4).
    public var completedPasses: Int { Int(feed?.state.passes ?? knownPasses) }

    /// A Boolean value that indicates whether the file is known to be an animation, of which `finish()` returns the
    /// first frame. For a GIF this is known with the second frame, for a PNG or WebP with the header.
    public var isAnimation: Bool { isAnimatedWhole ?? feed?.state.isAnimation ?? false }

    /// The number of bytes copied in memory so far: at most four times the bytes appended, or five times once a damaged
    /// file is decoded as a whole.
    public var bytesCopied: Int { Int(clamping: feed?.state.copied ?? knownCopied) + head.count + joined }

    /// Appends bytes and decodes them, at most up to the next scan or pass boundary. Returns true if the decoder
    /// stopped at one.
    ///
    /// At a boundary the decoder stays there until `advance()` or `finish()`; bytes appended meanwhile wait. Throws
    /// when the bytes so far are of no supported format or exceed a limit, but never because more bytes are needed.
    /// After an error the decoder still accepts bytes, and throws the error again. Damaged bytes are not an error yet:
    /// there are no more previews, and `finish()` decides whether there is a picture.
    @discardableResult
    public func append(_ bytes: Data) throws(ImageError) -> Bool {
        try count(bytes)
        keep(bytes)
        let outcome = unsafe bytes.withUnsafeBytes { buffer in
            Result { () throws(ImageError) in try unsafe takeIn(buffer) }
        }
        try outcome.get()
        return standsAtBoundary ? true : try advance()
    }

    /// Continues from a boundary to the next one within the bytes that have arrived. Returns true if there is one.
    @discardableResult
    public func advance() throws(ImageError) -> Bool {
        standsAtBoundary = false
        guard let feed else { return false }
        switch try recordingFailure({ () throws(ImageError) in try feed.advance() }) {
        case nil: return false
        case .complete:
            isComplete = true
        case .boundary:
            standsAtBoundary = true
        case .starved:
            let state = feed.state
            standsAtBoundary = showsRows && !state.isInterlaced && state.rows > knownRows
            knownRows = state.rows
        }
        return standsAtBoundary
    }

    /// Returns the image at the current boundary; nil if the decoder is at none, or has returned this one before.
    ///
    /// The image is marked `isPartial` and must not be stored in a cache. It has no gaps: missing pixels of an
    /// interlaced file have the values of their neighbors, and those of a JPEG XL less detail. Nil, too, while a JPEG XL
    /// has nothing to show.
    public func preview() throws(ImageError) -> RasterImage? {
        guard standsAtBoundary, let feed else { return nil }
        standsAtBoundary = false
        return try recordingFailure { () throws(ImageError) -> RasterImage? in try feed.preview() } ?? nil
    }

    /// Returns the picture after the last bytes, identical to the result of `CodecImageDecoder`.
    ///
    /// If the file is cut short or damaged, throws the error that `CodecImageDecoder` throws, or returns the part that
    /// is present, marked `isPartial`, if the options allow it.
    public func finish() throws(ImageError) -> RasterImage {
        do throws(ImageError) {
            if let picture = try picture() { return picture }
        } catch {
            failure = error
        }
        let failure = failure ?? ImageError(.corrupt, format: format, "a damaged file, to be decoded as a whole")
        if failure.kind == .cancelled || isTooLong || !keepsBytes || !mayDecodeWhole { throw failure }
        releaseFeed()
        var whole = Data(capacity: byteCount)
        for piece in pieces { whole.append(piece) }
        joined = byteCount
        let decoder = CodecImageDecoder()
        let image = try decoder.image(from: whole, options: options)
        // An animation without usable frames after the first is not an animation.
        isAnimatedWhole = (try? decoder.animation(from: whole, options: options)) != nil
        return image
    }

    /// Frees the memory of the codec, so that it is not in use twice while the file is decoded as a whole.
    private func releaseFeed() {
        guard let feed else { return }
        knownSize = originalSize
        knownPasses = feed.state.passes
        knownCopied = feed.state.copied
        isAnimatedWhole = isAnimatedWhole ?? feed.state.isAnimation
        self.feed = nil
    }

    /// Returns the picture that was decoded incrementally; nil if the file must be decoded as a whole.
    private func picture() throws(ImageError) -> RasterImage? {
        if let failure { throw failure }
        if feed == nil { try open(isLast: true) }
        guard let feed else { return nil }
        feed.end()
        while try feed.advance() != .complete {}
        isComplete = true
        if feed.isGathering { return try feed.whole() }
        if feed.isDoubtful { return nil }
        let picture = try feed.render(isLast: true)
        return feed.isDoubtful ? nil : picture
    }

    /// Whether a damaged file can be decoded as a whole. False for a format that this decoder does not support.
    private var mayDecodeWhole: Bool { format.map(Self.decodes) ?? true }

    private var isTooLong: Bool { byteCount > options.limits.bytes }

    private func count(_ bytes: Data) throws(ImageError) {
        byteCount += bytes.count
        guard isTooLong else { return }
        pieces = []
        failure = ImageError(
            .limitExceeded, format: format, "\(byteCount) bytes so far, the limit is \(options.limits.bytes)")
        if let failure { throw failure }
    }

    /// Keeps bytes. Small pieces are joined, because the record of a piece is larger than a few bytes.
    private func keep(_ bytes: Data) {
        guard keepsBytes, !bytes.isEmpty else { return }
        guard let last = pieces.indices.last, pieces[last].count + bytes.count <= 16_384 else {
            return pieces.append(bytes)
        }
        pieces[last].append(bytes)
    }

    private func takeIn(_ bytes: UnsafeRawBufferPointer) throws(ImageError) {
        _ = try recordingFailure { () throws(ImageError) in
            if let feed { return try unsafe feed.append(bytes) }
            unsafe head.append(contentsOf: bytes)
            try open(isLast: false)
        }
    }

    /// Recognizes the format from the first bytes, and opens its decoder with them.
    private func open(isLast: Bool) throws(ImageError) {
        let sniffed = unsafe ImageFormat(sniffing: head.span.bytes)
        guard let found = sniffed, CodecImageDecoder().decodes(found) else {
            let wanted = unsafe ImageFormat.sniffedByteCount(of: head.span.bytes)
            guard isLast || sniffed != nil || head.count >= wanted else { return }
            let (first, count) = (head, byteCount)
            throw unsafe ForeignContent.error(first: first.span.bytes, byteCount: count)
        }
        format = found
        let opened = try IncrementalFeed(
            call: CodecCall(format: found, options: options), showsRows: showsRows)
        let outcome = unsafe head.withUnsafeBytes { buffer in
            Result { () throws(ImageError) in try unsafe opened.append(buffer) }
        }
        try outcome.get()
        head = []
        feed = opened
    }

    /// Returns the result of the closure. Its error is repeated by every later call. Returns nil if the error is left
    /// to `finish()`.
    private func recordingFailure<Value>(_ body: () throws(ImageError) -> Value) throws(ImageError) -> Value? {
        if failure == nil {
            do throws(ImageError) { return try body() } catch { failure = error }
        }
        // The decoder of whole files accepts some bytes that this decoder cannot judge.
        guard let failure, !keepsBytes || (failure.kind != .corrupt && failure.kind != .truncated) else { return nil }
        throw failure
    }
}
#endif
