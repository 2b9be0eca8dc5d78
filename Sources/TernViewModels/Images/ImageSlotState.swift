import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What one slot of a view shows, and of which load. Pure.
///
/// Loads are told apart by their generations, which grow. A slot may hold several: a later one's picture is never taken back
/// by an earlier one's, and what stands in for a picture is the newest load's affair alone.
struct ImageSlotState: Sendable, Hashable {
    /// What a slot has that is no picture of the load.
    enum Filling: Sendable, Hashable, CaseIterable {
        case nothing, placeholder, variant, failure, fallback
    }

    /// What of it there is for one load, and how it is to be used.
    struct Fillings: Sendable, Hashable {
        var isThere: Set<Filling> = []
        var clears = false
        var delaysPlaceholder = false
    }

    enum Action: Sendable, Hashable {
        case none
        case fill(Filling)
        case picture(hasTransition: Bool)
    }

    private(set) var phase = ImagePhase.idle
    /// Of the load that began last.
    private(set) var url: URL?
    private var newest: UInt64 = 0
    /// The load whose picture or preview was shown last.
    private var pictured: UInt64 = 0
    /// Whether a picture has been shown since the newest load began.
    private var isOccupied = false

    mutating func begin(_ generation: UInt64, url: URL?) {
        guard generation > newest else { return }
        newest = generation
        isOccupied = false
        self.url = url
    }

    /// The picture is not there yet.
    mutating func wait(_ generation: UInt64, _ fillings: Fillings) -> Action {
        guard generation == newest, !isOccupied else { return .none }
        if fillings.isThere.contains(.variant) { return fill(.variant, .placeholder) }
        if fillings.isThere.contains(.placeholder), !fillings.delaysPlaceholder {
            return fill(.placeholder, .placeholder)
        }
        if fillings.clears { return fill(.nothing, .idle) }
        // What is there stands in for what will come.
        if phase != .idle { phase = .placeholder }
        return .none
    }

    /// The load cannot begin: there is no URL.
    mutating func refuse(_ generation: UInt64, _ error: ImageError, _ fillings: Fillings) -> Action {
        guard generation == newest, !isOccupied else { return .none }
        let filling = [Filling.fallback, .placeholder].first(where: fillings.isThere.contains) ?? .nothing
        return fill(filling, .failure(error))
    }

    mutating func preview(_ generation: UInt64, isSet: Bool = true) -> Action {
        guard generation >= pictured else { return .none }
        if generation == pictured, case .success = phase { return .none }
        let number = if case .preview(let number) = phase, generation == pictured { number + 1 } else { 1 }
        phase = .preview(number)
        return picture(of: generation, isSet: isSet, hasTransition: false)
    }

    mutating func succeed(
        _ generation: UInt64, _ source: ImageResponse.Source, isSet: Bool = true,
        _ transition: ImageRequest.Presentation.Transition
    ) -> Action {
        guard generation >= pictured else { return .none }
        phase = .success(source)
        let hasTransition =
            switch transition {
            case .whenLoaded: source != .memory
            case .always: true
            case .never: false
            }
        return picture(of: generation, isSet: isSet, hasTransition: hasTransition)
    }

    mutating func fail(_ generation: UInt64, _ error: ImageError, _ fillings: Fillings) -> Action {
        // Of several loads one that has failed does not take the picture of another.
        guard generation == newest, !isOccupied || pictured == generation else { return .none }
        if fillings.isThere.contains(.failure) { return fill(.failure, .failure(error)) }
        let isPlaceholderDue = !isOccupied && (fillings.delaysPlaceholder || phase != .placeholder)
        if isPlaceholderDue, fillings.isThere.contains(.placeholder) { return fill(.placeholder, .failure(error)) }
        phase = .failure(error)
        return .none
    }

    /// The slot was emptied by hand.
    mutating func clear() {
        phase = .idle
        url = nil
    }

    /// Said by whoever shows the pictures of several loads together.
    mutating func stand(_ phase: ImagePhase) { self.phase = phase }

    private mutating func fill(_ filling: Filling, _ phase: ImagePhase) -> Action {
        self.phase = phase
        return .fill(filling)
    }

    private mutating func picture(of generation: UInt64, isSet: Bool, hasTransition: Bool) -> Action {
        pictured = generation
        isOccupied = true
        return isSet ? .picture(hasTransition: hasTransition) : .none
    }
}
