import TernCache
import TernConcurrency

#if canImport(Glibc)
import Glibc
#endif

/// How many bytes the decoded frames of all animations may take together, and the frames themselves.
///
/// The limit holds at every moment. A frame that is on show is held by who shows it, in addition.
public final class FrameBudget: Sendable {
    /// The budget of all animations that are not given one of their own.
    public static let shared = FrameBudget()

    private struct Shared {
        var ledger: FrameLedger
        var readers = 0
        var lastStore = 0
    }

    private let shared: Lock<Shared>

    /// A budget of so many bytes; by default the lesser of 20% of the memory and 60% of what is free of it now.
    public init(limit: Int? = nil) {
        let limit =
            limit ?? Self.defaultLimit(memory: MemoryBudget.current.memory, available: Self.availableMemory())
        shared = Lock(Shared(ledger: FrameLedger(limit: limit)))
    }

    /// The most bytes that may be held. A smaller one takes effect at once.
    public var limit: Int {
        get { shared.withLock { $0.ledger.limit } }
        set {
            // Frames are let go after the lock is released.
            let left = shared.withLock { $0.ledger.setLimit(newValue) }
            withExtendedLifetime(left) {}
        }
    }

    /// Bytes of the frames that are held now.
    public var used: Int { shared.withLock { $0.ledger.used } }

    /// Lets the least recently needed frames go until at most so many bytes are held: for moments when memory is short.
    public func trim(to bytes: Int = 0) {
        let left = shared.withLock { $0.ledger.makeRoom(bytes) }
        withExtendedLifetime(left) {}
    }

    /// Gives up what memory pressure asks for: a half on a warning, all but what is on show on more.
    func relieve(_ level: MemoryPressureLevel) { trim(to: level == .warning ? used / 2 : 0) }

    /// The most bytes that were held at any time.
    var peak: Int { shared.withLock { $0.ledger.peak } }

    /// How much is a fifth of the memory, or less if less is free; 64 MiB if neither is known.
    static func defaultLimit(memory: UInt64?, available: UInt64?) -> Int {
        let shares = [memory.map { $0 / 5 }, available.map { $0 / 5 * 3 }].compactMap { $0 }
        return Int(clamping: shares.min() ?? 64 << 20)
    }

    /// Bytes that can be had without pushing anything out; nil where the system does not say.
    private static func availableMemory() -> UInt64? {
        #if canImport(Glibc)
        let file = unsafe open("/proc/meminfo", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
        return available(inMemoryInfo: String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))
        #else
        return nil
        #endif
    }

    /// The number of kibibytes behind `MemAvailable:` (proc(5)), in bytes.
    static func available(inMemoryInfo text: String) -> UInt64? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 2, words[0] == "MemAvailable:", let kibibytes = UInt64(words[1]) else { continue }
            let (bytes, overflow) = kibibytes.multipliedReportingOverflow(by: 1_024)
            return overflow ? nil : bytes
        }
        return nil
    }
}

extension FrameBudget {
    /// A number for one animation's frames.
    func makeStore() -> Int {
        shared.withLock { shared in
            shared.lastStore += 1
            return shared.lastStore
        }
    }

    func removeAll(of store: Int) {
        let left = shared.withLock { $0.ledger.removeAll(of: store) }
        withExtendedLifetime(left) {}
    }

    func addReader() { shared.withLock { $0.readers += 1 } }

    func removeReader() { shared.withLock { $0.readers -= 1 } }

    /// How many frames of a size one of the readers may have decoded, the one on show counted: its equal share, at
    /// least that one. More would only push out what others need next.
    func share(ofFrames bytes: Int) -> Int {
        shared.withLock { max(1, $0.ledger.limit / max(1, $0.readers) / max(1, bytes)) }
    }

    func frame(_ index: Int, of store: Int) -> ImageFrame? {
        shared.withLock { $0.ledger.frame(FrameLedger.Key(store: store, index: index)) }
    }

    /// Those of the frames that are not held; the others are marked as needed, the first as the most recent.
    func missing(_ indices: [Int], of store: Int) -> [Int] {
        shared.withLock { shared in
            for index in indices.reversed() { shared.ledger.need(FrameLedger.Key(store: store, index: index)) }
            return indices.filter { !shared.ledger.holds(FrameLedger.Key(store: store, index: $0)) }
        }
    }

    /// Takes a frame in. What had to leave for it is to be let go by the caller, outside its own locks.
    func keep(_ frame: ImageFrame, _ index: Int, of store: Int) -> [ImageFrame] {
        shared.withLock { $0.ledger.keep(frame, FrameLedger.Key(store: store, index: index)) }
    }
}
