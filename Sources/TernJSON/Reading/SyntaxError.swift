/// The reason why bytes are no JSON text, and where.
struct SyntaxError: Error {
    enum Problem {
        case isEmpty
        case endsEarly
        case noKey
        case noColon
        case noSeparatorInObject
        case noSeparatorInArray
        case trailingComma
        case noValue
        case badLiteral
        case badNumber
        case leadingZero
        case controlCharacter
        case badEscape
        case loneSurrogate
        case badUTF8
        case contentAfterValue
        case tooDeep(Int)
        case tooLarge
        case otherEncoding(String)
    }

    let problem: Problem
    let offset: Int

    var text: String {
        switch problem {
        case .isEmpty: "the text is empty"
        case .endsEarly: "the text ends early"
        case .noKey: "expected a key in quotation marks"
        case .noColon: "expected ':' after a key"
        case .noSeparatorInObject: "expected ',' or '}' in an object"
        case .noSeparatorInArray: "expected ',' or ']' in an array"
        case .trailingComma: "a comma is followed by no value"
        case .noValue: "expected a value"
        case .badLiteral: "expected true, false or null"
        case .badNumber: "a number is not complete"
        case .leadingZero: "a number begins with a zero"
        case .controlCharacter: "a control character in a string is not escaped"
        case .badEscape: "an escape sequence in a string is not valid"
        case .loneSurrogate: "an escape sequence in a string is one half of a character"
        case .badUTF8: "a string is not text in UTF-8"
        case .contentAfterValue: "other text follows the value"
        case .tooDeep(let limit): "arrays and objects nest deeper than \(limit) levels"
        case .tooLarge: "the text is too large"
        case .otherEncoding(let name): "the text is in \(name), expected UTF-8"
        }
    }
}

/// The ways in which scanning ends without a tape.
enum ScanFailure: Error {
    case syntax(SyntaxError)
    case stopped(any Error)
}
