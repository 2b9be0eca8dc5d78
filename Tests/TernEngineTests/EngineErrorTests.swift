import TernEngine
import Testing

@Suite struct EngineErrorTests {
    @Test func errorsWithTheSameContentsAreEqual() {
        #expect(EngineError(.dns, "a") == EngineError(.dns, "a"))
        #expect(EngineError(.dns, "a") != EngineError(.dns, "a", code: 2))
    }
}
