// Reads symbol graphs: `symbols undocumented FILE…` prints the public symbols that lack a documentation comment,
// `symbols types FILE…` the public types by their dotted names. Part of `make lint` and of .ci/run.
import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Identifier: Decodable { var precise: String }
        struct Kind: Decodable { var identifier: String }
        struct DocComment: Decodable {
            struct Line: Decodable { var text: String }
            var lines: [Line]
        }
        struct Location: Decodable {
            struct Position: Decodable { var line: Int }
            var uri: String
            var position: Position
        }

        var identifier: Identifier
        var kind: Kind
        var pathComponents: [String]
        var docComment: DocComment?
        var location: Location?
        var accessLevel: String

        var isPublic: Bool { accessLevel == "public" || accessLevel == "open" }
        var isDocumented: Bool { docComment?.lines.contains { !$0.text.isEmpty } ?? false }
        var name: String { pathComponents.joined(separator: ".") }
    }

    struct Relationship: Decodable {
        struct Origin: Decodable {}
        var source: String
        var sourceOrigin: Origin?
    }

    var symbols: [Symbol]
    var relationships: [Relationship]
}

@main
enum Symbols {
    static func main() throws {
        let mode = CommandLine.arguments.dropFirst().first ?? ""
        let graphs = try CommandLine.arguments.dropFirst(2).map { path in
            try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }
        switch mode {
        case "undocumented": graphs.flatMap(undocumented).forEach { print($0) }
        case "types": Set(graphs.flatMap(types)).sorted().forEach { print($0) }
        case "count": print(graphs.flatMap(\.symbols).count { $0.isPublic })
        default:
            print("usage: symbols undocumented|types|count FILE…")
            exit(2)
        }
    }

    /// A symbol without a location is the compiler's own; one with an origin implements a requirement, and is
    /// documented there (a requirement of ours is a symbol of its own in these graphs).
    static func undocumented(_ graph: SymbolGraph) -> [String] {
        let witnesses = Set(graph.relationships.filter { $0.sourceOrigin != nil }.map(\.source))
        return graph.symbols.compactMap { symbol in
            guard symbol.isPublic, !symbol.isDocumented, !witnesses.contains(symbol.identifier.precise),
                let location = symbol.location
            else { return nil }
            let path = location.uri.replacingOccurrences(of: "file://", with: "")
            return "\(path):\(location.position.line + 1): error: '\(symbol.name)' has no documentation comment"
        }
    }

    /// Types that can be named without an argument: an alias or associated type inside another type is left out.
    static func types(_ graph: SymbolGraph) -> [String] {
        let kinds: Set = ["swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.actor"]
        return graph.symbols.filter { symbol in
            guard symbol.isPublic else { return false }
            let isAlias = symbol.kind.identifier == "swift.typealias" && symbol.pathComponents.count == 1
            return kinds.contains(symbol.kind.identifier) || isAlias
        }.map(\.name)
    }
}
