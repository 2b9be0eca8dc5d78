extension FormEncoder {
    /// How the names of properties are changed.
    public enum Keys: Sendable {
        /// Not at all.
        case asIs
        /// `oneTwoThree` becomes `one_two_three`.
        case snakeCase
        /// `oneTwoThree` becomes `one-two-three`.
        case kebabCase
        /// `oneTwoThree` becomes `OneTwoThree`.
        case capitalized
        /// `oneTwoThree` becomes `ONETWOTHREE`.
        case uppercased
        /// `oneTwoThree` becomes `onetwothree`.
        case lowercased
        /// As the closure changes them.
        case custom(@Sendable (String) -> String)

        func name(_ name: String) -> String {
            switch self {
            case .asIs: name
            case .snakeCase: Self.words(of: name).joined(separator: "_")
            case .kebabCase: Self.words(of: name).joined(separator: "-")
            case .capitalized: name.prefix(1).uppercased() + name.dropFirst()
            case .uppercased: name.uppercased()
            case .lowercased: name.lowercased()
            case .custom(let change): change(name)
            }
        }

        /// In lower case, cut before each capital that begins a word: `myURLLoader` has `my`, `url` and `loader`.
        private static func words(of name: String) -> [String] {
            let letters = Array(name)
            var words: [String] = []
            var word = ""
            for (index, letter) in letters.enumerated() {
                let follows = index > 0 && !letters[index - 1].isUppercase
                let leads = index + 1 < letters.count && letters[index + 1].isLowercase
                if letter.isUppercase, !word.isEmpty, follows || leads {
                    words.append(word)
                    word = ""
                }
                word += letter.lowercased()
            }
            return words + [word]
        }
    }
}
