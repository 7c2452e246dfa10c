"""In which characters a page is written."""

from __future__ import annotations

import pytest

from goat_mcp.web.pages.charset import decode_page

XML = '<?xml version="1.0" encoding="windows-1251"?>{}'


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"\xef\xbb\xbfa\xc3\xbc", "text/html; charset=latin-1", "aü"),
        ("aü".encode("utf-16-le"), 'text/html; Charset = "UTF-16"', "aü"),
        (b"\xe4", "text/html;charset=ISO-8859-1", "ä"),
        (b"\x80", "text/html;charset=us-ascii", "€"),
        (b"<meta charset=utf-16>\xc3\xbc", "text/html", "<meta charset=utf-16>ü"),
        (b"<meta charset=cp1251>\xe9", "text/plain", "<meta charset=cp1251>й"),
        (b"say <meta charset=cp1251>\xe9", "text/plain", "say <meta charset=cp1251>é"),
        (b"\xc3\xbc", "", "ü"),
        (b"\xfc", "", "ü"),
        (b"\xc3\xbc\xc3", "text/plain", "ü\ufffd"),
        (b"aa\xc3", "text/plain", "aaÃ"),
        (b"a\xffb", "text/plain; charset=utf-8", "a\ufffdb"),
        (b"+AGE-", "text/plain; charset=utf-7", "+AGE-"),
        (b"\\x41", "text/plain; charset=unicode_escape", "\\x41"),
        (b"a-", "text/plain; charset=punycode", "a-"),
        (b"YQ==", "text/plain; charset=base64", "YQ=="),
        (b"a", "text/plain; charset=" + "x" * 500, "a"),
        (b"", "", ""),
        ("镕".encode("gbk"), "text/html; charset=gb2312", "镕"),
        ("㐀".encode("gb18030"), "text/html; charset=GBK", "㐀"),
        ("①".encode("cp932"), "text/html; charset=Shift_JIS", "①"),
        ("뷁".encode("cp949"), "text/html; charset=euc-kr", "뷁"),
        ("喺".encode("big5hkscs"), "text/html; charset=big5", "喺"),
        ("ş€".encode("cp1254"), "text/html; charset=iso-8859-9", "ş€"),
        ('<?xml version="1.0" encoding="windows-1251"?>\xe9'.encode("latin-1"), "application/xml", XML.format("й")),
        (
            '<?xml version="1.0" encoding="windows-1251"?>\xe9'.encode("latin-1"),
            "a/xml; charset=latin1",
            XML.format("é"),
        ),
        (b'<?xml version="1.0" encoding="UTF-16"?>\xc3\xbc', "", '<?xml version="1.0" encoding="UTF-16"?>ü'),
        (b"a<?xml encoding='windows-1251'?>\xe9", "", "a<?xml encoding='windows-1251'?>é"),
    ],
)
def test_mark_header_meta_element_and_a_guess_are_asked_in_turn(body: bytes, content_type: str, text: str) -> None:
    assert decode_page(body, content_type) == text
