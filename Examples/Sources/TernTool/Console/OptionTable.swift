import ArgumentParser

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options of a command, as the command declares them. Parsing, the help and the completion scripts come from the
/// same declarations. Pure.
struct OptionTable {
    /// An option, with all its names.
    struct Option: Equatable {
        /// The names with their hyphens: `-o`, `--output`.
        let names: [String]
        let takesValue: Bool
    }

    let options: [Option]
    private let byName: [String: Option]

    init(_ options: [Option]) {
        self.options = options
        byName = Dictionary(options.flatMap { option in option.names.map { ($0, option) } }) { first, _ in first }
    }

    /// Creates the table of a command.
    init(of command: any ParsableCommand.Type) {
        // `try?`: without a table, arguments stay as they are, and errors name no other option.
        let info = try? JSONDecoder().decode(DumpedHelp.self, from: Data(command._dumpHelp().utf8))
        let arguments = info?.command.arguments ?? []
        self.init(arguments.compactMap(\.option))
    }

    /// Returns the option of a name, such as `--output`.
    subscript(name: String) -> Option? { byName[name] }

    // MARK: Reading arguments

    /// An argument, as this table understands it.
    private enum Word {
        /// A value, a positional argument, or an option as the parser takes it.
        case plain(String)
        /// Known short options that are written together, and the value that is joined to the last.
        case cluster([String])
        /// An option that is not known, and the argument that has it.
        case unknown(name: String, argument: String)
    }

    /// Splits short options that are written together, as in `-fsSL`, `-sXPOST` and `-Fname=@file`.
    func expanded(_ arguments: [String]) -> [String] {
        words(of: arguments).flatMap { word in
            switch word {
            case .plain(let argument), .unknown(_, let argument): [argument]
            case .cluster(let parts): parts
            }
        }
    }

    /// Returns the first argument that looks like an option and is none.
    func firstUnknown(in arguments: [String]) -> String? {
        for case .unknown(let name, _) in words(of: arguments) { return name }
        return nil
    }

    private func words(of arguments: [String]) -> [Word] {
        var words: [Word] = []
        var (isValue, isRest) = (false, false)
        for argument in arguments {
            guard !isValue, !isRest, argument.hasPrefix("-"), argument != "-", argument != "--" else {
                isRest = isRest || argument == "--" && !isValue
                isValue = false
                words.append(.plain(argument))
                continue
            }
            let word = word(argument)
            words.append(word)
            switch word {
            case .plain(let name): isValue = self[name]?.takesValue ?? false
            case .cluster(let parts): isValue = parts.last.flatMap { self[$0]?.takesValue } ?? false
            case .unknown: isValue = false
            }
        }
        return words
    }

    private func word(_ argument: String) -> Word {
        // `-o=file` and `--output=file` are left to the parser.
        let name = String(argument.prefix { $0 != "=" })
        if self[name] != nil { return .plain(argument) }
        if argument.hasPrefix("--") { return .unknown(name: name, argument: argument) }
        if let parts = split(argument) { return .cluster(parts) }
        let letter = argument.dropFirst().first { self["-\($0)"] == nil }
        return .unknown(name: "-\(letter.map(String.init) ?? "")", argument: argument)
    }

    /// Returns the options of a cluster, and the value that is joined to the last of them; nil if a letter is unknown.
    /// A value can have any letter.
    private func split(_ cluster: String) -> [String]? {
        var letters = cluster.dropFirst()
        var parts: [String] = []
        while let letter = letters.popFirst() {
            guard let option = self["-\(letter)"] else { return nil }
            parts.append("-\(letter)")
            if option.takesValue, !letters.isEmpty { return parts + [String(letters)] }
        }
        return parts
    }

    // MARK: Names that are not known

    /// Returns the known name that is nearest to another: one that it begins, or else the one with the fewest changed
    /// letters, up to a third of them. A letter is near to itself in the other case.
    func nearest(to name: String) -> String? {
        let names = options.flatMap(\.names)
        guard name.hasPrefix("--") else {
            return names.first { $0.count == 2 && $0.lowercased() == name.lowercased() }
        }
        let long = names.filter { $0.hasPrefix("--") }
        if let longer = long.filter({ $0.hasPrefix(name) }).min(by: { $0.count < $1.count }), name.count > 3 {
            return longer
        }
        let distances = long.map { (name: $0, distance: Self.distance($0, name)) }
        return distances.filter { $0.distance <= max(1, (name.count - 2) / 3) }.min { $0.distance < $1.distance }?.name
    }

    /// Returns the number of letters to insert, remove, replace or exchange with the next to make one text of another.
    static func distance(_ one: String, _ other: String) -> Int {
        let (one, other) = (Array(one), Array(other))
        var rows = [Array(0...other.count)]
        for (line, letter) in one.enumerated() {
            var row = [line + 1]
            for (column, counterpart) in other.enumerated() {
                let replaced = rows[line][column] + (letter == counterpart ? 0 : 1)
                var best = min(row[column] + 1, rows[line][column + 1] + 1, replaced)
                if line > 0, column > 0, letter == other[column - 1], one[line - 1] == counterpart {
                    best = min(best, rows[line - 1][column - 1] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows.last?.last ?? 0
    }
}

/// The part of ArgumentParser's description of a command that says which options there are.
private struct DumpedHelp: Decodable {
    struct Command: Decodable {
        let arguments: [Argument]?
    }

    struct Argument: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
        }

        let kind: String
        let names: [Name]?

        /// The option; nil for a positional argument.
        var option: OptionTable.Option? {
            guard kind != "positional", let names else { return nil }
            return OptionTable.Option(
                names: names.map { ($0.kind == "long" ? "--" : "-") + $0.name }, takesValue: kind == "option")
        }
    }

    let command: Command
}

/// Reads the arguments of the tool as those of curl and HTTPie are written.
enum ArgumentReader {
    /// Options of the tool itself, before any command.
    private static let ownOptions = ["-h", "--help", "--version", "--help-hidden", "--experimental-dump-help"]
    /// The option that writes a completion script.
    static let completionOption = "--generate-completion-script"

    /// Options of curl and HTTPie that are spelled otherwise here.
    private static let otherWays = [
        "-C": "'tern download -c' continues a file", "--continue-at": "'tern download -c' continues a file",
        "--continue": "'tern download -c' continues a file", "-T": "'tern upload URL FILE' sends a file",
        "--upload-file": "'tern upload URL FILE' sends a file", "-w": "'-i' tells what was measured",
        "--write-out": "'-i' tells what was measured", "--print": "'-i' tells the head of the response",
        "-p": "'-i' tells the head of the response",
    ]

    /// Returns the arguments with the command that they leave out, `get`, and with each short option apart.
    static func completed(_ arguments: [String]) -> [String] {
        guard let first = arguments.first, !ownOptions.contains(first),
            !first.hasPrefix(completionOption), !first.hasPrefix("---"), first != "help",
            // It completes the arguments of the command behind it.
            first != InspectCommand.configuration.commandName
        else { return arguments }
        var arguments = arguments
        if command(named: first, of: TernTool.self) == nil { arguments.insert("get", at: 0) }
        // Only what is written together needs the table.
        guard arguments.contains(where: { $0.hasPrefix("-") && !$0.hasPrefix("--") && $0.count > 2 }) else {
            return arguments
        }
        let (path, command) = command(of: arguments)
        return Array(arguments[..<path]) + OptionTable(of: command).expanded(Array(arguments[path...]))
    }

    /// Returns a text about the first option that the command does not know, with the nearest that it knows; nil if it
    /// knows them all.
    static func complaint(about arguments: [String]) -> String? {
        let (path, command) = command(of: arguments)
        let table = OptionTable(of: command)
        guard let unknown = table.firstUnknown(in: Array(arguments[path...])) else { return nil }
        let shown = Terminal.plain(unknown)
        if let way = otherWays[unknown] { return "Unknown option '\(shown)': \(way)." }
        if let near = table.nearest(to: unknown) { return "Unknown option '\(shown)'. Did you mean '\(near)'?" }
        for other in leaves(of: TernTool.self, name: "tern") where OptionTable(of: other.command)[unknown] != nil {
            return "Unknown option '\(shown)'. '\(other.name)' has it."
        }
        return "Unknown option '\(shown)'."
    }

    /// The names of the commands.
    static var commandNames: [String] {
        TernTool.configuration.subcommands.compactMap { $0.configuration.commandName }
    }

    /// Returns the options of a command.
    static func table(of name: String) -> OptionTable? {
        command(named: name, of: TernTool.self).map { OptionTable(of: $0) }
    }

    /// Returns the name of the command that is nearest to a word; nil if none is near.
    static func command(near word: String) -> String? {
        let near = commandNames.map { (name: $0, distance: OptionTable.distance($0, word.lowercased())) }
        return near.filter { $0.distance <= ($0.name.count > 3 ? 2 : 1) }.min { $0.distance < $1.distance }?.name
    }

    private static func command(
        named name: String, of parent: any ParsableCommand.Type
    ) -> (any ParsableCommand.Type)? {
        parent.configuration.subcommands.first { $0.configuration.commandName == name }
    }

    /// Returns the command that the arguments begin with, and the number of its words.
    private static func command(of arguments: [String]) -> (path: Int, command: any ParsableCommand.Type) {
        var (count, found): (Int, any ParsableCommand.Type) = (0, TernTool.self)
        for argument in arguments {
            guard let next = command(named: argument, of: found) else { break }
            (count, found) = (count + 1, next)
        }
        return (count, found)
    }

    private static func leaves(
        of command: any ParsableCommand.Type, name: String
    ) -> [(name: String, command: any ParsableCommand.Type)] {
        let children = command.configuration.subcommands
        if children.isEmpty { return [(name, command)] }
        return children.flatMap { leaves(of: $0, name: "\(name) \($0.configuration.commandName ?? "")") }
    }
}
