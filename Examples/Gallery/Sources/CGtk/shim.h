#ifndef TERN_CGTK_SHIM_H
#define TERN_CGTK_SHIM_H

#include <gtk/gtk.h>
#include <glib-unix.h>

// The interface of libdispatch for other main loops, which CoreFoundation uses: an eventfd that is readable when the main
// queue has work, and a function that performs the work.
int _dispatch_get_main_queue_handle_4CF(void);
void _dispatch_main_queue_callback_4CF(void *message);

#endif
