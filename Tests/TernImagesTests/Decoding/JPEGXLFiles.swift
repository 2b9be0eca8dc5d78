#if os(Linux)
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// JPEG XL files that libjxl 0.7 wrote, in Base64.
enum JPEGXLFiles {
    /// 24 × 16, lossless: red is ten times x, green fifteen times y, blue six times their sum.
    static let rgb = decode(
        """
        /woDQUBxIQgCAQB4AUsYm+1iuVNQUFBQclCIKES4ZIzB0VjMjNHROy7ADs2wEQAMIAQQAGjPA7QS4P//////nzVLkiRJkiRJkqT/f///
        9f9f///1/1/t//V6gLwRj9m5lygJqDspaTc+/iI=
        """
    )

    /// The same with alpha 255 − ten times x.
    static let alpha = decode(
        """
        /woDwYLiQggIEAAYAksoNBZe7ljsUlBQUFBwRCNEFIygwMwYHb3jAiC5MQYvYYwxxjAGh1DYMcaYuGSMwdHYlQBgACGAAKKAAcD2Mp5Y
        A/j++f//X/L/Z/H/lUL+//+yZP//+v+v///6/6/z/8r9IvyaPru3pDXFrsvaTTyXQZBbHvf4//j/+P/4T/lP+f97C5kG
        """
    )

    /// The same, stored with associated alpha.
    static let premultiplied = decode(
        """
        /woDwYLiQggIEAAYAksoNBZe7ljsUlBQUFBwRCNEFIygwMwYHb3jAiC5MQYvYYwxxjAGh1DYMcaYuGSMwdHYlQBgACGAAKKAAcD2Mp5Y
        A/j++f//X/L/Z/H/lUL+//+yZP//+v+v///6/6/z/8r9IvyaPru3pDXFrsvaTTyXQZBbHvf4//j/+P/4T/lP+f97C5kG
        """
    )

    /// The colours of `rgb`, lossy.
    static let lossy = decode(
        """
        /woDQUJxIQASiAIA4AFd5RIAABUqo4wbvJzr+fJDh8W0jesMbbVtYUmiyDg2SSdwSBILqLf5wi8QxaZKzBPHXPABmspq2atY65NDJStD
        VbaIBABUkkhH5GR4nwSxioxuwrbbn293s6Z7XaujAsk0AKByzFkSMqTS679Xz4ejaSrzXVGQugM=
        """
    )

    /// 24 × 16, lossless: grey is ten times x.
    static let grey = decode(
        """
        /woDQVBcCAgCAQDEAEsoNcY+rAoSJsCIefFiPJzDGMYYrMMLAAbwbCERQP///w///6r+vworlVgIVlQAQAg=
        """
    )

    /// The same with alpha fifteen times y.
    static let greyAlpha = decode(
        """
        /woDwaK4EAgIEAD0AEsosXExD1eFWRISSgIiRsyMGWNuROEJace5EAAMIAQQAMQg2IDbav9/G+/062D+/3Mr0ub8FZGD42NJOwg=
        """
    )

    /// 24 × 16, 16 bits, lossless: red is 2,800 times x, green 4,000 times y, blue 1,500 times their sum.
    static let deep = decode(
        """
        AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAAEQanhsY/8KA/EDUFwICAIBAOgDSzhB9UJ3/GA9mDYSEhIH
        368g4YhGAiIRIwQCwu3mYgzOSSSFMQYvYUREJBUqEC1FxeB+xTDGYIQxxnAjABhACCAAkHhQms0G9NChS/xDhw4dOnTo0KEL+UOHDh06
        eKmu4sWLFy9evHjxKujixYsXL168ePGmrOLFixcvXrzSFtBHUGZw5+7u7i525u7u7u7u7u7u7u7u7u7urhzi7u6+Os5gquilDujz+Xw+
        WKqfz+fz+Xw+xyqfzwceN/DVKM8hs5xl11WtvwlK5pf8Q28/Gd/+SRL+ZPym7En4k/WJ8Cfhq39Nwp+EX+84CV+Rbp+0oywBDBBo2Ug4
        sw==
        """
    )

    /// The samples of `rgb`, in Display P3.
    static let wide = decode(
        """
        /woDQUAmNwIIAgEAeAFLGJvtYrlTUFBQUHJQiChEuGSMwdFYzIzR0TsuwA7NsBEADCAEEABozwO0EuD//////581S5IkSZIkSZKk/3//
        //X/X///9f9f7f/1eoC8EY/ZuZcoCag7KWk3Pv4i
        """
    )

    /// The samples of `rgb`, in BT.2020 with PQ.
    static let bright = decode(
        """
        /woDBRCQR484HAAAAAACCAIBAHgBSxib7WK5U1BQUFByUIgoRLhkjMHRWMyM0dE7LsAOzbARAAwgBBAAaM8DtBLg//////+fNUuSJEmS
        JEmSpP9////1/1////X/X+3/9XqAvBGP2bmXKAmoOylpNz7+Ig==
        """
    )

    /// The pixels of `rgb`, mirrored: the three bits from bit 27 are the orientation minus 1.
    static let oriented = decode(
        """
        /woDDRATCAIBAHgBSxib7WK5U1BQUFByUIgoRLhkjMHRWMyM0dE7LsAOzbARAAwgBBAAaM8DtBLg//////+fNUuSJEmSJEmSpP9////1
        /1////X/X+3/9XqAvBGP2bmXKAmoOylpNz7+Ig==
        """
    )

    /// The same with a preview of 8 × 8 pixels before the picture.
    static let preview = decode(
        """
        /woDjQWBmAgCAQDEAEsYk46DgwlQYCLGCO8IBAfYmwDHABhr/X9E//+YuYqItf2IdBcIAAqSADZftG0AyRsIAgEAeAFLGJvtYrlTUFBQ
        UHJQiChEuGSMwdFYzIzR0TsuwA7NsBEADCAEEABozwO0EuD//////581S5IkSZIkSZKk/3////X/X///9f9f7f/1eoC8EY/ZuZcoCag7
        KWk3Pv4i
        """
    )

    /// Two more layers of half the size, over the pixels of `alpha`.
    static let layers = decode(
        """
        /woDwUoICCAAABgCSyg0Fl7uWOxSUFBQUHBEI0QUjKDAzBgdveMCILkxBi9hjDHGMAaHUNgxxpi4ZIzB0diVAGAAIYAAooABwPYynlgD
        +P75//9f8v9n8f+VQv7//7Jk///6/6////r/r/P/yv0i/Jo+u7ekNcWuy9pNPJdBkFse9/j/+P/4//hP+U/5/3sLmQYIiBAgAAMIIpEA
        ADgBSxiTjoODCVCgRrwIxxhvxxU4wF4AbHEAmf//SPL/f1v//0jagMjahfjCiyg+SQDAgiQAwMEd22bztoes7f/ff+b/f2am+n9mJkFl
        QNIBCIgQIAADCCJRAAAwAUsYk46DgylGCixtjMHoxcYYezG2MQZzb8cVOMAeAyA7VN973zveO/IopijOOvGoAIH4jtC+N7X3Z5UZRVK9
        q9v3/YTvJ0A/wU4GZB4=
        """
    )

    /// 24 × 16 pixels with a channel of black ink.
    static let inks = decode(
        """
        AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAACCanhsY/8KA8EoAAkICBAAtAFLKKO6ZfTiDgqL5YPfKygo
        KDiiEaAQUTAGl4wxOBqLmTE6GhmMMVgpxhgz5glpx7kRAAwgBBAAaE8DfgBAMNP/LP8fAHQjlv//N5r7/9//f/3/1/9//f9X+3+9HiBv
        xGN27iVKAupOStqNj78I
        """
    )

    /// 24 × 16 pixels of a JPEG, in a container with the data to restore it.
    static let jpeg = decode(
        """
        AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAARanhscAAAAAD/CgNBJAAAAclqYnJktg0gCILQslCjQMhVJQAAIOSobMFQ
        nP8TRMYIZZxTCtqPkCHMUgcZZqB0hxqsDxlOPmbAIQcVFjlo2IHto4b+/ZFlDjvuQEPR/S/GOGOSSzb5ZJRTnpnmmm2+GeechR6a6KKN
        PhrppKWemuqqrb4a66zFHpvsss0+G+205Z6b7rrtvhvvvAUfnPDCDT8c8cQjl3xyyiu3/HLMMw9d9NFJL93001FPPXbZZ6e9dttvxz33
        4IUfnvjijT8e+eSjl3566qu3/nrsswc/fPHHJ798889HP33445d/fvrrt/9+/PP/VzBVVQIAIOSobMFQnP8XREIpo6xTisR4QMhm1CDD
        pDrQUD3YcO4hxwwoyAcNOeiwAxuLLHPU7/Zhxw2t6I88M/gkw/tfjHHGJZt8Msop01yzzTfjnLPQQxNdtNFHI5201FNTXbXVV2Odtdhj
        k1222Wejnbbcc9Ndt91345134IIPTnjhhh+OeOKRSz455ZVbfjnmmYcu+uikl2766ainHrvss9Neu+2345578MIPT3zxxh+PfPLRSz89
        9dVbfz322Ycv/vjkl2/++einH7/889Nfv/3345//v8APAFQWADsAAAExanhscIAAAAHgWwIQAHgEDm4MbA5u/v8OAAAYAAgAAQAAAAAA
        gIAliRTIvEkPgKeZ4R4AgEKSgoIC2Y4xWDQGNcY2Rje2sUViDCbYNWQak/UdOpBXW9GhA/GRgHKs/bBVQQAAXzgBxGDrEACEq0JnZQAA
        wFMhAACIrBIAAEwAAAAAPQEAAAAAAAAAAAAAAAAAAABSJEFukHwvIU4h3oF6sCjTJs0WfQAvRWgOoRuAGbJAFEYUsiEBAF4MANFSfxAQ
        NYSyAuArYZM0AACgLCQAAJToEwAATAAAAAD2AgAAAAAAAAAAAAAAAAAAAAAAAAAAAIUUSANKIjIGMcbYGM0YLdN/BUDwVIGKyg2CVNLu
        LVD7dklarxye7AGgq27dlIJjVr5a2PoqVZWPLxUQSA==
        """
    )

    /// 16 × 8, lossless, three frames of 50, 100 and 150 ms that play three times: the pixels of `alpha`, with five times
    /// the index more red.
    static let animation = decode(
        """
        /wrBBaPBmggIoAwAAIABSxib7UJhp6CgpBgpGLHUMQbDMTYGh2Mw+3BljIgxWAFJijFYOcbg9EIEEADI3gf0//+C/88B/wvk/3/1v9Qf
        29IZ091d3j1H5Cz2fM0+/mfn///j/x/e/uH4Hww0IbUBCAggGQAAfAFLGJvtQmGnoKCkGCkYsdQxBsPxGmMwHIPZ97yDOJIUY7ByjMHp
        hQggAJC9F/gAgP//xf//AKoO3bBHw2+fr/O2u7u7u7x7gEiL3/HIz+8f5f//x9M/vP+D7z+w0ENKAAgIoGUAAJABSxib7UJhp6CgpBhF
        jFjqGIPhGBtjjBejYzD7njWAI0kxBivHGJxeiAACANn7gGoAKPy/6/+Tcv7Q8////3/7/z+nwzskubt3d5d3rxAJqhu6+Xn4o/z//3j6
        h/d/4PyHHTtofg==
        """
    )

    /// 16 × 8: red; half transparent green of 6 × 4 at 2, 1 over it; blue of 6 × 4 at 4, 2 over that.
    static let composed = decode(
        """
        /wrBBQNYUFwSCAigjAAAaABLGIsVANSKMRjUBSQA6KQYALgk8O8HpUP7AwiIECCAAQQikcgCAEgASxiLFcJJQV5AAgD990cHAAAACIgg
        QIABBCKRBQEAQABLGIsVwklBXkACAPoDAAAA
        """
    )

    /// 300 × 200, two frames whose parts are in another order.
    static let reordered = decode(
        """
        /wpAAAAKBpATABJQBhCgBMgABQwAAAAAXeUSAAAVKqOMG7yc6/nyQ4fFtI3rDG21bWFJosg4NkkncAgpkH4xBuNijBeDIzPGYJHMAB0C
        wH8jzRAYaGQHx2eCKAAMAilJAAASkCwEKAHMAAUMAAAAAF3lEgAAFSqjjBu8nOv58kOHxbSN6wxttW1hSaLIODZJJ3AIKbDgYgzGxRgv
        BkdmjMEyAcwQHQLAe6PAEDjkPganZoIoABUdKUkA
        """
    )

    /// 3,300 × 3,300 pixels of one colour, lossy.
    static let large = decode(
        """
        /woaZxkAEggBAAzCGizBEtwAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAXeUSAAAVKqOMG7yc6/nyQ4fFtI3rDG21bWElK1JQULiHnhEvxmCN
        R2kHT5AFAJjZmPLCWKdTgHt85H2SDoR7CI+FosFMl2h4XXvQ6Dr5eAjdHbPeKHy9Auo38f9TGgbRTk8b5MOIjPx02VfOBgIAAABSUCB9
        YwzGxhg3BsdujMFiPQIMANGNFj24I5nGpKgkgB76CoMCElKVOJxT1KIGywSKsKQ1h+rXmD8XT34M7kimMSkqCaCHMvP//w9fMvhBFiot
        dPJjdCNQIFfKk6hM5JSW438WKi108qPoXILDn8vkx+COZBqTopIAeigzPwwAwUgAkzONizj5MbjjNAWnkVNmh5jTAaquJvNqHzMpKgmg
        hzLz/3MONZ0CgJIAeugrDJEJmOujYnQjUGD2q09BtQ+TopIAeigzPwwAPUkA7Byd/BjdGDlqve2xFJovh5jTAaquJvNqHzMpKgmghzLz
        /3MONZ0CgJIAeugrDJEJmOujYnQjUGD2q09BtQ+TopIAeigzPwwA6Q4AQiOd/UpoQ94a4EuYDHMh7ygWWqOHMvMjgQdXJACAnFxGZqEN
        UR8mw1xIU4aFFj2UmR8BlCQA
        """
    )

    /// 7,000 × 6,400 pixels of one colour, lossy.
    static let tooLarge = decode(
        """
        /wr6x+hqDwASCAEARMIP/MAPnMAP/MAPnMAP/MAPnEAGZEAGXAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAXeUS
        AAAVKqOMG7yc6/nyQ4fFtI3rDG21bWElK1JQULiHnhEvxmCNR2kHT5AFAMjbYMoLY51OAe7xkfdJOhDuITwWigYzXaLhde1Bo+vk4yF0
        d8x6o/D1CqjfxP9PaRhEOz1tkA8jMvLTZV85Q6EhSRAAAwBACgoKnDbGYGyMcXEKYwxGGGMMkb4xBq+7MQaLBQwAiekKfRaJsruo/ypo
        VJf/hUX9V0EZUt/5ZDwv6r8KgqwkMPz/j64ZXgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv
        6r8KgqwkMPz/j64ZXgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv6r8KgqwkMPz/j64ZXgBV
        V+fn6CdR+IJzcGDF/4IzcVtwDAwAxQTA7jdd7UDPL5SdQZbfNYOsJDD8q2cM3w7ggo358stPWio4BgwAiekKfRaJsruo/ypoVJf/hUX9
        V0EZUt/5ZDwv6r8KgqwkMPz/j64ZXgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv6r8Kgqwk
        MPz/j64ZXgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv6r8KgqwkMPz/j64ZXgBVV+fn6CdR
        +IJzcGDF/4IzcVtwDAwAxQTA7jdd7UDPL5SdQZbfNYOsJDD8q2cM3w7ggo358stPWio4BgwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5
        ZDwv6r8KgqwkMPz/j64ZXgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv6r8KgqwkMPz/j64Z
        XgBVV+fn6CdR+IJzcGDF/4IzcVtwDAwAiekKfRaJsruo/ypoVJf/hUX9V0EZUt/5ZDwv6r8KgqwkMPz/j64ZXgBVV+fn6CdR+IJzcGDF
        /4IzcVtwDAwAxQTA7jdd7UDPL5SdQZbfNYOsJDD8q2cM3w7ggo358stPWio4BgwAoSWANjktshZ7WptB//8ZyzetEddeQQIMAKElgDY5
        LbIWe1qbQf//Gcs3rRHXXkECDAChJYA2OS2yFntam0H//xnLN60R115BAgwAfUTAFCCtv5WjL3/1YAQvAJDpoucAAVCSAA==
        """
    )

    /// Returns a file with a container whose codestream is in as many parts, and a box behind it.
    static func boxed(_ stream: [UInt8], parts: Int = 1) -> [UInt8] {
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] { big(body.count + 8, 4) + Array(type.utf8) + body }
        var file = box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jxl \0\0\0\0jxl ".utf8))
        for part in 0..<parts where parts > 1 {
            let bytes = stream[stream.count * part / parts..<stream.count * (part + 1) / parts]
            file += box("jxlp", big(part == parts - 1 ? 1 << 31 | part : part, 4) + bytes)
        }
        if parts == 1 { file += box("jxlc", stream) }
        return file + box("free", [1, 2, 3, 4, 5, 6, 7, 8])
    }

    /// Returns `oriented` with another orientation.
    static func oriented(_ orientation: Int) -> [UInt8] {
        var file = oriented
        let bits = UInt16(file[3]) | UInt16(file[4]) << 8
        let changed = bits & ~(7 << 3) | UInt16(orientation - 1) << 3
        file[3] = UInt8(changed & 255)
        file[4] = UInt8(changed >> 8)
        return file
    }

    private static func decode(_ text: String) -> [UInt8] {
        [UInt8](Data(base64Encoded: text.filter { !$0.isWhitespace }) ?? Data())
    }
}
#endif
