import Synchronization

/// One encoding, from the taking of its storage to the finished text.
struct EncodingRun {
    private var storage: EncodingStorage
    private let pool: EncodingPool.Kind

    var writer: JSONTextWriter { storage.writer }

    init(_ options: TernJSONEncoder) {
        // The tables of a storage have converted keys.
        if case .convertToSnakeCase = options.keyEncodingStrategy { pool = .snakeCase } else { pool = .plain }
        storage = EncodingPool.take(pool) ?? EncodingStorage()
        storage.begin(options)
    }

    /// Calls a function with the text in its final form.
    func withFinishedText<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) throws -> Result {
        try writer.finish()
        let formatting = unsafe storage.state.pointee.context.pointee.formatting
        if writer.needsArrangement {
            let output = storage.output.writer
            try TextArranger.arrange(storage, to: output)
            return try unsafe body(output.text)
        }
        if formatting.contains(.prettyPrinted) {
            let output = storage.output.writer
            try TextIndenter.indent(writer, to: output)
            return try unsafe body(output.text)
        }
        return try unsafe body(writer.text)
    }

    /// Keeps the storage for the next encoding, if nothing has escaped that refers to it.
    mutating func end() {
        guard storage.end() else { return }
        if isKnownUniquelyReferenced(&storage) { EncodingPool.put(storage, pool) } else { storage.detach() }
    }
}

/// Keeps the storages of encodings that have ended: their buffers, tables of keys, and containers.
private struct EncodingPool {
    enum Kind {
        case plain
        case snakeCase
    }

    static func take(_ kind: Kind) -> EncodingStorage? {
        kind == .plain ? plain.take() : snakeCase.take()
    }

    static func put(_ storage: EncodingStorage, _ kind: Kind) {
        kind == .plain ? plain.put(storage) : snakeCase.put(storage)
    }

    private static let plain = Places()
    private static let snakeCase = Places()

    /// Four storages. An encoding owns the one that it exchanged for nothing, so that no two ever have the same.
    private struct Places: ~Copyable, Sendable {
        /// The addresses of retained storages.
        private let first = Atomic<UInt>(0)
        private let second = Atomic<UInt>(0)
        private let third = Atomic<UInt>(0)
        private let fourth = Atomic<UInt>(0)

        borrowing func take() -> EncodingStorage? {
            Self.take(first) ?? Self.take(second) ?? Self.take(third) ?? Self.take(fourth)
        }

        borrowing func put(_ storage: EncodingStorage) {
            let address = UInt(bitPattern: unsafe Unmanaged.passRetained(storage).toOpaque())
            if Self.put(address, first) || Self.put(address, second) || Self.put(address, third)
                || Self.put(address, fourth)
            {
                return
            }
            unsafe Unmanaged.passUnretained(storage).release()
        }

        @inline(__always)
        private static func take(_ place: borrowing Atomic<UInt>) -> EncodingStorage? {
            let address = place.exchange(0, ordering: .acquiring)
            guard let pointer = unsafe UnsafeRawPointer(bitPattern: address) else { return nil }
            return unsafe Unmanaged<EncodingStorage>.fromOpaque(pointer).takeRetainedValue()
        }

        @inline(__always)
        private static func put(_ address: UInt, _ place: borrowing Atomic<UInt>) -> Bool {
            place.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged
        }
    }
}
