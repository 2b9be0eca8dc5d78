import Tern
import Testing

@Suite("Text of metrics")
struct MetricsTextTests {
    @Test func measurementsHaveUnitsAndWhatIsMissingIsLeftOut() {
        var metrics = TaskMetrics()
        #expect("\(metrics)" == "sent 0 bytes, received 0 bytes")
        metrics.nameLookupEnd = 100
        metrics.connectEnd = 500
        metrics.firstByteTime = 11_800
        metrics.totalTime = 1_012_150
        metrics.sentBytes = 120
        metrics.receivedBytes = 2_345
        metrics.decodedBodyBytes = 9_000
        metrics.httpVersion = .http11
        metrics.remoteAddress = "::1"
        metrics.remotePort = 443
        metrics.isReusedConnection = true
        metrics.transactions = 2
        #expect(
            "\(metrics)"
                == "1012.1 ms in all, first byte after 11.8 ms, name looked up in 0.1 ms, connected in 0.4 ms; "
                + "sent 120 bytes, received 2345 bytes, 9000 bytes decompressed; "
                + "HTTP/1.1 with [::1]:443, reused connection, sent 2 times")
    }

    @Test func dumpShowsNoInternalNumbers() {
        var text = ""
        dump(TaskMetrics(), to: &text)
        #expect(!text.contains("-1") && text.contains("total: nil"))
    }

    @Test func limitsHaveUnits() {
        #expect("\(Timeouts(total: nil))".hasPrefix("connect 15.0 seconds, idle 60.0 seconds, no total limit"))
        #expect("\(Timeouts.inherited)" == "those of the session")
    }
}
