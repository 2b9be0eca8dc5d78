import CTernZ
import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Decompresses the body of a response for one reader, in the reader's own task, at most one portion ahead.
package final class ContentDecoder: Sendable {
    /// The size of one chunk, and of the portion decoded at a time, in bytes.
    private static let chunkSize = 256 << 10
    private static let portion = 1 << 20
    /// The number of decompressed bytes up to which the ratio is not checked.
    private static let free: Int64 = 10 << 20

    @safe private final class Handle {
        let pointer: OpaquePointer

        init?(_ coding: tern_coding) {
            guard let pointer = unsafe tern_decoder_make(coding) else { return nil }
            unsafe self.pointer = pointer
        }

        deinit { unsafe tern_decoder_free(pointer) }
    }

    private struct State {
        /// The handle; nil for a coding that was not requested.
        let handle: Handle?
        /// The bytes that are not decoded yet, oldest first, and the number of decoded bytes of the first chunk.
        var input: [Data] = []
        var taken = 0
        var isEmpty = true
        /// Whether the decoder can hold further output.
        var mayHoldMore = false
        var consumed: Int64 = 0
        var produced: Int64 = 0
        var failure: FailureCause?
        var buffer: [UInt8] = []
    }

    /// The greatest number of codings of one body.
    private static let mostCodings = 5

    private let coding: String
    /// The decoder of the coding that was applied after this one, whose output is the input here; nil for the last one.
    private let source: ContentDecoder?
    private let host: String
    private let limit: Int64
    private let ratio: Int64
    /// Locked while a portion is decoded. There is one reader, so nothing waits for the lock.
    private let state: Lock<State>

    /// Creates a decoder for codings in the order in which they were applied, at most 5. They are removed in the
    /// reverse order (RFC 9110 §8.4).
    ///
    /// - Parameters:
    ///   - limit: The greatest number of bytes after each step.
    ///   - ratio: The maximum ratio of decompressed bytes to those of the body as it came, checked after each step
    ///     beyond 10 MiB of output.
    package convenience init(_ codings: [String], host: String, limit: Int64, ratio: Int = 200) {
        // More codings make no body smaller. None of them is a coding that is known.
        let steps = codings.count > Self.mostCodings ? [codings.joined(separator: ", ")] : codings
        let first = steps.first ?? "identity"
        let source = steps.dropFirst().reversed().reduce(nil as ContentDecoder?) { source, coding in
            ContentDecoder(coding, from: source, host: host, limit: limit, ratio: ratio)
        }
        self.init(first, from: source, host: host, limit: limit, ratio: ratio)
    }

    private init(_ coding: String, from source: ContentDecoder?, host: String, limit: Int64, ratio: Int) {
        self.coding = coding
        self.source = source
        self.host = host
        self.limit = limit
        self.ratio = Int64(max(1, ratio))
        let known = Self.codings.first { $0.names.contains(coding) }
        state = Lock(State(handle: known.flatMap { Handle($0.coding) }))
    }

    /// The codings with the names that servers use, those of RFC 9110 §8.4.1 first.
    private static let codings: [(names: [String], coding: tern_coding)] = [
        (["gzip", "x-gzip"], tern_coding_gzip), (["deflate"], tern_coding_deflate), (["br"], tern_coding_brotli),
        (["zstd"], tern_coding_zstd),
    ]

    /// The value of `Accept-Encoding`: the codings that can be decoded.
    static let acceptEncoding = codings.filter { tern_decoder_knows($0.coding) != 0 }.map { $0.names[0] }
        .joined(separator: ", ")

    /// The number of bytes decoded so far.
    var produced: Int64 { state.withLock { $0.produced } }

    /// The reason why decoding has ended with an error.
    var failure: FailureCause? { source?.failure ?? state.withLock { $0.failure } }

    /// The number of bytes of the body, as it came, that were decoded.
    private var consumed: Int64 { source?.consumed ?? state.withLock { $0.consumed } }

    /// The reason why the body is incomplete at its end; nil also if not all of it was requested.
    package var failureOfEnd: FailureCause? {
        if let failure = source?.failureOfEnd { return failure }
        return state.withLock { state in
            if let failure = state.failure { return failure }
            guard let handle = state.handle, !state.isEmpty, state.input.isEmpty, !state.mayHoldMore else { return nil }
            if unsafe tern_decoder_has_ended(handle.pointer) != 0 { return nil }
            return FailureCause(
                .truncatedBody, "the compressed body from \(host) ended after \(state.produced) bytes of its content")
        }
    }

    package func add(_ chunks: [Data]) {
        if let source { return source.add(chunks) }
        state.withLock { $0.input += chunks.filter { !$0.isEmpty } }
    }

    /// Returns the next chunks, of about `wanted` bytes together; none when more input is needed, and after a failure.
    package func next(_ wanted: Int = .max) -> [Data] {
        guard let source else { return decoded(wanted, of: nil) }
        while true {
            let chunks = decoded(wanted, of: source.consumed)
            if !chunks.isEmpty || state.withLock({ $0.failure }) != nil { return chunks }
            // All input is decoded, so that at most one portion waits between two steps.
            let input = source.next(Self.portion)
            if input.isEmpty { return [] }
            state.withLock { $0.input += input }
        }
    }

    /// Returns the next chunks.
    /// - Parameter consumed: The decoded bytes of the body as it came; nil if they are the input of this step.
    private func decoded(_ wanted: Int, of consumed: Int64?) -> [Data] {
        state.withLock { state in
            var chunks: [Data] = []
            var count = 0
            while count < min(wanted, Self.portion), let chunk = decode(&state, of: consumed) {
                count += chunk.count
                chunks.append(chunk)
            }
            return chunks
        }
    }

    private func decode(_ state: inout State, of consumed: Int64?) -> Data? {
        makeRoom(&state)
        var filled = 0
        while filled < state.buffer.count, state.failure == nil, !state.input.isEmpty || state.mayHoldMore {
            let (taken, made) = step(&state, at: filled)
            filled += made
            // A decoder that neither reads nor writes has all that it can use.
            if taken == 0, made == 0 {
                state.mayHoldMore = false
                if state.failure == nil, !state.input.isEmpty { state.failure = corrupt }
            }
        }
        state.produced += Int64(filled)
        if state.produced > limit {
            state.failure = FailureCause(.tooLarge, "the response decompresses to more than \(limit) bytes")
            return nil
        }
        if state.produced > Self.free, state.produced / ratio > consumed ?? state.consumed {
            let reason =
                "the response decompresses to more than \(ratio) times its size: raise maximumDecompressionRatio"
            state.failure = FailureCause(.tooLarge, reason)
            return nil
        }
        return filled > 0 ? Data(state.buffer[..<filled]) : nil
    }

    /// Reserves the output buffer. A small body gets a small buffer, which grows once if the output is larger.
    private func makeRoom(_ state: inout State) {
        guard state.buffer.count < Self.chunkSize, state.failure == nil, !state.input.isEmpty || state.mayHoldMore
        else { return }
        let waiting = state.input.reduce(0) { $0 + $1.count }
        let size = state.mayHoldMore ? Self.chunkSize : min(Self.chunkSize, max(4 << 10, waiting * 8))
        if size > state.buffer.count { state.buffer = [UInt8](repeating: 0, count: size) }
    }

    private func step(_ state: inout State, at filled: Int) -> (taken: Int, made: Int) {
        let input = state.input.first ?? Data()
        guard let handle = state.handle else {
            let isList = coding.contains(",")
            let how =
                isList
                ? "more than \(Self.mostCodings) times over"
                : "as \(coding.printable(limit: 40)), which was not asked for"
            state.failure = FailureCause(.malformedResponse, "the body from \(host) is encoded \(how)")
            return (0, 0)
        }
        var taken = input.count - state.taken
        var made = state.buffer.count - filled
        let room = made
        let start = state.taken
        let isSound = unsafe input.withUnsafeBytes { input in
            unsafe state.buffer.withUnsafeMutableBytes { output in
                let from = unsafe input.baseAddress.map { unsafe $0 + start }
                let to = unsafe output.baseAddress.map { unsafe $0 + filled }
                return unsafe tern_decoder_step(handle.pointer, from, &taken, to, &made) != 0
            }
        }
        if !isSound { state.failure = corrupt }
        if taken > 0 { state.isEmpty = false }
        state.taken += taken
        state.consumed += Int64(taken)
        if !state.input.isEmpty, state.taken == input.count {
            state.input.removeFirst()
            state.taken = 0
        }
        state.mayHoldMore = made == room
        return (taken, made)
    }

    private var corrupt: FailureCause {
        let window = coding == "zstd" ? " with a window of up to 8 MiB (RFC 9659)" : ""
        return FailureCause(
            .malformedResponse,
            "the compressed body from \(host) cannot be decompressed: it is damaged, or no \(coding)\(window)")
    }
}
