public import GtkBridge
public import TernImages
public import TernViewModels

/// A widget that loads an image.
///
/// It holds its bindings itself, as any class may, so that its load ends at the moment its widget ends.
@safe
public final class PhotoCell: Picture, ImageViewModel {
    /// The bindings of the cell.
    public let bindings = ViewBindings()
    /// The last update, for checks.
    public private(set) var lastUpdate: ImageUpdate?
    /// Called when a load has ended, and was neither cancelled nor replaced.
    public var onEnd: (@MainActor (ImageLoad) -> Void)?
    private let width: Int
    private let height: Int

    /// Creates an empty cell with a size in GTK's pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
        super.init()
        setMinimumSize(width: width, height: height)
        keepSize()
    }

    /// Passes the pixels to GTK.
    public func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        lastUpdate = update
        texture = update.image.map(Texture.of)
    }

    /// Returns the size on the screen, to which images are decoded.
    public func imageSize(for slot: ImageSlot) -> PixelSize? {
        PixelSize(width: width * scaleFactor, height: height * scaleFactor)
    }

    /// Calls `onEnd`.
    public func imageLoadEnded(_ load: ImageLoad) { onEnd?(load) }
}

/// A row of a list: a photo, its title, and a button that is there after a failure.
@safe
public final class PhotoRow: Stack {
    /// The widget with the photo.
    public let cell: PhotoCell
    /// Loads the photo again.
    public let retryButton = Button("Try again")
    private let title = Label()
    /// The row of the list that is shown; nil for none.
    public private(set) var number: Int?
    private var request: ImageRequest?
    private var display = ImageDisplay()

    /// Creates an empty row whose photo has a size in GTK's pixels.
    public init(width: Int, height: Int) {
        cell = PhotoCell(width: width, height: height)
        super.init(.row, spacing: 12)
        add(cell).add(title).add(retryButton)
        retryButton.isShown = false
        cell.onEnd = { [weak self] load in
            if case .failure? = load.result { self?.retryButton.isShown = true }
        }
        retryButton.onClick { [weak self] in self?.retry() }
    }

    /// Shows a row: the substitute of the display until its photo is there.
    public func show(_ number: Int, _ request: ImageRequest, display: ImageDisplay) {
        (self.number, self.request, self.display) = (number, request, display)
        title.text = "Photo \(number)"
        load(request)
    }

    /// Ends the load: the row leaves the list.
    public func leave() {
        (number, request) = (nil, nil)
        cell.cancelImageLoad()
    }

    private func retry() {
        guard var request else { return }
        // Otherwise the pipeline would answer with the failure that it remembers.
        request.options.retriesFailed = true
        load(request)
    }

    private func load(_ request: ImageRequest) {
        retryButton.isShown = false
        cell.loadImage(from: request, display: display)
    }
}

extension Texture {
    /// Creates a texture from a decoded image, in sRGB. One that cannot be converted is clear.
    static func of(_ image: RasterImage) -> Texture {
        let image = (try? image.converted(to: .sRGB)) ?? RasterImage(color: .clear, size: image.size)
        return image.withPixels { Texture(width: image.size.width, height: image.size.height, premultiplied: $0) }
    }
}

/// A button with an image for each of its states.
@safe
public final class PhotoButton: Button, ButtonImageViewModel {
    /// The widget with the image.
    public let picture = Picture()
    private var textures: [ButtonState: Texture] = [:]
    private let width: Int
    private let height: Int

    /// Creates a button with a size in GTK's pixels, empty until an image has loaded.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
        picture.setMinimumSize(width: width, height: height)
        super.init(content: picture)
        on("state-flags-changed") { [weak self] _ in self?.showState() }
    }

    /// Stores the image of a state, and shows it if the state is current. GTK draws the background of a button with a
    /// style sheet, so this button has no loaded backgrounds.
    public func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
        guard part == .image else { return }
        textures[state] = update.image.map(Texture.of)
        showState()
    }

    /// Returns the size on the screen, to which images are decoded.
    public func imageSize(for slot: ImageSlot) -> PixelSize? {
        PixelSize(width: width * scaleFactor, height: height * scaleFactor)
    }

    /// Shows the image of the current state, else that of the state without the focus, else the normal one.
    private func showState() {
        let state = ButtonState(self.state)
        let texture = textures[state] ?? textures[state.subtracting(.focused)] ?? textures[.normal]
        if picture.texture !== texture { picture.texture = texture }
    }
}

extension ButtonState {
    /// Converts GTK's states.
    init(_ state: Button.State) {
        self = .normal
        if state.contains(.pressed) { insert(.highlighted) }
        if state.contains(.disabled) { insert(.disabled) }
        if state.contains(.focused) { insert(.focused) }
    }
}
