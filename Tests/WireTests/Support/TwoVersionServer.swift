#if os(Linux) && !TERN_URLSESSION
import CTernTestHTTP2
import Foundation
import Glibc
import TernConcurrency
import Testing

/// A server that speaks HTTP/2, over nghttp2, or HTTP/1.1 on one port of 127.0.0.1, as the first bytes of a connection
/// say.
final class TwoVersionServer: Sendable {
    /// The answer to the requests of a connection over HTTP/2.
    enum Answer: Sendable {
        /// RST_STREAM with this code.
        case error(UInt32)
        case status(String)
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private struct State {
        var isListening = true
        var connections = 0
        var log: [String] = []
    }

    let port: Int
    private let listener: Int32
    private let answers: [Answer]
    private let state = Lock(State())
    /// The numbers of the connections that have ended, from 0.
    let ends: AsyncStream<Int>
    private let ended: AsyncStream<Int>.Continuation

    /// - Parameter answers: Those of the connections in their order; the last one answers for all that follow.
    init(_ answers: [Answer]) throws {
        self.answers = answers
        (ends, ended) = AsyncStream.makeStream()
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        port = try LoopbackPort.bind(listener)
        try #require(listen(listener, 16) == 0)
        Thread.detachNewThread { self.accept() }
    }

    func stop() {
        // A descriptor that is closed can be another's by now.
        state.withLock { if $0.isListening { _ = shutdown(listener, Int32(SHUT_RDWR)) } }
    }

    /// The number of connections so far.
    var connections: Int { state.withLock { $0.connections } }
    /// The requests so far: `HTTP/2`, or a method and a path.
    var log: [String] { state.withLock { $0.log } }

    private func accept() {
        while case let descriptor = Glibc.accept(listener, nil, nil), descriptor >= 0 {
            let number = state.withLock { state in
                state.connections += 1
                return state.connections - 1
            }
            Thread.detachNewThread {
                self.serve(descriptor, number: number)
                close(descriptor)
                self.ended.yield(number)
            }
        }
        state.withLock { state in
            state.isListening = false
            close(listener)
        }
    }

    private func serve(_ descriptor: Int32, number: Int) {
        var input = Self.read(descriptor)
        while input.count < Self.preface.count, Self.preface.starts(with: input) {
            guard case let more = Self.read(descriptor), !more.isEmpty else { return }
            input += more
        }
        if input.starts(with: Self.preface) {
            serveHTTP2(descriptor, input, answers[min(number, answers.count - 1)])
        } else {
            serveHTTP1(descriptor, input)
        }
    }

    private func serveHTTP2(_ descriptor: Int32, _ first: [UInt8], _ answer: Answer) {
        var (code, status) = (UInt32(0), "")
        switch answer {
        case .error(let error): code = error
        case .status(let text): status = text
        }
        guard let session = unsafe tern_test_http2_new(code, status) else { return }
        defer { unsafe tern_test_http2_free(session) }
        var (input, noted) = (first, 0)
        var output = [UInt8](repeating: 0, count: 1 << 16)
        while !input.isEmpty, unsafe tern_test_http2_receive(session, input, input.count) == 0 {
            // Noted before the client can have the answer.
            while unsafe noted < Int(tern_test_http2_requests(session)) {
                noted += 1
                state.withLock { $0.log.append("HTTP/2") }
            }
            while case let count = unsafe tern_test_http2_output(session, &output, output.count), count > 0 {
                guard Self.write(output[..<count], to: descriptor) else { return }
            }
            input = Self.read(descriptor)
        }
    }

    private func serveHTTP1(_ descriptor: Int32, _ first: [UInt8]) {
        var input = first
        while true {
            guard let end = input.firstRange(of: Array("\r\n\r\n".utf8)) else {
                guard case let more = Self.read(descriptor), !more.isEmpty else { return }
                input += more
                continue
            }
            let head = String(decoding: input[..<end.lowerBound], as: UTF8.self)
            input.removeFirst(end.upperBound)
            let lines = head.components(separatedBy: "\r\n")
            let line = lines[0].split(separator: " ").prefix(2).joined(separator: " ")
            let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
            let count = length.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
            while input.count < count {
                guard case let more = Self.read(descriptor), !more.isEmpty else { return }
                input += more
            }
            state.withLock { $0.log.append(line) }
            let text = "\(line) \(String(decoding: input[..<count], as: UTF8.self))"
            input.removeFirst(count)
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
            guard Self.write(Array(answer.utf8)[...], to: descriptor) else { return }
        }
    }

    /// Returns the next bytes; none at the end.
    private static func read(_ descriptor: Int32) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        let bytes = Array(bytes)
        return unsafe send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
#endif
