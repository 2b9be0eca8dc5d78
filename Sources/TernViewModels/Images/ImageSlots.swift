import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The key of a place for an image in a view.
///
/// ```swift
/// extension ImageSlot {
///     static var badge: ImageSlot { ImageSlot("badge") }
/// }
/// ```
public typealias ImageSlot = BindingKey<ImageLoad>

extension BindingKey<ImageLoad> {
    /// The main image of a view.
    public static var image: ImageSlot { ImageSlot("image") }
    /// The image of a view while it is highlighted.
    public static var highlighted: ImageSlot { ImageSlot("highlighted image") }
    /// The images that a view shows in sequence.
    public static var animation: ImageSlot { ImageSlot("animation images") }
}

/// Holds the state of each image slot of one view, next to the view's bindings.
@MainActor
final class ImageSlots: Sendable {
    private var states: [ImageSlot: ImageSlotState] = [:]
    /// Whether the view is on the screen; nil until the view reports it.
    var isVisible: Bool?

    /// The slots that have been loaded into.
    var keys: [ImageSlot] { Array(states.keys) }

    subscript(slot: ImageSlot) -> ImageSlotState { states[slot] ?? ImageSlotState() }

    @discardableResult
    func change<Result>(_ slot: ImageSlot, _ body: (inout ImageSlotState) -> Result) -> Result {
        body(&states[slot, default: ImageSlotState()])
    }
}

extension BindingKey<ImageSlots> {
    static var all: Self { Self("image slots") }
}

extension BindableView {
    /// The view's image slots, kept from the first load until the view is released.
    var imageSlots: ImageSlots {
        if let slots = bindings[value: .all] { return slots }
        let slots = ImageSlots()
        bindings[value: .all] = slots
        return slots
    }

    var existingImageSlots: ImageSlots? { bindings[value: .all] }
}

/// Decides what one slot of a view shows. Pure.
///
/// Loads are identified by their generations, which increase. A slot may hold several loads: an earlier load never
/// replaces the image of a later one, and only the newest load shows substitutes.
struct ImageSlotState: Sendable, Hashable {
    /// Content that stands in for the image of a load.
    enum Substitute: Sendable, Hashable, CaseIterable {
        case nothing, placeholder, variant, failure, fallback
    }

    /// The substitutes that one load has, and the rules for their use.
    struct Substitutes: Sendable, Hashable {
        var available: Set<Substitute> = []
        var clearsContent = false
        var showsPlaceholderOnlyOnFailure = false
    }

    enum Action: Sendable, Hashable {
        case none
        case showSubstitute(Substitute)
        case showImage(hasTransition: Bool)
    }

    private(set) var phase = ImagePhase.idle
    /// The URL of the load that began last.
    private(set) var url: URL?
    private var newest: UInt64 = 0
    /// The load whose image or preview came last.
    private var lastShown: UInt64 = 0
    /// Whether an image has come since the newest load began.
    private var hasImage = false

    mutating func begin(_ generation: UInt64, url: URL?) {
        guard generation > newest else { return }
        newest = generation
        hasImage = false
        self.url = url
    }

    /// Records that the image is not available yet.
    mutating func wait(_ generation: UInt64, _ substitutes: Substitutes) -> Action {
        guard generation == newest, !hasImage else { return .none }
        if substitutes.available.contains(.variant) { return show(.variant, as: .placeholder) }
        if substitutes.available.contains(.placeholder), !substitutes.showsPlaceholderOnlyOnFailure {
            return show(.placeholder, as: .placeholder)
        }
        if substitutes.clearsContent { return show(.nothing, as: .idle) }
        // The existing content stands in for the image.
        if phase != .idle { phase = .placeholder }
        return .none
    }

    /// Records that the load cannot begin because there is no URL.
    mutating func failWithoutURL(_ generation: UInt64, error: ImageError, substitutes: Substitutes) -> Action {
        guard generation == newest, !hasImage else { return .none }
        let substitute = [Substitute.fallback, .placeholder].first(where: substitutes.available.contains) ?? .nothing
        return show(substitute, as: .failure(error))
    }

    mutating func preview(_ generation: UInt64, setsView: Bool = true) -> Action {
        guard generation >= lastShown else { return .none }
        if generation == lastShown, case .success = phase { return .none }
        let number = if case .preview(let number) = phase, generation == lastShown { number + 1 } else { 1 }
        phase = .preview(number)
        return showImage(of: generation, setsView: setsView, hasTransition: false)
    }

    mutating func succeed(
        _ generation: UInt64, source: ImageResponse.Source, setsView: Bool = true,
        transition: ImageDisplay.Transition
    ) -> Action {
        guard generation >= lastShown else { return .none }
        phase = .success(source)
        let hasTransition =
            switch transition {
            case .whenLoaded: source != .memory
            case .always: true
            case .never: false
            }
        return showImage(of: generation, setsView: setsView, hasTransition: hasTransition)
    }

    mutating func fail(_ generation: UInt64, error: ImageError, substitutes: Substitutes) -> Action {
        // A load that fails does not remove the image of another load of the slot.
        guard generation == newest, !hasImage || lastShown == generation else { return .none }
        if substitutes.available.contains(.failure) { return show(.failure, as: .failure(error)) }
        let isPlaceholderDue = !hasImage && (substitutes.showsPlaceholderOnlyOnFailure || phase != .placeholder)
        if isPlaceholderDue, substitutes.available.contains(.placeholder) {
            return show(.placeholder, as: .failure(error))
        }
        phase = .failure(error)
        return .none
    }

    /// Records that the caller cleared the slot.
    mutating func clear() {
        phase = .idle
        url = nil
    }

    /// Sets the phase, for an animation that consists of the images of several loads.
    mutating func setPhase(_ phase: ImagePhase) { self.phase = phase }

    private mutating func show(_ substitute: Substitute, as phase: ImagePhase) -> Action {
        self.phase = phase
        return .showSubstitute(substitute)
    }

    private mutating func showImage(of generation: UInt64, setsView: Bool, hasTransition: Bool) -> Action {
        lastShown = generation
        hasImage = true
        return setsView ? .showImage(hasTransition: hasTransition) : .none
    }
}
