/// The state of one decoding, in memory that is used again for the next one.
///
/// It is a struct behind a pointer because the containers of `Codable` are copied and called for each field: properties
/// of a class cost a retain, a release and an exclusivity check each (measured with a probe: 96 instead of 50 µs for 21
/// KB).
@safe
struct DecodingStorage {
    var tape = Tape(capacity: 256)
    /// The tokens of `tape`.
    var tokens: UnsafeMutablePointer<Token>
    var bytes: UnsafePointer<UInt8>
    var byteCount = 0
    /// One byte to point to while there is no text.
    let empty: UnsafePointer<UInt8>
    /// The copy of the bytes, if a container outlived the decoding.
    var copy: UnsafeMutablePointer<UInt8>?
    /// Whether the decoding is over and a container lives on.
    var isDetached = false
    /// Whether ``DecodingPark`` keeps the state alive.
    var isParked = false

    var settings = DecodingSettings.initial
    var convertsKeys = false
    /// Counts down to the next look at the task's cancellation.
    var countdown = Self.checkInterval

    var types: UnsafeMutablePointer<TypeEntry>
    var keyTypes = Row<KeyTypeSlot>()
    /// A bit for each key type that was used in this decoding; the last one for all others.
    var usedKeyTypes: UInt64 = 0
    /// The place of a key type in `keyTypes`, by bits of its address.
    var keyTypePlaces: UnsafeMutablePointer<UInt8>
    /// Marks the hashes of the keys of one object; see ``DecodingCore/keysAreDifferent(in:converted:)``.
    var stamps: UnsafeMutablePointer<UInt32>
    var stamp: UInt32 = 0
    var indexes: [Int: KeyIndex] = [:]
    var indexedKeys = 0
    var path = PathMemory()
    /// The tokens of the ``JSONValue`` that is being decoded, whose names are not converted.
    var plainValue = 0..<0
    /// The object that frees this state. It is valid as long as this state is.
    var owner: Unmanaged<DecodingOwner>?

    static var checkInterval: Int { 4_096 }
    /// The number of values that a call of foreign code counts as: a cancelled task, and one without time, ends after
    /// 16 of them.
    static var weightOfCall: Int { 256 }

    /// The number of values that one of a type without a kind counts as.
    @inline(__always)
    static func weight<Value>(of type: Value.Type) -> Int {
        let isScalar =
            type == Bool.self || type == Float.self || type == Int8.self || type == Int16.self || type == Int32.self
            || type == Int64.self || type == UInt.self || type == UInt8.self || type == UInt16.self
            || type == UInt32.self || type == UInt64.self
        return isScalar ? 1 : weightOfCall
    }
    static var typeCount: Int { 64 }
    static var keyTypePlaceCount: Int { 64 }
    static var stampCount: Int { 1_024 }

    init() {
        unsafe tokens = tape.tokens
        unsafe bytes = UnsafePointer(UnsafeMutablePointer<UInt8>.allocate(capacity: 1))
        unsafe empty = bytes
        unsafe types = .allocate(capacity: Self.typeCount)
        unsafe types.initialize(repeating: TypeEntry(), count: Self.typeCount)
        unsafe keyTypePlaces = .allocate(capacity: Self.keyTypePlaceCount)
        unsafe keyTypePlaces.initialize(repeating: .max, count: Self.keyTypePlaceCount)
        unsafe stamps = .allocate(capacity: Self.stampCount)
        unsafe stamps.initialize(repeating: 0, count: Self.stampCount)
    }

    /// Frees all memory. Nothing may use the state, or a container of it, after that.
    mutating func deallocate() {
        for index in 0..<keyTypes.count { unsafe keyTypes.elements[index].deallocate() }
        keyTypes.deallocate()
        unsafe copy?.deallocate()
        unsafe types.deallocate()
        unsafe keyTypePlaces.deallocate()
        unsafe stamps.deallocate()
        unsafe empty.deallocate()
        tape.deallocate()
    }
}

/// Owns the state of a decoding. Decoders and containers hold it, so that the state lives as long as one of them.
///
/// Keyed containers do not, because the standard library copies them for each field. ``DecodingPark`` keeps the state
/// for those that outlive the decoding.
final class DecodingOwner {
    let core: DecodingCore

    init() {
        core = DecodingCore()
        unsafe core.storage.pointee.owner = Unmanaged.passUnretained(self)
    }

    deinit { core.deallocate() }
}

/// A handle on the state of a decoding. Copies of it cost nothing.
///
/// Each token that it is asked for comes from the tape itself: `index` is always that of a value.
@safe
struct DecodingCore {
    let storage: UnsafeMutablePointer<DecodingStorage>

    init() {
        unsafe storage = .allocate(capacity: 1)
        unsafe storage.initialize(to: DecodingStorage())
    }

    func deallocate() {
        unsafe storage.pointee.deallocate()
        unsafe storage.deinitialize(count: 1)
        unsafe storage.deallocate()
    }

    @inline(__always) var bytes: UnsafePointer<UInt8> { unsafe storage.pointee.bytes }
    @inline(__always) func token(_ index: Int) -> Token { unsafe storage.pointee.tokens[index] }
    /// Returns the index of the token after a value.
    @inline(__always)
    func skip(_ index: Int) -> Int {
        let token = token(index)
        return token.isContainer ? token.end : index &+ 1
    }
    @inline(__always) func isNull(_ index: Int) -> Bool { token(index).kind == .null }

    @inline(__always)
    var owner: DecodingOwner {
        // Set by the only initializer of the owner.
        unsafe storage.pointee.owner.unsafelyUnwrapped.takeUnretainedValue()
    }

    /// Counts a value, and looks from time to time whether the current task is cancelled.
    @inline(__always)
    func countValue() throws { try countValues(1) }

    /// Counts a call of code that can take any time, such as `init(from:)` of a type that is not known here.
    @inline(__always)
    func countCall() throws { try countValues(DecodingStorage.weightOfCall) }

    @inline(__always)
    func countValues(_ count: Int) throws {
        unsafe storage.pointee.countdown &-= count
        if unsafe storage.pointee.countdown < 0 { try checkCancellation() }
    }

    @inline(never)
    func checkCancellation() throws {
        // After an error, the count stays, and each further value throws it.
        try DecodingCheckpoint.pass()
        unsafe storage.pointee.countdown = DecodingStorage.checkInterval
    }

    /// Throws again what a type has caught: otherwise, values could be missing without an error.
    @inline(__always)
    func checkEnd() throws {
        if unsafe storage.pointee.countdown < 0 { try DecodingCheckpoint.pass() }
    }

    // MARK: Beginning and end

    /// Reads a text. The caller keeps the bytes alive until ``end()``.
    @unsafe
    func begin(_ bytes: UnsafeBufferPointer<UInt8>, settings: DecodingSettings) throws {
        if unsafe settings !== storage.pointee.settings {
            unsafe storage.pointee.settings = settings
            unsafe storage.pointee.convertsKeys = settings.convertsKeys
        }
        guard let base = bytes.baseAddress else { throw error(SyntaxError(problem: .isEmpty, offset: 0)) }
        unsafe storage.pointee.bytes = unsafe base
        unsafe storage.pointee.byteCount = bytes.count
        unsafe storage.pointee.countdown = DecodingStorage.checkInterval
        do throws(ScanFailure) {
            defer { unsafe storage.pointee.tokens = storage.pointee.tape.tokens }
            try unsafe Scanner.scan(bytes, to: &storage.pointee.tape, depthLimit: settings.values.depthLimit)
        } catch {
            switch error {
            case .stopped(let reason): throw reason
            case .syntax(let problem): throw self.error(problem)
            }
        }
    }

    /// Forgets the text. Returns whether the state can be used again: whether nobody uses it now.
    func end(isUnique: Bool) -> Bool {
        let containersAreFree = containersAreFree
        guard isUnique, containersAreFree else {
            detach()
            if !containersAreFree { DecodingPark.keep(owner) }
            return false
        }
        unsafe storage.pointee.bytes = storage.pointee.empty
        unsafe storage.pointee.byteCount = 0
        // The numbers of the text are in the tape, which is kept.
        unsafe storage.pointee.tape.clear()
        if unsafe !storage.pointee.indexes.isEmpty {
            unsafe storage.pointee.indexes = [:]
            unsafe storage.pointee.indexedKeys = 0
        }
        unsafe storage.pointee.path.clear()
        if unsafe storage.pointee.settings !== DecodingSettings.initial {
            // The objects in these belong to the caller, and must not live on in the pool.
            unsafe storage.pointee.settings = DecodingSettings.initial
            unsafe storage.pointee.convertsKeys = false
        }
        tidyContainers()
        if unsafe storage.pointee.tape.capacity > DecodingPool.largestTape {
            unsafe storage.pointee.tape.deallocate()
            unsafe storage.pointee.tape = Tape(capacity: 256)
            unsafe storage.pointee.tokens = storage.pointee.tape.tokens
        }
        return unsafe storage.pointee.keyTypes.count <= DecodingPool.largestKeyTypes
    }

    /// Copies the bytes, which the caller is about to free.
    @inline(never)
    private func detach() {
        let count = unsafe storage.pointee.byteCount
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: max(count, 1))
        unsafe copy.initialize(from: storage.pointee.bytes, count: count)
        unsafe storage.pointee.copy = unsafe copy
        unsafe storage.pointee.bytes = UnsafePointer(copy)
        unsafe storage.pointee.isDetached = true
    }
}
