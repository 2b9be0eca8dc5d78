import CGtk

extension Peer {
    /// What GTK draws for this widget at this moment, by the renderer of its window; nil for one that is not shown,
    /// or about to be laid out.
    public func drawn() -> Texture? {
        guard unsafe gtk_widget_get_mapped(widget) != 0, let native = unsafe gtk_widget_get_native(widget) else {
            return nil
        }
        let paintable = unsafe gtk_widget_paintable_new(widget)
        defer { unsafe g_object_unref(UnsafeMutableRawPointer(paintable)) }
        let snapshot = unsafe gtk_snapshot_new()
        let size = unsafe (width: gtk_widget_get_width(widget), height: gtk_widget_get_height(widget))
        unsafe gdk_paintable_snapshot(paintable, snapshot, Double(size.width), Double(size.height))
        guard let node = unsafe gtk_snapshot_free_to_node(snapshot) else { return nil }
        defer { unsafe gsk_render_node_unref(node) }
        var area = graphene_rect_t()
        area.size.width = Float(size.width)
        area.size.height = Float(size.height)
        return unsafe Texture(owned: gsk_renderer_render_texture(gtk_native_get_renderer(native), node, &area))
    }

    /// The same, once it can be had; nil after 5 seconds without.
    public func drawnSoon() async -> Texture? {
        var drawn = drawn()
        await MainLoop.wait(seconds: 5) {
            drawn = drawn ?? self.drawn()
            return drawn != nil
        }
        return drawn
    }
}
