import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The messages that a socket sends: those that go to the connection at once, and those that wait for room. Owned by
/// the socket's actor.
struct Outbox {
    /// The number of bytes in the pipe to the connection at which messages wait.
    static let pipeCapacity = 256 << 10

    /// The end of a message's wait.
    enum Result: Sendable {
        case sent, dropped, cancelled
    }

    /// A message that waits for room, and its sender. Used by the socket's actor alone, except the waiter.
    final class Item {
        let waiter = Waiter<Result>()
        fileprivate let message: WebSocket.Message
        /// The payload that is not sent yet, once the message has begun.
        fileprivate var payload: Data?
        fileprivate var isCompressed = false
        fileprivate var hasBegun = false

        fileprivate init(_ message: WebSocket.Message) { self.message = message }
    }

    enum Sending {
        /// The message was handed over.
        case sent(isStarved: Bool)
        /// The message waits. The sender takes it with `nextFrame()`.
        case queued(Item)
        /// Nothing can be sent any more.
        case refused
    }

    private let fragmentSize: Int
    private let compression: WebSocket.Compression?
    private let deflater: MessageDeflater?
    private var writer = FrameWriter()
    private var items = FIFO<Item>()
    /// A message for whose only frame there was no room.
    private var held: (frame: Data, item: Item)?
    /// The message whose last frame was taken. It is handed over when the next frame is taken.
    private var finished: Item?
    /// The control frames that wait, and the Pong among them: only the last Ping needs an answer (RFC 6455 §5.5.3).
    private var controls: [(opcode: FrameOpcode, payload: [UInt8])] = []
    /// The Close frame that follows the waiting messages.
    private var close: [UInt8]?
    private(set) var hasClosed = false
    /// Whether the Close frame is in the pipe.
    private(set) var isCloseHandedOver = false
    /// Whether the sender has the Close frame. It is handed over when the next frame is taken.
    private var isCloseTaken = false
    /// Whether frames wait, and the sender takes them.
    private(set) var isSending = false
    /// The number of messages that wait, without those whose last frame was taken.
    var waitingCount: Int { items.count + (held == nil ? 0 : 1) }
    /// Whether the pipe ends after the last frame.
    private(set) var endsPipe = false
    /// Whether the connection waits for the bytes of the last call.
    private(set) var isStarved = false

    init(_ options: WebSocket.Options, _ agreement: PerMessageDeflate?) {
        fragmentSize = max(1, options.fragmentSize)
        if let agreement, let compression = options.compression {
            self.compression = compression
            // Without memory, and with a window that zlib has not, messages are not compressed, which is allowed.
            deflater = MessageDeflater(
                windowBits: agreement.clientMaxWindowBits, level: compression.level,
                resets: agreement.clientNoContextTakeover)
        } else {
            compression = nil
            deflater = nil
        }
    }

    // MARK: Sending at once

    /// Sends a message, or queues it.
    mutating func send(_ message: WebSocket.Message, over pipe: UploadPipe) -> Sending {
        guard !hasClosed, !endsPipe else { return .refused }
        let size = message.byteCount
        guard !isSending, size <= fragmentSize else {
            let item = Item(message)
            items.append(item)
            isSending = true
            return .queued(item)
        }
        let frame = unsafe message.withBytes { bytes in
            if let deflater, compresses(size) {
                let compressed = unsafe deflater.deflate(bytes)
                return unsafe compressed.withUnsafeBytes { unsafe writer.frame(message.opcode, $0, isCompressed: true) }
            }
            return unsafe writer.frame(message.opcode, bytes)
        }
        let offer = pipe.offer(frame)
        if offer.hasRoom { return offer.accepted ? .sent(isStarved: offer.isStarved) : .refused }
        let item = Item(message)
        item.hasBegun = true
        held = (frame, item)
        isSending = true
        return .queued(item)
    }

    /// Sends a control frame. Returns true if it waits, for the sender.
    mutating func sendControl(_ opcode: FrameOpcode, _ payload: [UInt8], over pipe: UploadPipe) -> Bool {
        isStarved = false
        guard !hasClosed || opcode == .pong, !endsPipe else { return false }
        if !isSending {
            let offer = pipe.offer(writer.frame(opcode, payload))
            isStarved = offer.isStarved
            if offer.hasRoom { return false }
        }
        if opcode == .pong { controls.removeAll { $0.opcode == .pong } }
        controls.append((opcode, payload))
        isSending = true
        return true
    }

    /// Sends a Close frame, or keeps it for the sender.
    ///
    /// - Parameters:
    ///   - drops: Whether the messages that wait are dropped.
    ///   - ends: Whether the pipe ends after the frame.
    mutating func close(_ payload: [UInt8], over pipe: UploadPipe, drops: Bool, ends: Bool) {
        isStarved = false
        hasClosed = true
        endsPipe = ends
        if drops { dropAll() }
        if !isSending {
            let offer = pipe.offer(writer.frame(.close, payload))
            isStarved = offer.isStarved
            if offer.hasRoom {
                isCloseHandedOver = offer.accepted
                if ends, pipe.end() { isStarved = true }
                return
            }
        }
        close = payload
        isSending = true
    }

    /// Ends the pipe after the frames that wait.
    mutating func end(_ pipe: UploadPipe) {
        endsPipe = true
        isStarved = !isSending && pipe.end()
    }

    private func compresses(_ size: Int) -> Bool {
        guard deflater != nil, let compression else { return false }
        return size >= compression.minimumSize
    }

    // MARK: Frames that wait

    /// Returns the next frame, for the sender; nil if nothing waits. The frame before was handed over.
    mutating func nextFrame() -> Data? {
        if let done = finished.take() { done.waiter.resume(returning: .sent) }
        if isCloseTaken { (isCloseTaken, isCloseHandedOver) = (false, true) }
        if let held = held.take() {
            finished = held.item
            return held.frame
        }
        if !controls.isEmpty {
            let control = controls.removeFirst()
            return writer.frame(control.opcode, control.payload)
        }
        if let item = items.first { return nextFrame(of: item) }
        if let payload = close.take() {
            isCloseTaken = true
            return writer.frame(.close, payload)
        }
        isSending = false
        return nil
    }

    private mutating func nextFrame(of item: Item) -> Data {
        let isFirst = !item.hasBegun
        if isFirst { begin(item) }
        let payload = item.payload ?? Data()
        let piece = payload.prefix(fragmentSize)
        let isFinal = piece.count == payload.count
        item.payload = payload.dropFirst(piece.count)
        if isFinal {
            _ = items.popFirst()
            finished = item
        }
        let opcode = isFirst ? item.message.opcode : .continuation
        return unsafe piece.withUnsafeBytes { bytes in
            unsafe writer.frame(opcode, bytes, isFinal: isFinal, isCompressed: isFirst && item.isCompressed)
        }
    }

    /// Begins a message. The compression follows the order of the messages, because each one changes the window.
    private func begin(_ item: Item) {
        item.hasBegun = true
        if let deflater, compresses(item.message.byteCount) {
            item.isCompressed = true
            item.payload = Data(unsafe item.message.withBytes { unsafe deflater.deflate($0) })
        } else {
            item.payload = item.message.data
        }
    }

    /// Removes a message that has not begun. Returns false if it has.
    mutating func withdraw(_ item: Item) -> Bool {
        guard !item.hasBegun else { return false }
        items.removeAll { $0 === item }
        return true
    }

    /// Drops the messages and frames that wait.
    mutating func dropAll() {
        if let done = finished.take() { done.waiter.resume(returning: .dropped) }
        if let held = held.take() { held.item.waiter.resume(returning: .dropped) }
        while let item = items.popFirst() { item.waiter.resume(returning: .dropped) }
        controls = []
        close = nil
        isCloseTaken = false
    }
}

extension WebSocket.Message {
    var opcode: FrameOpcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }

    var data: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        switch self {
        case .text(var text): text.withUTF8 { unsafe body(UnsafeRawBufferPointer($0)) }
        case .binary(let data): unsafe data.withUnsafeBytes { unsafe body($0) }
        }
    }
}
