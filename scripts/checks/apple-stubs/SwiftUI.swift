// The declarations of SwiftUI that Tern uses, as Apple documents them (developer.apple.com/documentation/swiftui):
// names, types, labels and actors, without behavior. Only scripts/checks/apple compiles it.
@_exported public import CoreGraphics
@_exported public import Foundation

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Self.Body { get }
}

extension Never: View {
    public var body: Never { self }
}

/// For views without a body.
public protocol PrimitiveView: View where Body == Never {}

extension PrimitiveView {
    public var body: Never { preconditionFailure("a stub has no body") }
}

@resultBuilder public struct ViewBuilder {
    public static func buildBlock() -> EmptyView { EmptyView() }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(
        _ content: repeat each Content
    ) -> TupleView<(repeat each Content)> {
        TupleView((repeat each content))
    }
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<First: View, Second: View>(first: First) -> _ConditionalContent<First, Second> {
        _ConditionalContent()
    }
    public static func buildEither<First: View, Second: View>(second: Second) -> _ConditionalContent<First, Second> {
        _ConditionalContent()
    }
}

public struct EmptyView: PrimitiveView {
    nonisolated public init() {}
}
public struct TupleView<Content>: PrimitiveView {
    nonisolated public init(_ value: Content) {}
}
public struct _ConditionalContent<First, Second>: PrimitiveView {
    nonisolated init() {}
}
extension Optional: @MainActor View where Wrapped: View {
    public typealias Body = Never
    public var body: Never { preconditionFailure("a stub has no body") }
}

public struct Color: PrimitiveView, Sendable {
    public static var clear: Color { Color() }
    public static var gray: Color { Color() }
}

public struct Text: PrimitiveView, Sendable {
    public init<S: StringProtocol>(_ content: S) {}
    public init(verbatim content: String) {}
}

public struct ProgressView: PrimitiveView {
    public init() {}
    public init<V: BinaryFloatingPoint>(value: V?, total: V = 1.0) {}
}

public struct ZStack<Content: View>: PrimitiveView {
    public init(alignment: Alignment = .center, @ViewBuilder content: () -> Content) {}
}

public struct HStack<Content: View>: PrimitiveView {
    public init(alignment: VerticalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
}

public struct VStack<Content: View>: PrimitiveView {
    public init(
        alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content
    ) {}
}

public struct Button<Label: View>: PrimitiveView {
    public init<S: StringProtocol>(_ title: S, action: @escaping @MainActor () -> Void) where Label == Text {}
}

public struct List<SelectionValue: Hashable, Content: View>: PrimitiveView {
    public init<Data: RandomAccessCollection, RowContent: View>(
        _ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> RowContent
    )
    where
        Content == ForEach<Data, Data.Element.ID, RowContent>, SelectionValue == Never, Data.Element: Identifiable
    {}
}

public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: PrimitiveView {
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content)
    where ID == Data.Element.ID, Data.Element: Identifiable {}
}

public struct ScrollView<Content: View>: PrimitiveView {
    public init(@ViewBuilder content: () -> Content) {}
}

public struct GridItem: Sendable {
    public enum Size: Sendable {
        case fixed(CGFloat)
        case flexible(minimum: CGFloat = 10, maximum: CGFloat = .infinity)
        case adaptive(minimum: CGFloat, maximum: CGFloat = .infinity)
    }
    public init(_ size: GridItem.Size = .flexible(), spacing: CGFloat? = nil, alignment: Alignment? = nil) {}
}

public struct LazyVGrid<Content: View>: PrimitiveView {
    public init(
        columns: [GridItem], alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil,
        @ViewBuilder content: () -> Content
    ) {}
}

public struct NavigationStack<Data, Root: View>: PrimitiveView {
    public init(@ViewBuilder root: () -> Root) where Data == NavigationPath {}
}

public struct NavigationPath {}

public struct NavigationLink<Label: View, Destination: View>: PrimitiveView {
    public init(@ViewBuilder destination: () -> Destination, @ViewBuilder label: () -> Label) {}
}

@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get }
}

extension Never: Scene {}

@resultBuilder public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { preconditionFailure("a stub has no body") }
}

@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get }
    @MainActor @preconcurrency init()
}

extension App {
    @MainActor @preconcurrency public static func main() {}
}

public struct HorizontalAlignment: Sendable {
    public static var center: HorizontalAlignment { HorizontalAlignment() }
}

public struct VerticalAlignment: Sendable {
    public static var center: VerticalAlignment { VerticalAlignment() }
}

public struct Alignment: Sendable {
    public static var center: Alignment { Alignment() }
}

public enum ContentMode: Hashable, Sendable { case fit, fill }

public struct Image: PrimitiveView, Equatable, Sendable {
    public enum Orientation: Hashable, Sendable { case up }
    public enum ResizingMode: Hashable, Sendable { case tile, stretch }
    public init(decorative cgImage: CGImage, scale: CGFloat, orientation: Image.Orientation = .up) {}
    public init(systemName: String) {}
    public func resizable(capInsets: EdgeInsets = EdgeInsets(), resizingMode: Image.ResizingMode = .stretch) -> Image {
        self
    }
}

public struct EdgeInsets: Equatable, Sendable {
    public init() {}
}

public struct Animation: Equatable, Sendable {
    public static func easeInOut(duration: Double) -> Animation { Animation() }
}

public struct AnyTransition {
    @MainActor @preconcurrency public static let opacity = AnyTransition()
}

public struct GeometryProxy {
    public var size: CGSize { CGSize(width: 0, height: 0) }
}

@propertyWrapper public struct State<Value> {
    public init(wrappedValue value: Value) { self.init(value) }
    public var wrappedValue: Value {
        get { _value }
        nonmutating set { _ = newValue }
    }
    private let _value: Value
    private init(_ value: Value) { _value = value }
}

extension State: Sendable where Value: Sendable {}

public struct EnvironmentValues {
    public var displayScale: CGFloat {
        get { 1 }
        set { _ = newValue }
    }
}

@propertyWrapper public struct Environment<Value> {
    private let keyPath: KeyPath<EnvironmentValues, Value>
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }
    public var wrappedValue: Value { EnvironmentValues()[keyPath: keyPath] }
}

extension View {
    nonisolated public func onAppear(perform action: (() -> Void)? = nil) -> some View { EmptyView() }
    nonisolated public func onDisappear(perform action: (() -> Void)? = nil) -> some View { EmptyView() }
    nonisolated public func onChange<V: Equatable>(
        of value: V, initial: Bool = false, _ action: @escaping () -> Void
    ) -> some View { EmptyView() }
    nonisolated public func onChange<V: Equatable>(
        of value: V, initial: Bool = false, _ action: @escaping (V, V) -> Void
    ) -> some View { EmptyView() }
    @preconcurrency nonisolated public func onGeometryChange<T: Equatable & Sendable>(
        for type: T.Type, of transform: @escaping @Sendable (GeometryProxy) -> T, action: @escaping (T) -> Void
    ) -> some View { EmptyView() }
    nonisolated public func animation<V: Equatable>(_ animation: Animation?, value: V) -> some View { EmptyView() }
    nonisolated public func id<ID: Hashable>(_ id: ID) -> some View { EmptyView() }
    nonisolated public func transition(_ t: AnyTransition) -> some View { EmptyView() }
    nonisolated public func toolbar<Content: View>(@ViewBuilder content: () -> Content) -> some View { EmptyView() }
    nonisolated public func aspectRatio(_ aspectRatio: CGFloat? = nil, contentMode: ContentMode) -> some View {
        EmptyView()
    }
    nonisolated public func overlay<V: View>(
        alignment: Alignment = .center, @ViewBuilder content: () -> V
    ) -> some View { EmptyView() }
    nonisolated public func task(
        priority: TaskPriority = .userInitiated, @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View { EmptyView() }
    nonisolated public func refreshable(action: @escaping @Sendable () async -> Void) -> some View { EmptyView() }
    nonisolated public func navigationTitle<S: StringProtocol>(_ title: S) -> some View { EmptyView() }
    nonisolated public func clipped(antialiased: Bool = false) -> some View { EmptyView() }
    nonisolated public func frame(
        width: CGFloat? = nil, height: CGFloat? = nil, alignment: Alignment = .center
    ) -> some View { EmptyView() }
}
