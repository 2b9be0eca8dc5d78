import Synchronization

/// One encoding, from the taking of its storage to the finished text.
///
/// It owns one reference to the storage, which the pool gives and gets back without a change of the reference count.
@safe
struct EncodingRun: ~Copyable {
    private let reference: Unmanaged<EncodingStorage>
    private let pool: EncodingPool.Kind

    let writer: JSONTextWriter

    init(_ options: borrowing TernJSONEncoder) {
        // The tables of a storage have converted keys.
        if case .convertToSnakeCase = options.keyEncodingStrategy { pool = .snakeCase } else { pool = .plain }
        unsafe reference = EncodingPool.take(pool) ?? .passRetained(EncodingStorage())
        writer = unsafe reference._withUnsafeGuaranteedRef { storage in
            storage.begin(options)
            return storage.writer
        }
    }

    deinit {
        guard unsafe reference._withUnsafeGuaranteedRef({ $0.end() }) else { return unsafe reference.release() }
        var storage = unsafe reference.takeRetainedValue()
        let isUnused = isKnownUniquelyReferenced(&storage)
        if !isUnused { storage.detach() }
        let kept = unsafe Unmanaged.passRetained(consume storage)
        // Kept for the next encoding, if nothing has escaped that refers to it.
        if isUnused { unsafe EncodingPool.put(kept, pool) } else { unsafe kept.release() }
    }

    /// Calls a function with the text in its final form.
    borrowing func withFinishedText<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) throws -> Result {
        try writer.finish()
        if writer.needsArrangement {
            let storage = writer.storage
            let output = storage.output.writer
            try TextArranger.arrange(storage, to: output)
            return try unsafe body(output.text)
        }
        if writer.needsSorting {
            return try unsafe body(writer.state.pointee.context.pointee.sorter.sort(writer))
        }
        return try unsafe body(writer.text)
    }
}

/// Keeps the storages of encodings that have ended: their buffers, tables of keys, and containers.
private struct EncodingPool {
    enum Kind {
        case plain
        case snakeCase
    }

    static func take(_ kind: Kind) -> Unmanaged<EncodingStorage>? {
        unsafe kind == .plain ? plain.take() : snakeCase.take()
    }

    static func put(_ storage: Unmanaged<EncodingStorage>, _ kind: Kind) {
        unsafe kind == .plain ? plain.put(storage) : snakeCase.put(storage)
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

        borrowing func take() -> Unmanaged<EncodingStorage>? {
            unsafe Self.take(first) ?? Self.take(second) ?? Self.take(third) ?? Self.take(fourth)
        }

        borrowing func put(_ reference: Unmanaged<EncodingStorage>) {
            let address = unsafe UInt(bitPattern: reference.toOpaque())
            if Self.put(address, first) || Self.put(address, second) || Self.put(address, third)
                || Self.put(address, fourth)
            {
                return
            }
            unsafe reference.release()
        }

        @inline(__always)
        private static func take(_ place: borrowing Atomic<UInt>) -> Unmanaged<EncodingStorage>? {
            let address = place.exchange(0, ordering: .acquiring)
            guard let pointer = unsafe UnsafeRawPointer(bitPattern: address) else { return nil }
            return unsafe Unmanaged<EncodingStorage>.fromOpaque(pointer)
        }

        @inline(__always)
        private static func put(_ address: UInt, _ place: borrowing Atomic<UInt>) -> Bool {
            place.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged
        }
    }
}
