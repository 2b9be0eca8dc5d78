/// Pictures of letters, for terminals that know nothing else: the brighter a cell, the more of it the letter covers. Pure.
enum LetterShades {
    private static let shades = Array(" .:-=+*#%@")

    /// A line for every two rows of pixels. On a bright background the letters are what is dark.
    static func lines(_ grid: PixelGrid, isDark: Bool) -> [String] {
        stride(from: 0, to: grid.height, by: 2).map { row in
            String((0..<grid.width).map { letter([grid[$0, row], grid[$0, row + 1]].compactMap(\.self), isDark) })
        }
    }

    private static func letter(_ colors: [Color], _ isDark: Bool) -> Character {
        guard !colors.isEmpty else { return " " }
        // Weights of ITU-R BT.601, in thousandths.
        let sum = colors.reduce(0) { $0 + 299 * Int($1.red) + 587 * Int($1.green) + 114 * Int($1.blue) }
        let light = sum / colors.count / 1_000
        return shades[(isDark ? light : 255 - light) * (shades.count - 1) / 255]
    }
}
