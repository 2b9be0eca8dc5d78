#ifndef TERN_CGTK_SHIM_H
#define TERN_CGTK_SHIM_H

#include <gtk/gtk.h>
#include <glib-unix.h>

// libdispatch's interface for another main loop (CoreFoundation uses it): an eventfd that is readable when the main queue
// has work, and the call that does the work.
int _dispatch_get_main_queue_handle_4CF(void);
void _dispatch_main_queue_callback_4CF(void *message);

#endif
