"""What of an HTML page reaches a reader (R-NET-9), and that no page can break the reading of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.web.pages.html_worker import MAX_DEPTH, VisibleMarkdown


def markdown(html: str, base_url: str = "https://example.com/a/b") -> str:
    page = VisibleMarkdown(base_url)
    page.read(html)
    return page.so_far()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>One</h1><h2>Two</h2><p>three", "# One\n\n## Two\n\nthree"),
        ("<p>a <b>b</b> <i>c</i> <code>d</code></p>", "a **b** _c_ `d`"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "  * a\n  * b\n    * c"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "  3. a\n  4. b"),
        ("<pre><code>if a:\n    b\n</code></pre>after", "```\nif a:\n    b\n\n```\n\nafter"),
        ("<blockquote>a</blockquote>b", "> a\n\nb"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a| b\n---|---\n1| 2"),
        ("a<br>b<hr>c", "a\nb\n\n* * *\n\nc"),
        ("<section>a</section><section>b</section>", "a\n\nb"),
        ("<header>a</header><nav>b</nav><main>c</main><footer>d</footer>", "a\n\nb\n\nc\n\nd"),
        ("<title>T</title><p>a", "a"),
        ("<head><title>T</title><p>the head was never closed", "the head was never closed"),
        ("AT&amp;T &lt;b&gt; caf&eacute; &#8212; &#x1F410; &nbsp;x &bogus; & &", "AT&T <b> café — 🐐 x &bogus; & &"),
        ("1 < 2 <3 > 1", "1 < 2 <3 > 1"),
        ("<p>1\\. x</p><p>- y</p>", "1\\\\. x\n\n\\- y"),
        ("<a href='/x'>a</a> <a href='../y?z#q'>b</a>", "[a](https://example.com/x) [b](https://example.com/y?z#q)"),
        ("<base href='https://other.test/'><a href='x'>a</a>", "[a](https://other.test/x)"),
        ("<a name=x>plain<p>one<p>two", "plain\n\none\n\ntwo"),
        ("<a href=/x>one <a href=/y>two</a>", "[one ](https://example.com/x)[two](https://example.com/y)"),
        ("<a href='javascript:alert(1)'>a</a><a href='#top'>b</a>", "ab"),
        ("<a href='http://[broken'>a</a>", "a"),
        ("<img src='/i.png' alt='An  image'>", "![An image](https://example.com/i.png)"),
        ("<img src='data:image/png;base64,AAAA' alt='A chart'>", "A chart"),
        ("<span>a</span><span>b</span>", "ab"),
        ("<select><option>a<option>b</select>", "a\nb"),
        ("<div/>a<p/>b", "a\n\nb"),
        ("<noscript>You need JavaScript.</noscript>", "You need JavaScript."),
        ("<textarea><b>a</b></textarea>", "<b>a</b>"),
        ("", ""),
    ],
)
def test_a_page_becomes_markdown(html: str, text: str) -> None:
    assert markdown(html) == text


@pytest.mark.parametrize(
    "html",
    [
        "<script>secret</script>",
        "<SCRIPT type=a>secret</SCRIPT >",
        "<script>'<p>secret</p>'</script>",
        "<style>secret</style>",
        "<!-- secret -->",
        "<!-- secret --!>",
        "<!-- -- > secret -->",
        "<!secret>",
        "<?php secret ?>",
        "<![CDATA[secret]]>",
        "<template>secret</template>",
        "<iframe>secret</iframe>",
        "<svg><title>secret</title><text>secret</text></svg>",
        "<p hidden>secret</p>",
        "<p HIDDEN=until-found>secret</p>",
        "<div hidden><div>secret</div> secret</div>",
        "<span hidden>secret <span>secret</span> secret</span>",
        "<b style='display:none'>secret</b>",
        "<p style='color:red; DISPLAY : NONE !important'>secret</p>",
        "<p style='display:/* x */none'>secret</p>",
        "<p style='visibility:hidden'>secret</p>",
        "<p style='opacity:0'>secret</p>",
        "<p style='opacity: 0.0;'>secret</p>",
        "<p style='font-size:0px'>secret</p>",
        "<p style='position:absolute;left:-9999px'>secret</p>",
        "<p style='text-indent: -9999em'>secret</p>",
        "<dialog>secret</dialog>",
        "<ul><li hidden>secret</ul>",
        "<section><div hidden>secret</section>",
        "<input type=hidden value=secret>",
        "<p title='secret'></p>",
        "<meta name=description content=secret>",
        "<p hidden/>secret</p>",
        "<div hidden>" + "<div>" * 600 + "secret" + "</div>" * 600 + "secret</div>",
        "<div hidden>" + "<i>" * 600 + "</x>" * 99 + "secret</div>",
    ],
)
def test_what_nobody_would_see_is_left_out(html: str) -> None:
    assert markdown(f"<p>before</p>{html}<p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize(
    "html",
    [
        "<p style='display:block'>shown</p>",
        "<p style='opacity:0.5'>shown</p>",
        "<p style='font-size:0.9em'>shown</p>",
        "<p style='left:-5px'>shown</p>",
        "<p aria-hidden=true>shown</p>",
        "<dialog open>shown</dialog>",
        "<p hidden>a<p>shown",
        "<ul><li hidden>a<li>shown</ul>",
        "<section><div hidden>a</section><p>shown",
        "<details><summary>shown</summary></details>",
        "</head></script></style></div>shown",
        "</blockquote></ul></ol>shown",
    ],
)
def test_what_is_seen_is_shown(html: str) -> None:
    assert "shown" in markdown(html)


@pytest.mark.parametrize(
    "html", ["<p>seen</p><!-- never closed <p>secret", "<p>seen</p><script>secret", "<p>seen</p><p title='secret<p>x"]
)
def test_what_is_never_closed_hides_the_rest_as_in_a_browser(html: str) -> None:
    assert markdown(html) == "seen"


def test_too_deep_text_is_left_out_and_what_follows_is_not() -> None:
    page = VisibleMarkdown("https://example.com/")

    page.read("<p>one</p>" + "<div>" * 10_000 + "deep" + "</div>" * 10_000 + "<p>two</p>")

    assert page.so_far().split() == ["one", "two"]
    assert page.is_too_deep


def test_text_at_a_usual_depth_is_all_there() -> None:
    assert markdown("<div>" * (MAX_DEPTH - 1) + "<p>deep" + "</div>" * MAX_DEPTH) == "deep"


def test_lists_in_lists_do_not_multiply_the_text() -> None:
    assert len(markdown("<ul><li>x" * 500)) < 40_000


def test_what_is_nested_ends_with_what_it_is_in() -> None:
    assert markdown("<section><blockquote>a</section><p>b") == "> a\n\nb"


PIECES = """
<p> </p> <div hidden> </div> <a href='x'> </a> <b> </b> <ul> <li> </ul> <pre> </pre> <table> <td> <tr> </table>
<!-- --> <script> </script> <svg/> <q> <abbr title=x> </abbr> <blockquote> </blockquote> <h1> </h1> <img/src=x>
&amp; &# &#x; &#99999999999; < > </ <! <? " ' = <a href= text <code> </code> <option> <base href='//[' <br> <x-y>
"""


@given(st.lists(st.sampled_from(PIECES.split()) | st.text(max_size=5), max_size=60))
def test_no_page_breaks_the_reader(pieces: list[str]) -> None:
    markdown(" ".join(pieces))
    markdown("".join(pieces))
