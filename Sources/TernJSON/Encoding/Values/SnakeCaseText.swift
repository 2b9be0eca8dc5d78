/// Converts names such as `userName` to `user_name`, by the rule of Foundation's encoder.
enum SnakeCaseText {
    static func converted(_ name: String) -> String {
        guard !name.isEmpty else { return name }
        let scalars = name.unicodeScalars
        var words: [Substring] = []
        var wordStart = name.startIndex
        var search = name.index(after: wordStart)
        while let capital = scalars[search...].firstIndex(where: { isCapital($0) }) {
            words.append(name[wordStart..<capital])
            guard
                let small = scalars[capital...].firstIndex(where: { $0.properties.generalCategory == .lowercaseLetter })
            else {
                wordStart = capital
                break
            }
            wordStart = capital
            if small != name.index(after: capital) {
                // Of several capitals, the last one begins the next word.
                let last = name.index(before: small)
                words.append(name[capital..<last])
                wordStart = last
            }
            search = scalars.index(after: small)
        }
        words.append(name[wordStart...])
        return words.map { $0.lowercased() }.joined(separator: "_")
    }

    private static func isCapital(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .titlecaseLetter: true
        default: false
        }
    }
}
