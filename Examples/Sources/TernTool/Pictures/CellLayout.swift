import TernImages

/// The room that a picture has in a terminal. Pure.
struct CellLayout: Equatable {
    /// Cells from left to right.
    let columns: Int
    /// Cells from top to bottom.
    let rows: Int
    /// Pixels of a cell.
    let cell: PixelSize
    /// Whether a picture of all rows can be drawn over: the cursor comes back only to what has not scrolled away.
    let fitsWindow: Bool

    /// The whole window but two lines, one for the progress and one for the prompt, or what the user wants in its place.
    init(_ window: WindowSize, form: PictureForm, columns: Int? = nil, rows: Int? = nil) {
        let cell = form.cell(in: window)
        self.cell = PixelSize(width: cell.width, height: cell.height)
        self.columns = columns ?? window.columns
        self.rows = rows ?? max(1, window.rows - 2)
        fitsWindow = self.rows < window.rows && self.columns <= window.columns
    }

    /// The size to decode to: the picture fits into it, and stays smaller where it is smaller.
    var target: PixelSize { PixelSize(width: columns * cell.width, height: rows * cell.height) }

    /// The cells that a picture takes.
    func cells(of size: PixelSize) -> (columns: Int, rows: Int) {
        (
            min(columns, (size.width + cell.width - 1) / cell.width),
            min(rows, (size.height + cell.height - 1) / cell.height)
        )
    }
}
