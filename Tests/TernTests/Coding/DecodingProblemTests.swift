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

    @Test func theErrorOfTernsDecoderHasItsPlace() {
        struct User: Decodable { let login: String }
        let coding = JSONCoding()
        let body = Data(#"[{"login":"secret"},{"login":31337,"x":{}}]"#.utf8)
        do {
            _ = try coding.decode([User].self, from: body)
        } catch {
            let text = DecodingProblem.text(error)
            #expect(
                text
                    == "not a String at '1.login', at offset 29 (line 1, column 30), in {\"login\": ▸number◂, \"x\": {…}}"
            )
        }
        do {
            _ = try coding.decode([User].self, from: Data("[{\n\"a\" 1}]".utf8))
        } catch {
            let text = DecodingProblem.text(error)
            #expect(
                text.hasPrefix("the text is not valid JSON: expected ':' after a key at 'the top level', at offset"),
                "\(text)")
        }
    }

    @Test(arguments: [
        ("1 x", "other text follows the value"), ("[1,]", "a comma is followed by no value"), ("", "the text is empty"),
        ("[01]", "a number begins with a zero"), ("tru", "expected true, false or null"),
    ])
    func eachErrorOfSyntaxIsASentence(body: String, problem: String) {
        do {
            _ = try JSONCoding().decode(JSONValue.self, from: Data(body.utf8))
        } catch {
            let text = DecodingProblem.text(error)
            #expect(
                text.hasPrefix("the text is not valid JSON: \(problem) at 'the top level', at offset"), "\(text)")
        }
    }

    @Test func aSentenceStaysWhole() {
        #expect(text("[", as: [Int].self).hasSuffix("at 'the top level'"))
        #expect(text(#"{"a":1}"#, as: [String: String].self) == "not a String at 'a'")
    }
}
