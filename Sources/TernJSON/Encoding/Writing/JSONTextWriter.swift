/// Writes JSON to the text of an ``EncodingState``.
///
/// It is a pointer: its user has, or is called by someone who has, a reference to the ``EncodingStorage``.
@safe
struct JSONTextWriter {
    let state: UnsafeMutablePointer<EncodingState>

    @inline(__always)
    init(state: UnsafeMutablePointer<EncodingState>) { unsafe self.state = state }

    /// The number of bytes so far.
    @inline(__always)
    var count: Int {
        get { unsafe state.pointee.count }
        nonmutating set { unsafe state.pointee.count = newValue }
    }

    /// The place of the next byte. It changes when the text grows.
    @inline(__always) var end: UnsafeMutablePointer<UInt8> { unsafe state.pointee.bytes + state.pointee.count }

    /// The text so far.
    var text: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: state.pointee.bytes, count: state.pointee.count)
    }

    var options: TernJSONEncoder { unsafe state.pointee.context.pointee.options }

    var storage: EncodingStorage {
        @inline(__always) get { unsafe state.pointee.storage }
    }

    // MARK: Room

    /// Makes room for more bytes.
    @inline(__always)
    func reserve(_ more: Int) {
        if unsafe state.pointee.count &+ more > state.pointee.limit { makeRoom(more) }
    }

    @inline(never)
    private func makeRoom(_ more: Int) {
        let needed = count + more
        if unsafe needed > state.pointee.capacity {
            var capacity = unsafe state.pointee.capacity
            while capacity < needed { capacity *= 2 }
            let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
            unsafe bytes.update(from: state.pointee.bytes, count: count)
            unsafe state.pointee.bytes.deallocate()
            unsafe state.pointee.bytes = bytes
            unsafe state.pointee.capacity = capacity
        }
        if unsafe count >= state.pointee.nextCheck {
            if Task.isCancelled { fail(CancellationError()) }
            unsafe state.pointee.nextCheck = count + EncodingState.checkInterval
        }
        unsafe state.pointee.limit = min(state.pointee.capacity, max(needed, state.pointee.nextCheck))
    }

    // MARK: Failure

    /// Ends the encoding with an error at the next place that can throw. The first error counts.
    func fail(_ error: any Error) {
        if unsafe state.pointee.context.pointee.hasFailed { return }
        unsafe state.pointee.context.pointee.hasFailed = true
        unsafe state.pointee.context.pointee.failure = error
    }

    @inline(__always)
    func checkFailure() throws {
        if unsafe state.pointee.context.pointee.hasFailed { try throwFailure() }
    }

    @inline(never)
    func throwFailure() throws {
        if let failure = unsafe state.pointee.context.pointee.failure { throw failure }
    }

    // MARK: Bytes

    @inline(__always)
    func append(_ byte: UInt8) {
        reserve(1)
        unsafe end.pointee = byte
        unsafe state.pointee.count &+= 1
    }

    /// Appends bytes in blocks of 16: the source must be readable up to the next multiple of 16.
    @inline(__always)
    func appendBlocks(_ source: UnsafePointer<UInt8>, count: Int) {
        reserve(count &+ 16)
        unsafe Self.storeBlocks(of: source, count: count, at: end)
        unsafe state.pointee.count &+= count
    }

    /// Stores bytes in blocks of 16: both places must be accessible up to 16 bytes beyond the end.
    @inline(__always)
    static func storeBlocks(of source: UnsafePointer<UInt8>, count: Int, at target: UnsafeMutablePointer<UInt8>) {
        let (source, target) = unsafe (UnsafeRawPointer(source), UnsafeMutableRawPointer(target))
        var offset = 0
        while offset < count {
            let block = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
            unsafe target.storeBytes(of: block, toByteOffset: offset, as: SIMD16<UInt8>.self)
            offset &+= 16
        }
    }

    func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else { return }
        reserve(bytes.count)
        unsafe end.update(from: start, count: bytes.count)
        unsafe state.pointee.count &+= bytes.count
    }

    /// Appends text that needs no escapes.
    func append(ascii text: String) {
        var text = text
        text.withUTF8 { unsafe append($0) }
    }

    // MARK: Literals

    @inline(__always)
    func writeNull() { writeWord(0x6C6C_756E, count: 4) }

    @inline(__always)
    func write(_ value: Bool) {
        if value {
            writeWord(0x6575_7274, count: 4)
        } else {
            writeWord(0x736C_6166, count: 4)
            append(UInt8(ascii: "e"))
        }
    }

    /// Writes the bytes of a word from the lowest one.
    @inline(__always)
    func writeWord(_ word: UInt32, count: Int) {
        reserve(4)
        unsafe UnsafeMutableRawPointer(end).storeBytes(of: word.littleEndian, as: UInt32.self)
        unsafe state.pointee.count &+= count
    }

    // MARK: Numbers

    @inline(__always)
    func write<Value: FixedWidthInteger>(_ value: Value) {
        reserve(NumberText.longest)
        if Value.bitWidth <= 64 {
            unsafe state.pointee.count &+= NumberText.write(value, to: end)
        } else {
            unsafe state.pointee.count &+=
                value >= 0
                ? NumberText.writeLong(UInt128(truncatingIfNeeded: value), to: end)
                : NumberText.writeLong(Int128(truncatingIfNeeded: value), to: end)
        }
    }

    /// Writes a finite number.
    @inline(never)
    func write(finite value: Double) {
        reserve(NumberText.longest)
        unsafe state.pointee.count &+= NumberText.write(value, to: end)
    }

    /// Writes a finite number by the precision of a `Float`.
    @inline(never)
    func write(finite value: Float) {
        reserve(NumberText.longest)
        unsafe state.pointee.count &+= NumberText.write(value, to: end)
    }

    /// Writes a number.
    ///
    /// - Throws: The error of ``nonFinite(_:path:)``, with the path of the open values.
    @inline(__always)
    func write(_ value: Double) throws {
        if value.isFinite { write(finite: value) } else { try writeNonFinite(value) { codingPath(below: depth) } }
    }

    /// Writes a number.
    @inline(__always)
    func write(_ value: Float) throws {
        if value.isFinite { write(finite: value) } else { try writeNonFinite(value) { codingPath(below: depth) } }
    }

    /// Writes infinity or NaN as a string, or throws.
    @inline(never)
    func writeNonFinite<Value: BinaryFloatingPoint>(
        _ value: Value, allowsStrings: Bool = true, path: () -> [any CodingKey]
    ) throws {
        guard allowsStrings,
            case .convertToString(let positive, let negative, let nan) = options.nonConformingFloatEncodingStrategy
        else {
            let text = "Unable to encode \(Value.self).\(value) directly in JSON."
            throw EncodingError.invalidValue(value, EncodingError.Context(codingPath: path(), debugDescription: text))
        }
        write(value.isNaN ? nan : value < 0 ? negative : positive)
    }
}
