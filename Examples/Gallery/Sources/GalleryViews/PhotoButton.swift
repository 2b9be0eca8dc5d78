public import GtkBridge
public import TernImages
public import TernViewModels

/// A button with a picture for each of its states, and one behind it.
@safe
public final class PhotoButton: Button, ButtonImageViewModel {
    /// Where the picture is.
    public let picture = Picture()
    private var textures: [ButtonState: Texture] = [:]
    private let width: Int
    private let height: Int

    /// A button that is empty until a picture has come, of a size in GTK's pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
        picture.setMinimumSize(width: width, height: height)
        super.init(content: picture)
        on("state-flags-changed") { [weak self] _ in self?.showState() }
    }

    /// Keeps the picture of a state, and shows it if that is the state. GTK draws what is behind a button by a style sheet:
    /// this button has no loaded backgrounds.
    public func showImage(_ shown: ShownImage, as part: ButtonImagePart, for state: ButtonState) {
        guard part == .image else { return }
        textures[state] = shown.image.map(Texture.of)
        showState()
    }

    /// Pictures are decoded to the size in which the screen shows them.
    public func imageSize(for slot: ImageSlot) -> PixelSize? {
        PixelSize(width: width * scaleFactor, height: height * scaleFactor)
    }

    /// The state's own picture, else that of the state without the focus, else the normal one.
    private func showState() {
        let state = ButtonState(self.state)
        let texture = textures[state] ?? textures[state.subtracting(.focused)] ?? textures[.normal]
        if picture.texture !== texture { picture.texture = texture }
    }
}

extension ButtonState {
    /// GTK's states by their names here.
    init(_ state: Button.State) {
        self = .normal
        if state.contains(.pressed) { insert(.highlighted) }
        if state.contains(.disabled) { insert(.disabled) }
        if state.contains(.focused) { insert(.focused) }
    }
}
