import Testing

/// No end of a task and no waiter is lost, in any order of the steps of a session and its tasks.
@Suite("Model of the end of a session")
struct SessionEndModelTests {
    @Test(arguments: [
        SessionEndModel.Scenario(calls: 2, drains: 1),
        SessionEndModel.Scenario(calls: 1, handles: 1, cancelledDrains: 1),
        SessionEndModel.Scenario(calls: 1, handles: 1, ends: 1),
        SessionEndModel.Scenario(calls: 2, ends: 1),
        SessionEndModel.Scenario(calls: 1, drains: 1, cancelledDrains: 1, ends: 1),
        SessionEndModel.Scenario(calls: 1, ends: 2),
        SessionEndModel.Scenario(calls: 3, ends: 1),
        SessionEndModel.Scenario(calls: 2, cancelledDrains: 1, ends: 1),
        SessionEndModel.Scenario(calls: 1, handles: 1, cancelledDrains: 1, ends: 1),
        SessionEndModel.Scenario(calls: 2, drains: 2),
    ]) func everyOrderOfTheStepsKeepsEachEndAndEachWaiter(scenario: SessionEndModel.Scenario) {
        let result = SessionEndModel.explore(scenario)
        #expect(result.violation == nil && result.states > 100)
    }

    /// The model finds each wrong order of two steps.
    @Test(arguments: SessionEndModel.Fault.allCases) func aWrongOrderIsFound(fault: SessionEndModel.Fault) {
        var scenario = SessionEndModel.Scenario(calls: 2, drains: 1, ends: 1, fault: fault)
        // Tasks begin after the release of a session that nobody ends.
        if fault == .looksBeforeWatching { scenario.ends = 0 }
        #expect(SessionEndModel.explore(scenario).violation != nil)
    }
}
