import Synchronization

/// One measured run: as many workers as requests may be in flight share `requests` requests, each worker in a loop.
public struct Benchmark: Sendable {
    /// Does one request and returns the size of the body in bytes; for an upload, the size that the server counted.
    ///
    /// The scenario is the run's own, or `.get` for the warm-up of a transfer. The number is the worker's, from 0.
    public typealias Operation = @concurrent @Sendable (Scenario, String, Int) async throws -> Int

    let client: String
    let options: Options
    let executor: @Sendable (Int) -> (any TaskExecutor)?

    /// A run for the peer of that name. Each worker runs on the executor that `executor` returns for its number.
    public init(
        client: String, options: Options, executor: @escaping @Sendable (Int) -> (any TaskExecutor)? = { _ in nil }
    ) {
        self.client = client
        self.options = options
        self.executor = executor
    }

    /// Warms up, measures, prints one line of JSON, and returns the number of failed requests.
    public func run(_ operation: @escaping Operation) async -> Int {
        if !options.scenario.isTransfer {
            _ = await round(options.warmUpCount, options.scenario, options.url, options.accepts, operation)
        } else if let warmUpURL = options.warmUpURL {
            _ = await round(options.connections, .get, warmUpURL, { _ in true }, operation)
        }
        let before = Sample.now()
        let result = await round(options.requests, options.scenario, options.url, options.accepts, operation)
        let after = Sample.now()
        report(result, seconds: after.wall - before.wall, cpu: after.cpu - before.cpu)
        return result.errors
    }

    struct Result {
        var bytes = 0
        var errors = 0
    }

    private func round(
        _ requests: Int, _ scenario: Scenario, _ url: String, _ accepts: @escaping @Sendable (Int) -> Bool,
        _ operation: @escaping Operation
    ) async -> Result {
        let tickets = Tickets(requests)
        return await withTaskGroup(of: Result.self) { group in
            for worker in 0..<min(options.atOnce ?? options.connections, requests) {
                // A preference for no executor is one too: the runtime would look it up, under a lock, at each hop.
                if let executor = executor(worker) {
                    group.addTask(executorPreference: executor) {
                        await work(worker, tickets, scenario, url, accepts, operation)
                    }
                } else {
                    group.addTask { await work(worker, tickets, scenario, url, accepts, operation) }
                }
            }
            return await group.reduce(into: Result()) { sum, result in
                sum.bytes += result.bytes
                sum.errors += result.errors
            }
        }
    }

    /// Performs requests until all tickets are taken.
    @concurrent
    private func work(
        _ worker: Int, _ tickets: Tickets, _ scenario: Scenario, _ url: String,
        _ accepts: @escaping @Sendable (Int) -> Bool, _ operation: @escaping Operation
    ) async -> Result {
        var result = Result()
        while tickets.take() {
            do {
                let bytes = try await operation(scenario, url, worker)
                result.bytes += bytes
                if !accepts(bytes) { result.fail("a body of \(bytes) bytes", client) }
            } catch {
                result.fail("\(error)", client)
            }
        }
        return result
    }

    private func report(_ result: Result, seconds: Double, cpu: Double) {
        let count = Double(options.requests)
        print(
            """
            {"client":"\(client)","scenario":"\(options.scenario.rawValue)","connections":\(options.connections),\
            "requests":\(options.requests),"seconds":\(fixed(seconds, 4)),"rps":\(fixed(count / seconds, 1)),\
            "cpu_us_per_request":\(fixed(cpu * 1e6 / count, 2)),"cpu_seconds":\(fixed(cpu, 4)),\
            "mb_per_s":\(fixed(Double(result.bytes) / 1e6 / seconds, 1)),\
            "peak_rss_mib":\(fixed(peakResidentMiB(), 1)),"errors":\(result.errors)}
            """)
    }
}

private let failures = Atomic(0)

extension Benchmark.Result {
    /// Counts a failure; the process tells its first three.
    mutating func fail(_ reason: String, _ client: String) {
        errors += 1
        if failures.wrappingAdd(1, ordering: .relaxed).oldValue < 3 { complain("bench-\(client): \(reason)") }
    }
}

/// The number with so many digits after the point.
private func fixed(_ value: Double, _ digits: Int) -> String {
    var scale = 1
    for _ in 0..<digits { scale *= 10 }
    let scaled = Int((value * Double(scale)).rounded())
    let fraction = String(scaled % scale)
    return "\(scaled / scale)." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// Requests still to be started.
private final class Tickets: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func take() -> Bool { left.wrappingSubtract(1, ordering: .relaxed).oldValue > 0 }
}
