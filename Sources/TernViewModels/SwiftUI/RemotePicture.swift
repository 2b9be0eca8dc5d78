#if canImport(SwiftUI)
public import SwiftUI
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loaded picture that fills its view or fits into it, a placeholder, or what says that there is none.
public struct RemotePicture<Placeholder: View, Failure: View>: View {
    let phase: ImagePhase
    let image: Image?
    let contentMode: ContentMode
    let placeholder: () -> Placeholder
    let failure: (ImageError) -> Failure

    /// One of the three.
    public var body: some View {
        if let image {
            image.resizable().aspectRatio(contentMode: contentMode)
        } else if case .failure(let error) = phase {
            failure(error)
        } else {
            placeholder()
        }
    }
}

extension RemoteImage {
    /// The picture at a URL, which takes all the space that it is offered and is decoded to it: to be given a frame.
    ///
    /// - Parameters:
    ///   - contentMode: Whether the picture fills that space, and is cut off, or fits into it. `.fill` by default.
    ///   - placeholder: Shown while the picture is not there.
    ///   - failure: Shown when there is none.
    public init<Placeholder: View, Failure: View>(
        _ url: URL?, contentMode: ContentMode = .fill, @ViewBuilder placeholder: @escaping () -> Placeholder,
        @ViewBuilder failure: @escaping (ImageError) -> Failure
    ) where Content == RemotePicture<Placeholder, Failure> {
        var display = ImageDisplay(current: .cleared)
        display.fitsView = true
        let request = ImageRequest(url, contentMode: contentMode == .fill ? .fill : .fit)
        self.init(request, display: display) { phase, image in
            RemotePicture(
                phase: phase, image: image, contentMode: contentMode, placeholder: placeholder, failure: failure)
        }
    }
}
#endif
