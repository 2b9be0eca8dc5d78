#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The cosine waves of one direction at each pixel.
struct Waves {
    private let values: [Double]
    private let length: Int

    /// - Parameter center: The place of a pixel that counts: 0.5 for its middle, 0 for its beginning.
    init(_ count: Int, length: Int, center: Double = 0.5) {
        self.length = length
        values = (0..<count).flatMap { wave in
            (0..<length).map { cos(.pi / Double(length) * Double(wave) * (Double($0) + center)) }
        }
    }

    func value(_ wave: Int, _ pixel: Int) -> Double { values[wave * length + pixel] }
}

/// The waves of both directions that a channel of a ThumbHash has: a triangle, without the constant.
struct WaveGrid {
    let columns: Int
    let rows: Int

    /// The waves of the color and of the opacity.
    static let color = WaveGrid(columns: 3, rows: 3)
    static let alpha = WaveGrid(columns: 5, rows: 5)

    /// Returns the waves across of a row: fewer, the finer the row is.
    func columns(of row: Int) -> Range<Int> {
        let end = (columns * (rows - row) + rows - 1) / rows
        return min(row == 0 ? 1 : 0, end)..<end
    }

    /// The number of waves.
    var count: Int { (0..<rows).reduce(0) { $0 + columns(of: $1).count } }
}

/// The sum of a channel's waves at each pixel, without its average.
struct WaveField {
    /// The sums across of each row of waves, by row and column of pixels.
    private let sums: [Double]
    private let down: Waves
    private let rows: Int
    private let width: Int

    init(_ grid: WaveGrid, weights: [Double], size: PixelSize) {
        (rows, width) = (grid.rows, size.width)
        down = Waves(grid.rows, length: size.height)
        let across = Waves(grid.columns, length: size.width)
        var (sums, first) = ([Double](repeating: 0, count: grid.rows * size.width), 0)
        for row in 0..<grid.rows {
            let columns = grid.columns(of: row)
            for x in 0..<size.width {
                for (index, column) in columns.enumerated() {
                    sums[row * size.width + x] += weights[first + index] * across.value(column, x)
                }
            }
            first += columns.count
        }
        self.sums = sums
    }

    func value(_ x: Int, _ y: Int) -> Double {
        var sum = 0.0
        for row in 0..<rows { sum += sums[row * width + x] * down.value(row, y) }
        return sum * 2
    }
}
