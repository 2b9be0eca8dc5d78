#if canImport(Glibc)
/// Names of charsets that mean more on the web than glibc's tables of that name hold, and names that glibc does not know
/// (WHATWG Encoding §4.2).
///
/// glibc reads `\` and `~` of Shift_JIS as `¥` and `‾`, which breaks every JSON string with an escape, and the older of
/// the Chinese, Japanese and Korean tables lack letters that servers send under their names. What stands here instead is
/// a superset that differs in nothing else.
enum CharsetAliases {
    /// glibc's name for a charset, given in lower case; nil where the name itself is right.
    static func name(of charset: String) -> String? {
        switch charset {
        case "shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "csshiftjis", "ms932": "CP932"
        case "euc-jp", "x-euc-jp", "eucjp", "cseucpkdfmtjapanese": "EUC-JP-MS"
        case "gb2312", "gb_2312-80", "gb_2312", "csgb2312", "csiso58gb231280", "iso-ir-58", "chinese", "gbk", "x-gbk",
            "cp936", "windows-936", "euc-cn":
            "GB18030"
        case "euc-kr", "ks_c_5601-1987", "ks_c_5601-1989", "ksc5601", "ksc_5601", "korean", "csksc56011987", "cseuckr",
            "windows-949":
            "CP949"
        case "big5", "x-x-big5", "cn-big5", "csbig5": "BIG5-HKSCS"
        case "tis-620", "iso-8859-11", "iso8859-11", "dos-874": "WINDOWS-874"
        case "iso-8859-8-i", "csiso88598i", "logical": "ISO-8859-8"
        case "x-mac-roman", "mac", "csmacintosh": "MACINTOSH"
        case "x-mac-cyrillic", "x-mac-ukrainian": "MAC-CYRILLIC"
        case "x-cp1250", "x-cp1251", "x-cp1252", "x-cp1253", "x-cp1254", "x-cp1255", "x-cp1256", "x-cp1257", "x-cp1258":
            String(charset.dropFirst(2)).uppercased()
        default: nil
        }
    }
}
#endif
