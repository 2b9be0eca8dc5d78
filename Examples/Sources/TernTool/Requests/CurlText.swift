import Tern

/// The command line of curl that sends the same request. Pure.
enum CurlText {
    /// An option of curl, and its value.
    struct Word: Equatable {
        let option: String
        let value: String?
        /// Whether the value is shown only where secrets are.
        let isSecret: Bool
        /// The text that is shown before a secret value.
        let shownPrefix: String

        init(_ option: String, _ value: String? = nil, isSecret: Bool = false, shownPrefix: String = "") {
            self.option = option
            self.value = value
            self.isSecret = isSecret
            self.shownPrefix = shownPrefix
        }

        /// Returns the option for a shell.
        func text(isRevealed: Bool) -> String {
            guard let value else { return option }
            return "\(option) \(CurlText.quoted(shownPrefix + (isSecret && !isRevealed ? "<redacted>" : value)))"
        }
    }

    /// Returns the command, which can be pasted into a shell. Without `isRevealed`, secrets are replaced: those of the
    /// header and of the URL, and the texts of a body. The command then shows what is sent, and sends something else.
    static func command(
        for request: Request, sending body: SentBody? = nil, options: [Word], isRevealed: Bool
    ) -> String {
        var request = request
        // Curl is given the body in the same form as the tool.
        request.body = .none
        var options = options
        if let type = body?.contentType, type != SentBody.formType, request.headers["Content-Type"] == nil {
            request.headers["Content-Type"] = type
        }
        options += body?.words ?? []
        let words = options.map { $0.text(isRevealed: isRevealed) }
        return ([request.curlDescription(revealing: isRevealed ? .all : .none)] + words).joined(separator: " ")
    }

    /// Quotes a text for a POSIX shell. Within single quotes only the quote itself is special.
    static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            let character = Character(UnicodeScalar(byte))
            return byte < 0x80 && (character.isLetter || character.isASCIIDigit || "/._-:=@,+%".contains(character))
        }
        if isPlain, !text.isEmpty { return text }
        // A shell reads bytes. As a character, a quote followed by a combining mark would not be a quote.
        let quote = UInt8(ascii: "'")
        let inner = text.utf8.flatMap { $0 == quote ? Array("'\\''".utf8) : [$0] }
        return String(decoding: [quote] + inner + [quote], as: UTF8.self)
    }
}
