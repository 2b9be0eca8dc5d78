/// A view that tasks are bound to: what all view models have in common.
///
/// A view adopts a view model by saying how it *shows* something; binding, rebinding, unbinding, identity and delivery
/// come from the model's extension. Nobody who is bound keeps the view alive, and nothing is shown after an unbinding, a
/// rebinding or the view's end.
@MainActor
public protocol BindableView: AnyObject {
    /// Where the view's bindings are.
    ///
    /// By default in one table of the process, by the view's identity: nothing needs to be declared. A view that can have
    /// stored properties may hold its bindings itself, and they then end in the moment in which the view does:
    ///
    /// ```swift
    /// let bindings = ViewBindings()
    /// ```
    var bindings: ViewBindings { get }
}

extension BindableView {
    /// The view's place in the table of the process.
    public var bindings: ViewBindings { ViewBindings(of: self) }
}
