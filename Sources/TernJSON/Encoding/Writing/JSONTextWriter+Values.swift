#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The way to write values of a type.
enum ValueKind {
    /// By the value's own `encode(to:)`.
    case plain
    case string
    case bool
    case int
    case double
    case float
    case float16
    case date
    case data
    case url
    case decimal
    case uuid
    case jsonValue
    case container(any DirectWriter.Type)

    var isPlain: Bool { if case .plain = self { true } else { false } }
    var isContainer: Bool { if case .container = self { true } else { false } }

    /// Finds out the way for a type. The cast takes long, so that the result is kept.
    @inline(never)
    init<Value: Encodable>(of type: Value.Type) {
        let known: [(any Any.Type, ValueKind)] = [
            (String.self, .string), (Bool.self, .bool), (Int.self, .int), (Double.self, .double), (Float.self, .float),
            (Date.self, .date), (Data.self, .data), (URL.self, .url), (Decimal.self, .decimal), (UUID.self, .uuid),
            (JSONValue.self, .jsonValue),
        ]
        if let kind = known.first(where: { $0.0 == type })?.1 {
            self = kind
            return
        }
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        if type == Float16.self {
            self = .float16
            return
        }
        #endif
        if let container = type as? any DirectContainer.Type {
            self = .container(container.writer)
        } else {
            self = .plain
        }
    }
}

extension JSONTextWriter {
    @inline(__always)
    func kind<Value: Encodable>(of type: Value.Type) -> ValueKind {
        if let kind = unsafe state.pointee.context.pointee.valueKinds[ObjectIdentifier(type)] { return kind }
        return newKind(of: type)
    }

    @inline(never)
    private func newKind<Value: Encodable>(of type: Value.Type) -> ValueKind {
        let kind = ValueKind(of: type)
        unsafe state.pointee.context.pointee.valueKinds.insert(kind, for: ObjectIdentifier(type))
        return kind
    }

    /// Writes a value of any type.
    @inline(__always)
    func write<Value: Encodable>(value: Value) throws { try write(value, as: kind(of: Value.self)) }

    /// Writes a value whose kind is known.
    func write<Value: Encodable>(_ value: Value, as kind: ValueKind) throws {
        switch kind {
        case .plain: try writePlain(value)
        case .string: use(value, as: String.self) { $0.write(to: self) }
        case .bool: write(Self.cast(value, to: Bool.self))
        case .int: write(Self.cast(value, to: Int.self))
        case .double: try write(Self.cast(value, to: Double.self))
        case .float: try write(Self.cast(value, to: Float.self))
        case .float16: try writeHalf(value)
        case .date: try write(Self.cast(value, to: Date.self))
        case .data: try use(value, as: Data.self) { try $0.write(to: self) }
        case .url: use(value, as: URL.self) { $0.write(to: self) }
        case .decimal: try write(Self.cast(value, to: Decimal.self))
        case .uuid: write(Self.cast(value, to: UUID.self))
        case .jsonValue: try use(value, as: JSONValue.self) { try $0.write(to: self) }
        case .container(let type):
            try unsafe withUnsafePointer(to: value) { try unsafe type.write(UnsafeRawPointer($0), to: self) }
        }
    }

    /// Calls a function with a value as its own type, which the compiler does not know in a generic function.
    @inline(__always)
    private func use<Value, Target>(
        _ value: Value, as type: Target.Type, _ body: (borrowing InPlace<Target>) throws -> Void
    ) rethrows {
        assert(Value.self == Target.self)
        try unsafe withUnsafePointer(to: value) {
            try unsafe body(UnsafeRawPointer($0).assumingMemoryBound(to: InPlace<Target>.self).pointee)
        }
    }

    /// Returns a value as its own type, which the compiler does not know in a generic function.
    @inline(__always)
    private static func cast<Value, Target>(_ value: Value, to type: Target.Type) -> Target {
        assert(Value.self == Target.self)
        return unsafe withUnsafePointer(to: value) {
            unsafe UnsafeRawPointer($0).assumingMemoryBound(to: Target.self).pointee
        }
    }

    /// Writes a value by its `encode(to:)`. If it encodes nothing, it becomes an empty object.
    ///
    /// If it throws, the caller removes the text and the open values.
    @inline(__always)
    func writePlain<Value: Encodable>(_ value: Value) throws {
        try withEncoder { try value.encode(to: $0) }
    }

    /// Calls a function that encodes the next value.
    @inline(__always)
    func withEncoder(_ body: (ValueEncoder) throws -> Void) throws {
        let start = count
        let index = open()
        try withinCall { try body(ValueEncoder(storage, index: index, start: start)) }
        close(to: index)
        try checkFailure()
    }

    /// Calls a function that may call `encode(to:)`, which may call itself through other values without an end.
    @inline(__always)
    func withinCall(_ body: () throws -> Void) throws {
        let context = unsafe state.pointee.context
        unsafe context.pointee.callsUntilCheck &-= 1
        if unsafe context.pointee.callsUntilCheck < 0 { try checkCancellation() }
        let calls = unsafe context.pointee.calls
        if calls >= EncodingContext.uncheckedCalls {
            // Stacks grow down. Another thread, to which an encoder has escaped, is anywhere: there only the number
            // counts. With the address sanitizer, variables can also be anywhere, so that calls that are not deep are
            // not checked.
            let stack = unsafe context.pointee.stackStart &- Self.stackPlace()
            let usesTooMuch = stack > EncodingContext.maximumStack && stack < 64 * EncodingContext.maximumStack
            if usesTooMuch || calls >= EncodingContext.maximumCalls { throw Self.tooDeep }
        }
        unsafe context.pointee.calls &+= 1
        defer { unsafe context.pointee.calls &-= 1 }
        try body()
    }

    /// Ends the encoding if the current task is cancelled. Each call can take any time.
    @inline(never)
    private func checkCancellation() throws {
        if Task.isCancelled { fail(CancellationError()) }
        // After a failure, the count stays, and each further call throws it.
        try checkFailure()
        unsafe state.pointee.context.pointee.callsUntilCheck = EncodingContext.callsBetweenChecks
    }

    /// Returns a place on the stack of the caller.
    @inline(__always)
    private static func stackPlace() -> Int {
        var marker = UInt8(0)
        return unsafe withUnsafePointer(to: &marker) { Int(bitPattern: $0) }
    }

    /// Writes the value of the whole text.
    ///
    /// - Throws: `EncodingError` if the value encodes nothing.
    func writeTopLevel<Value: Encodable>(_ value: Value) throws {
        unsafe state.pointee.context.pointee.stackStart = Self.stackPlace()
        unsafe state.pointee.context.pointee.callsUntilCheck = EncodingContext.callsBetweenChecks
        let kind = kind(of: Value.self)
        guard kind.isPlain else { return try write(value, as: kind) }
        let index = open()
        try withinCall { try value.encode(to: ValueEncoder(storage, index: index, start: 0)) }
        let hasFailed = unsafe state.pointee.context.pointee.hasFailed
        if count == 0 && !hasFailed {
            let text = "Top-level \(Value.self) did not encode any values."
            throw EncodingError.invalidValue(value, EncodingError.Context(codingPath: [], debugDescription: text))
        }
    }

    // MARK: The end

    /// Closes all values of all texts.
    ///
    /// - Throws: The error that could not be thrown where it occurred.
    func finish() throws {
        close(to: 0)
        for storage in unsafe state.pointee.context.pointee.lateStorages { storage.writer.close(to: 0) }
        try checkFailure()
    }

    /// Whether the text has to be put together: for late values and duplicate names.
    ///
    /// Sorting finds the duplicates, too.
    var needsArrangement: Bool {
        unsafe !state.pointee.context.pointee.lateStorages.isEmpty
            || state.pointee.context.pointee.mayHaveDuplicates && !state.pointee.sortsNames
    }

    /// Whether there are objects whose names are not in order.
    var needsSorting: Bool { unsafe state.pointee.context.pointee.notes.count > 0 }

    /// Notes that an object may have a name twice.
    func noteDuplicates() { unsafe state.pointee.context.pointee.mayHaveDuplicates = true }
}
