#if os(Linux) && !TERN_URLSESSION
import Foundation
import Synchronization
import Tern
import TernTesting

/// Sends requests in all ways that a session has, and checks every byte that it gets.
struct ChaosClient: Sendable {
    let session: Session
    let url: String
    let seed: UInt64
    let ledger: ChaosLedger
    let folder: URL

    /// Sends these requests, a number of them at a time, and returns when all have ended.
    func send(_ numbers: Range<Int>, atOnce count: Int) async {
        let next = NextNumber(numbers.lowerBound)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask {
                    while true {
                        let number = next.take()
                        guard number < numbers.upperBound else { return }
                        await ChaosCall(client: self, number: number).perform()
                    }
                }
            }
        }
    }
}

private final class NextNumber: Sendable {
    private let number: Atomic<Int>

    init(_ first: Int) { number = Atomic(first) }

    func take() -> Int { number.wrappingAdd(1, ordering: .relaxed).oldValue }
}

/// One request with the checks of its response.
private struct ChaosCall {
    private enum Method: String {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case head = "HEAD"
    }

    private enum Disturbance {
        case none, cancel, pause
    }

    private let client: ChaosClient
    private let number: Int
    private let method: Method
    private var random: ChaosRandom
    private let disturbance: Disturbance
    private let expected: [UInt8]

    init(client: ChaosClient, number: Int) {
        self.client = client
        self.number = number
        var random = ChaosRandom(seed: client.seed, number, 8)
        switch random.next(below: 100) {
        case ..<50: method = .get
        case ..<72: method = .post
        case ..<87: method = .put
        default: method = .head
        }
        switch random.next(below: 100) {
        case ..<8: disturbance = .cancel
        case ..<16: disturbance = .pause
        default: disturbance = .none
        }
        self.random = random
        expected = method == .head ? [] : ChaosBody.response(to: number)
    }

    consuming func perform() async {
        let outcome: ChaosLedger.Outcome
        do {
            try await run()
            outcome = .success
        } catch let error as NetworkError {
            check(error)
            outcome = .failure(error.kind, reason: error.reason)
        } catch {
            outcome = .failure(.unsupported, reason: "\(error)")
        }
        client.ledger.noteEnded(
            number, method: method.rawValue, with: outcome, wasCancelled: disturbance == .cancel)
    }

    private mutating func run() async throws {
        let request = try makeRequest()
        switch random.next(below: 5) {
        case 0 where method == .get: try await download(request)
        case 1, 2: try await stream(request)
        case 3 where disturbance == .none:
            let response = try await client.session.response(for: request)
            check(response.head, Array(response.value))
        default:
            let startsAtOnce = disturbance == .none || random.chance(50)
            let task = client.session.task(for: request, startsImmediately: startsAtOnce)
            let response = try await disturbed(task) { () async throws(NetworkError) in try await task.value }
            check(response.head, Array(response.value))
        }
    }

    private mutating func makeRequest() throws -> Request {
        var body = Request.Body.none
        if method == .post || method == .put {
            let bytes = Data(ChaosBody.request(number))
            switch random.next(below: 3) {
            case 0: body = .data(bytes)
            case 1: body = .stream(pieces(of: bytes), length: Int64(bytes.count))
            default: body = .stream(pieces(of: bytes))
            }
        }
        return try Request(Request.Method(rawValue: method.rawValue), "\(client.url)\(number)", body: body)
    }

    private mutating func pieces(of bytes: Data) -> AsyncStream<Data> {
        let size = 1 + random.next(below: random.chance(20) ? 100 : 40_000)
        return AsyncStream { continuation in
            var rest = bytes.prefix(400 * size)
            while !rest.isEmpty {
                continuation.yield(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            // The rest of a large body comes in one piece.
            if bytes.count > 400 * size { continuation.yield(bytes.dropFirst(400 * size)) }
            continuation.finish()
        }
    }

    private mutating func download(_ request: Request) async throws {
        let file = client.folder.appending(path: "\(number)")
        let task = client.session.download(request, to: file)
        do {
            _ = try await disturbed(task) { () async throws(NetworkError) in try await task.value }
            let head = await task.response
            let bytes = try Data(contentsOf: file)
            if let head { check(head, Array(bytes)) }
            try FileManager.default.removeItem(at: file)
        } catch {
            if FileManager.default.fileExists(atPath: file.path) {
                client.ledger.defect("request \(number) failed and left a file")
            }
            throw error
        }
    }

    private mutating func stream(_ request: Request) async throws {
        let stream = client.session.stream(request)
        let isSlow = random.chance(20)
        let (bytes, error) = try await disturbed(stream.task) { () async throws(NetworkError) in
            _ = try await stream.response
            var bytes: [UInt8] = []
            do throws(NetworkError) {
                for try await chunk in stream.chunks {
                    bytes += chunk
                    if isSlow { for _ in 0..<50 { await Task.yield() } }
                }
            } catch {
                return (bytes, NetworkError?.some(error))
            }
            return (bytes, nil)
        }
        if let error {
            if !expected.starts(with: bytes) {
                let offset = zip(expected, bytes).enumerated().first { $1.0 != $1.1 }?.offset ?? expected.count
                let found = Array(bytes.dropFirst(offset).prefix(16))
                client.ledger.defect(
                    "request \(number) streamed wrong bytes from \(offset) of \(bytes.count) before \(error): \(found)")
            }
            throw error
        }
        try await check(stream.response, bytes)
    }

    // MARK: Cancels and pauses

    /// Waits for a task that is cancelled or paused at any moment of its life.
    private mutating func disturbed<Value: Sendable>(
        _ task: some TaskHandle, _ value: () async throws(NetworkError) -> Value
    ) async throws(NetworkError) -> Value {
        if disturbance == .none { return try await value() }
        let (moment, turns, resumed) = (random.next(below: 4), random.next(below: 60), random.next(below: 400))
        let disturbance = disturbance
        // Without progress, a task that has not been started never gets to the other moments.
        if moment == 1 || moment == 2 { task.resume() }
        async let work: Void = {
            switch moment {
            case 0: break
            case 1: for await progress in task.progress where progress.completedBytes > 0 { break }
            case 2: for await progress in task.uploadProgress where progress.completedBytes > 0 { break }
            default: for _ in 0..<turns { await Task.yield() }
            }
            if moment == 3, turns % 2 == 0 { task.resume() }
            if disturbance == .cancel { return task.cancel() }
            task.pause()
            for _ in 0..<resumed { await Task.yield() }
            task.resume()
        }()
        do throws(NetworkError) {
            let result = try await value()
            await work
            return result
        } catch {
            await work
            throw error
        }
    }

    // MARK: Checks

    private func check(_ head: ResponseHead, _ bytes: [UInt8]) {
        if head.headers["Number"] != "\(number)" { client.ledger.defect("request \(number) has another's response") }
        let whole = head.status == 204 ? [] : expected
        if bytes != whole {
            client.ledger.defect("request \(number) has a wrong body: \(bytes.count) of \(whole.count) bytes")
        }
    }

    private func check(_ error: NetworkError) {
        if let found = error.response?.headers["Number"], found != "\(number)" {
            client.ledger.defect("request \(number) failed with another's response")
        }
        if !expected.starts(with: error.body) { client.ledger.defect("request \(number) failed with a wrong body") }
    }
}
#endif
