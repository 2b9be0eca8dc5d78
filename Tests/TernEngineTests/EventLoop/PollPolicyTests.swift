import TernEngine
import Testing

struct PollPolicyTests {
    @Test func nothingIsWorthAPollAtFirst() { #expect(!PollPolicy().isWorthwhile) }

    @Test func aShortSleepMakesThePollWorthwhile() {
        var policy = PollPolicy()
        policy.slept(for: PollPolicy.shortSleep + 1)
        #expect(!policy.isWorthwhile)
        policy.slept(for: PollPolicy.shortSleep)
        #expect(policy.isWorthwhile)
    }

    @Test func pollsInVainEndThePolling() {
        var policy = PollPolicy()
        for _ in 0..<100 { policy.polled(found: true) }
        var polls = 0
        while policy.isWorthwhile {
            policy.polled(found: false)
            polls += 1
        }
        #expect(polls == 4)
    }

    @Test func oneShortSleepAllowsOnePollInVain() {
        var policy = PollPolicy()
        policy.slept(for: 1)
        policy.polled(found: false)
        #expect(!policy.isWorthwhile)
    }
}

#if os(Linux)
struct ProcessorLoadTests {
    @Test(arguments: [
        ("0.42 0.38 0.21 2/345 6789\n", 2), ("12.00 9.10 4.00 17/2012 1\n", 17), ("", nil), ("0.42 0.38", nil),
        ("a b c d e", nil), ("0.1 0.1 0.1 /345 1", nil),
    ])
    func runnableThreadsAreRead(line: String, count: Int?) {
        #expect(ProcessorLoad.runnable(in: Array(line.utf8)[...]) == count)
    }
}
#endif
