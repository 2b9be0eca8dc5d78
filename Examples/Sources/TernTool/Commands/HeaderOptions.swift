import ArgumentParser
import Tern

/// The option `-H`, which all commands have that send a request.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp("A header field to send; may be repeated.", valueName: "Name: value"),
        transform: Self.field)
    var fields: [Headers.Field] = []

    var headers: Headers { Headers(fields) }

    /// A field of `Name: value`. What may stand in a name and a value is checked when the request is made.
    private static func field(_ text: String) throws -> Headers.Field {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
            throw ValidationError("'\(text)' is no header field: write 'Name: value'")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return Headers.Field(name: String(text[..<colon]), value: String(value))
    }
}
