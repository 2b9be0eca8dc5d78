#include "CTernXML.h"

#if defined(__linux__)
// expat.h declares these under a macro of expat's own build. They are absent from a library that was built without document
// types, in which nothing expands.
__attribute__((weak)) extern XML_Bool XML_SetBillionLaughsAttackProtectionMaximumAmplification(XML_Parser, float);
__attribute__((weak)) extern XML_Bool XML_SetBillionLaughsAttackProtectionActivationThreshold(
    XML_Parser, unsigned long long);

XML_Parser tern_xml_parser_make(void) {
    XML_Parser parser = XML_ParserCreate("UTF-8");
    if (!parser) return NULL;
    // A document type with declarations is refused before it is read: these limits hold if that should ever fail.
    if (XML_SetBillionLaughsAttackProtectionMaximumAmplification) {
        XML_SetBillionLaughsAttackProtectionMaximumAmplification(parser, 2);
    }
    if (XML_SetBillionLaughsAttackProtectionActivationThreshold) {
        XML_SetBillionLaughsAttackProtectionActivationThreshold(parser, 1 << 16);
    }
    XML_SetParamEntityParsing(parser, XML_PARAM_ENTITY_PARSING_NEVER);
    return parser;
}
#else
// An empty translation unit on other systems.
typedef int tern_xml_is_linux_only;
#endif
