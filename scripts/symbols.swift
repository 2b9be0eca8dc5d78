// Reads symbol graphs: `symbols undocumented FILE…` prints the public symbols that lack a documentation comment,
// `symbols types FILE…` the public types by their dotted names, `symbols count FILE…` the number of public symbols.
// `symbols api FOLDER FILE…` writes the public declarations of each module into FOLDER/MODULE.txt. Part of `make lint`
// and of .ci/run.
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
        struct Fragment: Decodable { var spelling: String }
        struct Extension: Decodable { var constraints: [Constraint]? }

        var identifier: Identifier
        var kind: Kind
        var pathComponents: [String]
        var docComment: DocComment?
        var location: Location?
        var accessLevel: String
        var declarationFragments: [Fragment]?
        var swiftExtension: Extension?

        var isPublic: Bool { accessLevel == "public" || accessLevel == "open" }
        var isDocumented: Bool { docComment?.lines.contains { !$0.text.isEmpty } ?? false }
        var name: String { pathComponents.joined(separator: ".") }
    }

    struct Relationship: Decodable {
        struct Origin: Decodable {}
        var kind: String
        var source: String
        var target: String
        var targetFallback: String?
        var sourceOrigin: Origin?
    }

    struct Constraint: Decodable {
        var kind: String
        var lhs: String
        var rhs: String

        /// The constraint as code; nil for those that the compiler adds to every generic parameter.
        var code: String? {
            switch kind {
            case "conformance": PublicAPI.isImplied(rhs) ? nil : "\(lhs): \(rhs)"
            case "superclass": "\(lhs): \(rhs)"
            default: "\(lhs) == \(rhs)"
            }
        }
    }

    var symbols: [Symbol]
    var relationships: [Relationship]
}

@main
enum Symbols {
    static func main() throws {
        let mode = CommandLine.arguments.dropFirst().first ?? ""
        let isAPI = mode == "api"
        let paths = CommandLine.arguments.dropFirst(isAPI ? 3 : 2)
        let graphs = try paths.map { path in
            try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }
        switch mode {
        case "api" where !paths.isEmpty:
            try PublicAPI(modules: paths.map(module), graphs: graphs)
                .write(to: URL(fileURLWithPath: CommandLine.arguments[2]))
        case "undocumented": for line in graphs.flatMap(undocumented) { print(line) }
        case "types": for name in Set(graphs.flatMap(types)).sorted() { print(name) }
        case "count": print(graphs.flatMap(\.symbols).count { $0.isPublic })
        default:
            print("usage: symbols undocumented|types|count FILE…, symbols api FOLDER FILE…")
            exit(2)
        }
    }

    /// The module of a graph's file: `Tern` of Tern.symbols.json, and of Tern@Swift.symbols.json, its extensions of
    /// Swift.
    static func module(_ path: String) -> String {
        let name = URL(fileURLWithPath: path).lastPathComponent
        return String(name.prefix { $0 != "@" && $0 != "." })
    }

    /// A symbol without a location is the compiler's own; one with an origin implements a requirement, and is
    /// documented there (a requirement of ours is a symbol of its own in these graphs).
    static func undocumented(_ graph: SymbolGraph) -> [String] {
        let witnesses = Set(graph.relationships.filter { $0.sourceOrigin != nil }.map(\.source))
        return graph.symbols.compactMap { symbol in
            guard symbol.isPublic, !symbol.isDocumented, !witnesses.contains(symbol.identifier.precise),
                symbol.kind.identifier != "swift.extension", let location = symbol.location
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

/// The public declarations of each module, one a line: `OWNER | DECLARATION`. Sorted, and without what differs between
/// toolchains and says nothing, so that a difference of the lists is a difference of the API.
struct PublicAPI {
    private var lines: [String: Set<String>] = [:]
    /// The names of the symbols of all graphs, by identifier.
    private var names: [String: String] = [:]

    init(modules: [String], graphs: [SymbolGraph]) {
        for symbol in graphs.flatMap(\.symbols) { names[symbol.identifier.precise] = symbol.name }
        for (module, graph) in zip(modules, graphs) { add(graph, to: module) }
    }

    /// Protocols to which the compiler conforms types by itself.
    static func isImplied(_ name: String) -> Bool {
        ["Copyable", "Escapable", "SendableMetatype", "BitwiseCopyable"].contains(last(of: name))
    }

    func write(to folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (module, lines) in lines {
            let text = lines.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: "\n") + "\n"
            try Data(text.utf8).write(to: folder.appendingPathComponent("\(module).txt"))
        }
    }

    private mutating func add(_ graph: SymbolGraph, to module: String) {
        let sources: (String) -> Set<String> = { kind in
            Set(graph.relationships.filter { $0.kind == kind }.map(\.source))
        }
        let (requirements, defaults) = (sources("requirementOf"), sources("defaultImplementationOf"))
        for symbol in graph.symbols where symbol.isPublic {
            let identifier = symbol.identifier.precise
            var line = "\(owner(symbol)) | \(declaration(symbol))"
            if requirements.contains(identifier) { line += "  // required" }
            if defaults.contains(identifier) { line += "  // default" }
            lines[module, default: []].insert(line)
        }
        for conformance in graph.relationships where conformance.kind == "conformsTo" {
            let target = names[conformance.target] ?? conformance.targetFallback ?? conformance.target
            guard let source = names[conformance.source], !Self.isImplied(target) else { continue }
            let name = conformance.targetFallback == nil ? target : Self.last(of: target)
            lines[module, default: []].insert("\(source) : \(name)")
        }
    }

    /// The type that a member belongs to; a type stands before its members.
    private func owner(_ symbol: SymbolGraph.Symbol) -> String {
        let types: Set = ["swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.actor"]
        guard !types.contains(symbol.kind.identifier) else { return symbol.name }
        return symbol.pathComponents.dropLast().joined(separator: ".")
    }

    private func declaration(_ symbol: SymbolGraph.Symbol) -> String {
        let text = (symbol.declarationFragments ?? []).map(\.spelling).joined()
        var line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            .replacingOccurrences(of: " : ", with: ": ")
        if symbol.accessLevel == "open" { line = "open " + line }
        let constraints = (symbol.swiftExtension?.constraints ?? []).compactMap(\.code)
        if !constraints.isEmpty, !line.contains(" where ") {
            line += " where " + constraints.sorted().joined(separator: ", ")
        }
        return line
    }

    private static func last(of name: String) -> String { String(name.split(separator: ".").last ?? "") }
}
