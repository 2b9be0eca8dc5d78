/// Owns the memory of a text that is being written.
///
/// Encoders and containers hold a reference, so that they can outlive the encoding: what they write then has no effect,
/// but finds its memory.
@safe
final class EncodingStorage {
    let state: UnsafeMutablePointer<EncodingState>
    /// The storage of the main text, which owns the context; nil for the main text itself.
    private let main: EncodingStorage?
    /// The text that this one belongs into, and the place there; nil for the main text.
    private let parent: (storage: EncodingStorage, start: Int)?
    /// The number of arrays and objects around the text.
    let baseNesting: Int
    /// The texts that belong into this one, by the place of the array, object or empty object that they continue or
    /// replace.
    var late: [Int: LateText] = [:]
    /// The members of objects in which a nested container was asked for again, by the place of the object.
    var indexes: [Int: MemberIndex] = [:]
    /// The last place in ``late`` and ``indexes``, or one after it.
    var lastPlace = -1

    /// More than this is not kept for the next encoding.
    private static let keptCapacity = 1 << 20

    /// Creates a main text.
    init() {
        main = nil
        parent = nil
        baseNesting = 0
        let context = UnsafeMutablePointer<EncodingContext>.allocate(capacity: 1)
        unsafe context.initialize(to: EncodingContext())
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: Self.newState(context: context, capacity: 1_024, storage: self))
    }

    /// Creates a text for values that come late, at a depth of `nesting` arrays and objects.
    init(lateIn storage: EncodingStorage, at start: Int, nesting: Int) {
        let main = storage.main ?? storage
        self.main = main
        parent = (storage, start)
        baseNesting = nesting
        unsafe state = .allocate(capacity: 1)
        var state = unsafe Self.newState(context: main.state.pointee.context, capacity: 64, storage: self)
        state.nesting = nesting
        unsafe state.slashes = storage.state.pointee.slashes
        unsafe self.state.initialize(to: state)
    }

    private static func newState(
        context: UnsafeMutablePointer<EncodingContext>, capacity: Int, storage: EncodingStorage
    ) -> EncodingState {
        let openCapacity = 8
        let state = unsafe EncodingState(
            bytes: .allocate(capacity: capacity), limit: capacity, capacity: capacity,
            escapes: context.pointee.escapes,
            open: .allocate(capacity: openCapacity), openCapacity: openCapacity,
            seen: .allocate(capacity: 4 * openCapacity), keys: .allocate(capacity: openCapacity), context: context,
            storage: storage)
        unsafe state.keys.initialize(repeating: nil, count: openCapacity)
        return state
    }

    deinit {
        unsafe state.pointee.bytes.deallocate()
        unsafe state.pointee.open.deallocate()
        unsafe state.pointee.seen.deallocate()
        unsafe state.pointee.keys.deinitialize(count: state.pointee.openCapacity)
        unsafe state.pointee.keys.deallocate()
        if main == nil {
            unsafe state.pointee.context.pointee.notes.deallocate()
            unsafe state.pointee.context.pointee.sorter.deallocate()
            unsafe state.pointee.context.pointee.valueKinds.deallocate()
            unsafe state.pointee.context.pointee.keyTables.deallocate()
            unsafe state.pointee.context.pointee.escapes.deallocate()
            unsafe state.pointee.context.deinitialize(count: 1)
            unsafe state.pointee.context.deallocate()
        }
        unsafe state.deinitialize(count: 1)
        unsafe state.deallocate()
    }

    /// The path to the value of this text. Empty for the main text. Found when it is asked for, which takes time in
    /// proportion to the text.
    var basePath: [any CodingKey] { parent.map { $0.storage.path(to: $0.start) } ?? [] }

    var writer: JSONTextWriter { unsafe JSONTextWriter(state: unsafe state) }

    /// The storage for the text of this main text in its final form.
    var output: EncodingStorage {
        if let output = unsafe state.pointee.context.pointee.output { return output }
        let output = EncodingStorage()
        unsafe state.pointee.context.pointee.output = output
        return output
    }

    // MARK: The life of an encoding

    /// Prepares a main text for an encoding.
    func begin(_ options: borrowing TernJSONEncoder) {
        let context = unsafe state.pointee.context
        unsafe context.pointee.formatting = options.outputFormatting
        // A copy of all settings takes as long as to write a member.
        let isDefault = options.hasDefaultStrategies
        if unsafe !isDefault || !context.pointee.hasDefaultOptions {
            unsafe context.pointee.options = copy options
            unsafe context.pointee.hasDefaultOptions = isDefault
            if case .custom = options.keyEncodingStrategy {
                unsafe context.pointee.usesKeyTables = false
            } else {
                unsafe context.pointee.usesKeyTables = true
            }
        }
        unsafe state.pointee.hasLines = options.outputFormatting.contains(.prettyPrinted)
        unsafe state.pointee.sortsNames = options.outputFormatting.contains(.sortedKeys)
        let slashes =
            options.outputFormatting.contains(.withoutEscapingSlashes)
            ? EncodingState.backslashes : EncodingState.escapedSlashes
        if unsafe slashes != state.pointee.slashes {
            unsafe state.pointee.slashes = slashes
            unsafe EscapeTable.setSlash(isEscaped: slashes == EncodingState.escapedSlashes, in: context.pointee.escapes)
        }
    }

    /// Makes a main text and everything late in it unusable for what has escaped, and empties it.
    ///
    /// Returns whether no container that escaped refers to the text without owning it. The caller knows about those
    /// that own it.
    func end() -> Bool {
        let context = unsafe state.pointee.context
        // Before the late texts are released, in which some of them are.
        let isUnused = unsafe context.pointee.keyTables.releaseContainers()
        if unsafe !context.pointee.lateStorages.isEmpty {
            for storage in unsafe context.pointee.lateStorages { storage.clear() }
            unsafe context.pointee.lateStorages = []
        }
        clear()
        if unsafe state.pointee.sortsNames {
            unsafe context.pointee.notes.clear()
            unsafe context.pointee.sorter.clear()
        }
        if let output = unsafe context.pointee.output {
            output.clear()
            unsafe output.state.pointee.context.pointee.hasFailed = false
            unsafe output.state.pointee.context.pointee.failure = nil
        }
        // The settings can refer to objects of the user.
        if unsafe !context.pointee.hasDefaultOptions {
            unsafe context.pointee.options = TernJSONEncoder()
            unsafe context.pointee.hasDefaultOptions = true
            unsafe context.pointee.usesKeyTables = true
        }
        unsafe context.pointee.calls = 0
        unsafe context.pointee.mayHaveDuplicates = false
        // Containers that have escaped meet this error; a text that is used again does not have it.
        unsafe context.pointee.hasFailed = !isUnused
        unsafe context.pointee.failure = isUnused ? nil : Self.lateUse
        return isUnused
    }

    /// Marks a text that something that escaped can still reach.
    func detach() {
        unsafe state.pointee.context.pointee.hasFailed = true
        unsafe state.pointee.context.pointee.failure = Self.lateUse
    }

    private static var lateUse: EncodingError {
        let text = "An encoder or a container was used after the end of the encoding."
        return .invalidValue(Optional<Int>.none as Any, EncodingError.Context(codingPath: [], debugDescription: text))
    }

    /// Forgets late texts and indexes at a place and after it, whose text was removed.
    func forgetLate(from place: Int) {
        guard lastPlace >= place else { return }
        late = late.filter { $0.key < place }
        indexes = indexes.filter { $0.key < place }
        lastPlace = max(late.keys.max() ?? -1, indexes.keys.max() ?? -1)
    }

    private func clear() {
        if unsafe state.pointee.hasLate {
            late = [:]
            indexes = [:]
            lastPlace = -1
            unsafe state.pointee.hasLate = false
        }
        if unsafe state.pointee.hasKeys {
            for index in 0..<(unsafe state.pointee.openCapacity) { unsafe state.pointee.keys[index] = nil }
            unsafe state.pointee.hasKeys = false
        }
        // The text can hold a secret, and the memory is kept.
        unsafe state.pointee.bytes.update(repeating: 0, count: state.pointee.count)
        unsafe state.pointee.count = 0
        unsafe state.pointee.depth = 0
        unsafe state.pointee.nesting = 0
        unsafe state.pointee.nextCheck = EncodingState.checkInterval
        if unsafe state.pointee.capacity > Self.keptCapacity {
            unsafe state.pointee.bytes.deallocate()
            unsafe state.pointee.bytes = .allocate(capacity: Self.keptCapacity)
            unsafe state.pointee.capacity = Self.keptCapacity
        }
        unsafe state.pointee.limit = min(state.pointee.capacity, EncodingState.checkInterval)
    }
}

/// A text that continues an array or an object that was closed already, or replaces an empty object that stands for a
/// value that had not come yet.
struct LateText {
    let storage: EncodingStorage
    let replaces: Bool
}
