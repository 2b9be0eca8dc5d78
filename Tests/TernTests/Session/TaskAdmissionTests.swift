import Dispatch
import Testing

@testable import Tern

@Suite("TaskAdmission")
struct TaskAdmissionTests {
    /// A class, because several threads cannot capture a value that is not copied.
    private final class Session: Sendable {
        private let admission = TaskAdmission()

        var isIdle: Bool { admission.isIdle }
        func admit() -> Bool { admission.admit() }
        func end() -> Bool { admission.end() }
        func close() { admission.close() }
    }

    @Test func aClosedSessionTakesNoTask() {
        let session = Session()
        #expect(session.isIdle)
        #expect(session.admit() && session.admit())
        #expect(!session.isIdle)
        session.close()
        #expect(!session.admit())
        #expect(!session.isIdle)
        #expect(!session.end())
        #expect(session.end())
        #expect(session.isIdle)
        #expect(!session.admit())
    }

    /// Of tasks that are taken and end on several threads around the end of the session, exactly one is the last.
    @Test func oneTaskIsTheLast() async {
        for _ in 0..<200 {
            let session = Session()
            let taken = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<4 { group.addTask { (0..<50).count { _ in session.admit() } } }
                group.addTask {
                    session.close()
                    return 0
                }
                return await group.reduce(0, +)
            }
            #expect(session.isIdle == (taken == 0))
            let lasts = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<taken { group.addTask { session.end() } }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(lasts == min(1, taken))
            #expect(session.isIdle)
        }
    }
}
