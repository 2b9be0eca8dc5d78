#if os(Linux)
import Foundation
import Testing

@testable import TernTool

/// The completion scripts, which come from the same declarations as parsing and help.
@Suite("completions", .timeLimit(.minutes(1)))
struct CompletionTests {
    @Test(arguments: ["bash", "zsh", "fish"]) func scriptHasTheOptionsOfEachCommand(shell: String) async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let result = try await tool.tern("--generate-completion-script", shell)
        #expect(result.code == 0)
        for command in ArgumentReader.commandNames { #expect(result.text.contains(command)) }
        for name in [
            "insecure", "cacert", "head", "location", "silent", "remote-name", "form", "json", "proxy", "reveal",
            "segments",
        ] {
            // fish writes names without hyphens.
            #expect(result.text.contains(shell == "fish" ? "-l '\(name)'" : "--\(name)"), "\(name)")
        }
        // Options that are accepted out of habit alone are not offered.
        #expect(!result.text.contains("no-buffer"))
    }

    /// Checked where the shell is installed.
    @Test(arguments: ["bash", "zsh", "fish"]) func shellReadsItsScript(shell: String) async throws {
        guard let program = ReflexTests.program(shell) else { return }
        let tool = try ToolProcess()
        defer { tool.remove() }
        try tool.write(try await tool.tern("--generate-completion-script", shell).output, to: "script")
        let result = try await tool.run(program, ["-n", "script"])
        #expect(result.code == 0 && result.messages.isEmpty, "\(result.messages)")
    }

    @Test(arguments: [
        ("tern do", "download"), ("tern --js", "--json"), ("tern -k --ca", "--cacert|--cache"),
        ("tern get --ca", "--cacert|--cache"), ("tern download --seg", "--segments"),
        ("tern queue re", "remove|resume"), ("tern upload --rev", "--reveal"),
    ])
    func installedScriptCompletesInBash(line: String, words: String) async throws {
        let bash = "/bin/bash"
        guard FileManager.default.isExecutableFile(atPath: bash) else { return }
        let tool = try ToolProcess()
        defer { tool.remove() }
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../..").standardized
        let installed = try await tool.run(
            root.appending(path: "scripts/install-tool").path, [ToolProcess.path("tern"), tool.folder.path + "/a b"])
        #expect(installed.code == 0, "\(installed.messages)")
        let files = [
            "bin/tern", "share/bash-completion/completions/tern", "share/fish/vendor_completions.d/tern.fish",
            "share/zsh/site-functions/_tern",
        ]
        let names = try tool.names
        #expect(files.allSatisfy { names.contains("a b/\($0)") }, "\(names)")
        let script = """
            source 'a b/share/bash-completion/completions/tern'
            COMP_LINE='\(line)' COMP_POINT=\(line.utf8.count) COMP_WORDS=(\(line))
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _tern tern "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\\n' "${COMPREPLY[@]}" | sort -u | paste -sd'|'
            """
        let result = try await tool.run(bash, ["--norc", "-c", script])
        #expect(result.text == words + "\n", "\(result.messages)")
    }
}
#endif
