import GalleryViews
import Glibc
import GtkBridge
import TernImages
import TernViewModels

/// Binds photos to cells between two marks, which `scripts/check-gallery` looks for in a trace of the system calls: those that
/// are nowhere yet, those in memory, and those on the disk alone.
@MainActor
struct BindProbe {
    private let server: PhotoServer

    init(_ server: PhotoServer) { self.server = server }

    func run() async {
        let window = Window("Binding", width: 960, height: 200)
        let row = Stack(.row)
        let cells = (0..<20).map { _ in PhotoCell(width: 44, height: 33) }
        for cell in cells { row.add(cell) }
        window.setContent(row)
        window.present()
        await MainLoop.pause(300)
        bind(cells, ImageRequest.Caching())
        await MainLoop.wait { cells.allSatisfy(\.hasLoaded) }
        for cell in cells { cell.clearImage() }
        bind(cells, ImageRequest.Caching())
        let wereInMemory = cells.allSatisfy(\.hasLoaded)
        for cell in cells { cell.clearImage() }
        bind(cells, ImageRequest.Caching(memory: .write))
        await MainLoop.wait { cells.allSatisfy(\.hasLoaded) }
        print("bound \(3 * cells.count) photos, \(wereInMemory ? cells.count : 0) of them from memory")
        window.close()
    }

    private func bind(_ cells: [PhotoCell], _ caching: ImageRequest.Caching) {
        mark("begin")
        for (number, cell) in cells.enumerated() {
            var request = ImageRequest(server.url(PhotoAddress(number, .jpeg)))
            request.caching = caching
            cell.load(request)
        }
        mark("end")
    }

    /// A call that says where it is in the trace, and does nothing.
    private func mark(_ name: String) { _ = unsafe access("/tern-bind-\(name)", F_OK) }
}
