"""What is sent of a URL: what its author wrote, to the host that was checked."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from aioflow.web.errors import AddressRefusedError
from aioflow.web.http import Request
from aioflow.web.transport import parsed
from tests.web.misbehaving import Server, answer, opened, sends


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (
            "/o?sig=a%2Fb%3D%2B&next=https%3A%2F%2Fx%2Fy%3Fz",
            "/o?sig=a%2Fb%3D%2B&next=https%3A%2F%2Fx%2Fy%3Fz",
        ),
        ("/a%3db%7E/%2F?%41", "/a%3db%7E/%2F?%41"),
        ("/a?b[]=1&c='x'+y;z,(!$*)@:", "/a?b[]=1&c='x'+y;z,(!$*)@:"),
        ("?a=%2F", "/?a=%2F"),
        ("/a?b=%2F#c%2F?d", "/a?b=%2F"),
        ("/a b?c d=%2F", "/a%20b?c%20d=%2F"),
        ("/\ta?b=\n%2F", "/a?b=%2F"),
        ("/ä?ö=%2F", "/%C3%A4?%C3%B6=%2F"),
        ("/100%?a=5%&b=%zz", "/100%25?a=5%25&b=%25zz"),
        ('/?a="<>|\\^`{}\x7f', "/?a=%22%3C%3E%7C%5C%5E%60%7B%7D%7F"),
        ("/a/../b?c=%2F", "/b?c=%2F"),
        ("/a/%2E%2e/b?c=%2F", "/b?c=%2F"),
        ("/a?b=1%0D%0AX:%20y", "/a?b=1%0D%0AX:%20y"),
        ("/a#/a", "/a"),
        ("/plain?a=b&c=d", "/plain?a=b&c=d"),
    ],
)
async def test_what_is_escaped_is_sent_as_it_was_given(url: str, sent: str) -> None:
    async with Server(sends(answer())) as server, opened(server) as transport:
        response = await transport.fetch(Request(f"{server.url('')}{url}"))
        assert "#" not in response.url
        assert server.requests[0].split(b"\r\n")[0].decode() == f"GET {sent} HTTP/1.1"


async def test_the_user_of_a_url_changes_nothing_about_what_is_sent() -> None:
    async with Server(sends(answer())) as server, opened(server) as transport:
        await transport.fetch(Request(f"http://me:hush%2F@{server.host}/a?sig=%2F#x"))
        assert server.requests[0].startswith(b"GET /a?sig=%2F HTTP/1.1\r\n")


@settings(max_examples=500, deadline=None)
@given(
    st.text("hu12.:[]@%0aA-_ä/?#\\ \n", max_size=12),
    st.sampled_from(["", "/a%2Fb?c=%2F", "?%41", "/x y%2F", "#%2F"]),
)
@example("1%32%37.0.0.1", "/%2F")
@example("[::1]:80", "?%2F")
@example("H%41.x", "/%2F")
@example("a@b", "/%2F")
@example("[:]", "")
@example("[:_]", "")
def test_however_a_url_is_sent_its_host_is_the_same(authority: str, rest: str) -> None:
    text = f"http://{authority}{rest}"
    try:
        expected = URL(text)
    except (ValueError, IndexError):
        with pytest.raises(AddressRefusedError):
            parsed(text)
        return
    found, _ = parsed(text)
    assert (found.scheme, found.raw_host, found.port, found.raw_user, found.raw_password) == (
        *(expected.scheme, expected.raw_host, expected.port),
        *(expected.raw_user, expected.raw_password),
    )
