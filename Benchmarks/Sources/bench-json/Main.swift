#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Measures the JSON coders of TernJSON and of Foundation.
///
///     bench-json tern|foundation SHAPE check FILE                          decodes, and prints what it encodes of that
///     bench-json tern|foundation SHAPE decode|encode FILE WARM-UP COUNT    prints the CPU time of a call
///
/// FILE holds the text of the shape. The figures are one line of JSON.
@main
enum JSONBenchmark {
    static func main() throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 4, let shape = Shape(rawValue: words[1]), let mode = Job.Mode(words.dropFirst(2)) else {
            throw Failure.usage
        }
        let job = Job(mode: mode, data: try Data(contentsOf: URL(fileURLWithPath: words[3])))
        switch words[0] {
        case "tern": try shape.run(job, with: TernCoder(shape))
        case "foundation": try shape.run(job, with: FoundationCoder(shape))
        default: throw Failure.usage
        }
    }

    enum Failure: Error, CustomStringConvertible {
        case usage

        var description: String {
            "usage: bench-json tern|foundation SHAPE check FILE | decode|encode FILE WARM-UP COUNT"
        }
    }
}
