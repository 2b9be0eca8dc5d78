import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Errors reach logs, so they quote nothing of the body.
@Suite struct DecodingProblemTests {
    private enum Plan: String, Decodable { case free }

    private func text<Value: Decodable>(_ body: String, as type: Value.Type) -> String {
        do {
            _ = try JSONDecoder().decode(type, from: Data(body.utf8))
            return ""
        } catch {
            return DecodingProblem.text(error)
        }
    }

    @Test func aValueIsNotQuoted() {
        let plan = text(#"["secret-token"]"#, as: [Plan].self)
        #expect(plan.contains("Plan") && plan.hasSuffix("at '0'"), "\(plan)")
        let number = text("[31337e300]", as: [Int].self)
        #expect(!number.isEmpty, "\(number)")
        for problem in [plan, number] {
            #expect(!problem.contains("secret") && !problem.contains("31337"), "\(problem)")
        }
    }

    @Test func aSentenceStaysWhole() {
        #expect(text("[", as: [Int].self).hasSuffix("at 'the top level'"))
        #expect(text(#"{"a":1}"#, as: [String: String].self) == "not a String at 'a'")
    }
}
