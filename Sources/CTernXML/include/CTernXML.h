// A thin layer over expat, which parses XML. Linux only: Apple's systems have a parser of their own.
#ifndef CTERNXML_H
#define CTERNXML_H

#if defined(__linux__)

#if __has_include(<expat.h>)
#include <expat.h>
#else
#error "Tern needs expat's headers: install the Debian package libexpat1-dev (Fedora: expat-devel)"
#endif

#if XML_MAJOR_VERSION < 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION < 4)
#error "Tern needs expat 2.4 or later, the first one that limits the expansion of entities"
#endif

/// Creates a parser for a document in UTF-8, whatever the document declares. Entities may expand to at most as much as expat
/// limits where its build has these limits; parameter entities and external ones are never read. NULL without memory.
XML_Parser tern_xml_parser_make(void);

#endif
#endif
