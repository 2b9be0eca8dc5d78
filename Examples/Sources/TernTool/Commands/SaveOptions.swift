import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options of `tern get` that say where the body is written.
struct SaveOptions: ParsableArguments {
    @Option(
        name: [.short, .long], parsing: .unconditional,
        help: """
            The file to write, complete or not at all; one that exists is replaced at the end. A folder gets a file of the \
            server's name, and - is standard output.
            """,
        completion: .file())
    var output: String?

    @Flag(
        name: [.customShort("O"), .long],
        help: "Write to a file with the name in the URL. An existing file stays, and the new one gets a number.")
    var remoteName = false

    @Flag(
        name: [.customShort("J"), .customLong("remote-header-name"), .customLong("download")],
        help: "As -O, with the name that the server suggests, and else the one in the URL.")
    var serverName = false

    /// Whether the body is written to a file of a name that nobody has typed.
    private var namesFile: Bool { remoteName || serverName }

    func validate() throws {
        try PathText.check(output)
        if let output, namesFile, PathText.isStandardOutput(output) {
            throw ValidationError("-O and -J name a file, and -o standard output")
        }
    }

    /// Starts a download to the file that the options name; nil if the body is written elsewhere.
    func download(_ request: Request, from url: String, in session: Session) throws -> Started? {
        switch try place() {
        case .output, .device: return nil
        case .file(let path):
            return Started(task: session.download(request, to: PathText.url(path)), label: path) { _ in path }
        case .folder(let folder):
            // The server's own suggestion is safe: it has no separators, and no dot at its beginning.
            let name = remoteName && !serverName ? URLText.fileName(url) : nil
            let task = session.download(request, options: Download.Options(existing: .keepBoth)) { _, head in
                PathText.url(folder + (name ?? head.suggestedFilename))
            }
            let shown = output == nil ? "" : folder
            return Started(task: task, label: name) { shown + $0.lastPathComponent }
        }
    }

    /// A download.
    struct Started {
        let task: SessionTask<URL>
        /// The name beside its progress; nil for that of the server.
        let label: String?
        /// Returns the path of the file, as it is shown.
        let shown: (URL) -> String
    }

    /// The same options of curl.
    func curlWords(at place: PathText.Place) -> [CurlText.Word] {
        guard output == nil else { return Optional(place).curlWords(isNamed: !remoteName || serverName) }
        return namesFile ? PathText.Place?.none.curlWords(isNamed: serverName) : []
    }

    /// The place of the body.
    ///
    /// - Throws: An error if a folder is missing.
    func place() throws -> PathText.Place {
        guard let output else { return namesFile ? .folder(PathText.currentFolder) : .output }
        let place = try PathText.place(output)
        if namesFile, case .file = place { throw ValidationError("with -O and -J, -o names a folder that exists") }
        return place
    }
}
