"""The demonstration's site: what its pages hold, how its switches work, and that it ends with its parent."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from select import select
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest
from selectolax.lexbor import LexborHTMLParser

from aioflow.demo.running import Site, running_site
from aioflow.demo.site.campaign import Campaign
from aioflow.demo.site.farm import LINKS, PAGES, farm_links
from aioflow.demo.site.house_pages import is_from_the_older_system
from aioflow.demo.site.houses import STANDARD_SEARCH, Catalogue, House, Search
from aioflow.demo.site.requests import Fates, Latency, Switches, fate_of
from tests.clocks import PATIENCE_SECONDS

SEARCH = "/search?city=Irvine&state=CA&max-price=550000"
ROOT = Path(__file__).parents[2]


def body_of(url: str) -> bytes:
    with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        content: bytes = answer.read()
        return content


def page_at(url: str) -> LexborHTMLParser:
    return LexborHTMLParser(body_of(url))


def status_of(url: str) -> int:
    try:
        with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            status: int = answer.status
            return status
    except HTTPError as error:
        with error:
            return error.code


def text_of(page: LexborHTMLParser, selector: str) -> str:
    found = page.css_first(selector)
    assert found is not None, selector
    return " ".join(found.text().split())


def result_pages(site: Site, search: str = SEARCH) -> Iterator[LexborHTMLParser]:
    """The first page of a search and all that Next leads to."""
    url = site.url + search
    while True:
        page = page_at(url)
        yield page
        following = page.css_first("a.next")
        if following is None:
            return
        url = urljoin(url, following.attributes["href"])


def links_of(page: LexborHTMLParser) -> list[str]:
    return [link.attributes["href"] or "" for link in page.css("li.house a.title")]


# --- houses -------------------------------------------------------------------------------------


def test_next_leads_through_twelve_pages_of_six_houses(site: Site) -> None:
    pages = list(result_pages(site))
    assert [text_of(page, ".count") for page in pages[:2]] == ["1-6 of 72", "7-12 of 72"]
    assert text_of(pages[-1], ".count") == "67-72 of 72"
    assert [len(links_of(page)) for page in pages] == [6] * 12
    found = [link for page in pages for link in links_of(page)]
    assert found == [house.path for house in Catalogue().find(STANDARD_SEARCH)]


def test_previous_leads_back(site: Site) -> None:
    second = page_at(f"{site.url}{SEARCH}&page=2")
    back = second.css_first("a.previous")
    assert back is not None
    first = page_at(urljoin(site.url, back.attributes["href"]))
    assert text_of(first, ".count") == "1-6 of 72"
    assert first.css_first("a.previous") is None


def test_a_search_without_results_says_so(site: Site) -> None:
    page = page_at(f"{site.url}/search?city=Atlantis")
    assert links_of(page) == []
    assert text_of(page, "h1") == "Nothing found"


def test_a_search_by_beds_counts_dens_as_its_lists_do(site: Site) -> None:
    found = [link for page in result_pages(site, SEARCH + "&min-beds=5") for link in links_of(page)]
    wanted = [house.path for house in Catalogue().find(STANDARD_SEARCH) if house.beds + house.has_den >= 5]
    assert found == wanted


def test_details_are_as_large_as_those_of_real_sites_and_lack_what_sellers_did_not_say(site: Site) -> None:
    houses = Catalogue().find(STANDARD_SEARCH)
    with ThreadPoolExecutor(8) as pool:
        bodies = list(pool.map(lambda house: body_of(site.url + house.path), houses))
    assert all(20_000 <= len(body) <= 40_000 for body in bodies)
    for house, body in zip(houses, bodies, strict=True):
        assert shown(LexborHTMLParser(body)) == expected(house)
    assert any(house.mls is None for house in houses)
    assert any(is_from_the_older_system(house) for house in houses)
    assert any(not is_from_the_older_system(house) for house in houses)


def shown(page: LexborHTMLParser) -> dict[str, object]:
    def fact(name: str) -> str | None:
        return text_of(page, f".facts .{name} .value") if page.css_first(f".facts .{name}") else None

    listed = fact("listed")
    return {
        "address": text_of(page, "h1.address"),
        "zip": text_of(page, ".place .zip"),
        "price": text_of(page, ".asking"),
        "beds": fact("beds"),
        "area": fact("area"),
        "mls": fact("mls"),
        "listed": listed and datetime.strptime(listed, "%B %d, %Y").date(),
        "schools": [" ".join(item.text().split()) for item in page.css(".schools .name")],
        "history": [" ".join(cell.text().split()) for cell in page.css(".history .amount")],
    }


def expected(house: House) -> dict[str, object]:
    return {
        "address": house.address,
        "zip": house.zip,
        "price": f"$ {house.price:,}",
        "beds": f"{house.beds} + den" if house.has_den else str(house.beds),
        "area": house.square_feet and f"{house.square_feet:,} sq ft",
        "mls": house.mls,
        "listed": house.listed,
        "schools": [school.name for school in house.schools],
        "history": [f"$ {change.price:,}" for change in house.history],
    }


def test_words_are_found_by_a_form_and_paged_by_links(site: Site) -> None:
    with urlopen(Request(site.url + "/find", data=b"q=fireplace"), timeout=PATIENCE_SECONDS) as answer:
        page = LexborHTMLParser(answer.read())
    wanted = Catalogue().find(Search(text="fireplace"))
    assert text_of(page, ".count") == f"1-10 of {len(wanted)}"
    following = page.css_first("a.next")
    assert following is not None
    second = page_at(urljoin(site.url, following.attributes["href"]))
    assert [hit.attributes["href"] for hit in second.css("li.hit a")] == [
        house.path for house in wanted[10:20]
    ]


@pytest.mark.parametrize("path", ["/houses/nowhere-1", "/photos/1.svg", "/nothing", "/farm/5000"])
def test_what_is_not_there_is_not_found(site: Site, path: str) -> None:
    assert status_of(site.url + path) == 404


def test_a_page_that_has_not_changed_is_not_sent_again(site: Site) -> None:
    with urlopen(site.url + SEARCH, timeout=PATIENCE_SECONDS) as answer:
        tag = answer.headers["ETag"]
    with pytest.raises(HTTPError) as raised:
        urlopen(Request(site.url + SEARCH, headers={"If-None-Match": tag}), timeout=PATIENCE_SECONDS)
    with raised.value as unchanged:
        assert unchanged.code == 304


# --- for machines -------------------------------------------------------------------------------


def test_the_api_gives_every_house_once(site: Site) -> None:
    path, numbers = "/api/houses?offset=0", []
    while path:
        answer = json.loads(body_of(site.url + path))
        numbers += [house["id"] for house in answer["houses"]]
        path = answer["next"]
    assert numbers == [house.number for house in Catalogue().houses]


def test_sitemap_feed_and_robots_are_well_formed(site: Site) -> None:
    places = ElementTree.fromstring(body_of(site.url + "/sitemap.xml")).iterfind(".//{*}loc")
    assert [place.text for place in places] == [site.url + house.path for house in Catalogue().houses]
    assert len(ElementTree.fromstring(body_of(site.url + "/feed.xml")).findall("{*}entry")) == 20
    assert f"Sitemap: {site.url}/sitemap.xml" in body_of(site.url + "/robots.txt").decode()
    ElementTree.fromstring(body_of(site.url + Catalogue().houses[0].photo_path))


# --- campaign -----------------------------------------------------------------------------------


def test_the_contributions_can_be_read_as_csv(site: Site) -> None:
    rows = list(csv.DictReader(body_of(site.url + "/fec/2000/contributions.csv").decode().splitlines()))
    assert [(row["NAME"], row["ZIP"], int(row["AMOUNT"]), row["CANDIDATE"]) for row in rows] == [
        (each.name, each.zip, each.amount, each.candidate) for each in Campaign().contributions
    ]


def test_zip_codes_are_known_or_not(site: Site) -> None:
    campaign = Campaign()
    zips = {each.zip for each in campaign.contributions}
    known = min(zips & campaign.neighborhoods.keys() & campaign.crimes.keys())
    page = page_at(f"{site.url}/yahoo/neighborhoods?zip={known}")
    assert text_of(page, ".profile .income") == f"${campaign.neighborhoods[known].income:,}"
    assert text_of(page_at(f"{site.url}/crime?zip={known}"), ".index") == str(campaign.crimes[known].index)
    nobody_lives_in = min(zips - campaign.neighborhoods.keys())
    assert page_at(f"{site.url}/yahoo/neighborhoods?zip={nobody_lives_in}").css_first(".profile") is None
    assert status_of(f"{site.url}/crime?zip={min(zips - campaign.crimes.keys())}") == 404


# --- the farm -----------------------------------------------------------------------------------


def test_every_page_of_the_farm_can_be_reached_from_the_first() -> None:
    reached, waiting = {0}, [0]
    while waiting:
        links = farm_links(waiting.pop())
        assert len(links) == LINKS
        waiting += set(links) - reached
        reached |= set(links)
    assert reached == set(range(PAGES))


def test_both_servers_give_the_same_farm(site: Site) -> None:
    for page in (0, PAGES - 1):
        body = body_of(f"{site.farm_url}/farm/{page}")
        assert body == body_of(f"{site.url}/farm/{page}")
        links = [link.attributes["href"] for link in LexborHTMLParser(body).css("a.link")]
        assert links == [f"/farm/{target}" for target in farm_links(page)]
    assert status_of(f"{site.farm_url}/farm/{PAGES}") == 404


# --- switches -----------------------------------------------------------------------------------


def test_results_and_their_pages_are_as_many_as_asked_for() -> None:
    with running_site(results=50, per_page=30, seed=7) as site:
        pages = list(result_pages(site))
        assert [text_of(page, ".count") for page in pages] == ["1-30 of 50", "31-50 of 50"]
        found = [link for page in pages for link in links_of(page)]
    assert found == [house.path for house in Catalogue(seed=7, results=50).find(STANDARD_SEARCH)]


def test_requests_fail_as_the_seed_says() -> None:
    switches = Switches(error_rate=0.4, seed=3)
    paths = [house.path for house in Catalogue(seed=3).houses[:20]]
    with running_site(error_rate=0.4, seed=3) as site:
        statuses = {(path, attempt): status_of(site.url + path) for path in paths for attempt in (1, 2)}
    assert statuses == {
        (path, attempt): 503 if fate_of(switches, path, attempt).fails else 200 for path, attempt in statuses
    }
    assert set(statuses.values()) == {200, 503}


def test_a_request_never_takes_less_than_its_latency() -> None:
    with running_site(latency=0.05) as site:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(body_of, [site.url + house.path for house in Catalogue().houses[:4]]))
        log = site.log()
        site.clear_log()
        assert site.log() == []
    assert len(log) == 4
    for entry in log:
        assert entry.status == 200
        assert entry.answered is not None
        assert entry.answered - entry.arrived >= 0.049
        assert 1 <= entry.concurrency <= 4


def test_a_latency_with_a_tail_has_the_median_that_was_asked_for() -> None:
    fates = Fates(Switches(latency=Latency.parse("lognormal:0.1,0.8")))
    drawn = sorted(fates.next(f"/{number}").latency_seconds for number in range(1001))
    assert 0.09 < drawn[500] < 0.11
    assert drawn[990] > 0.4


@pytest.mark.parametrize("text", ["fast", "normal:1,2", "lognormal:1", "-1"])
def test_a_bad_latency_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text.partition(":")[0]):
        Latency.parse(text)


# --- its life -----------------------------------------------------------------------------------

PARENT = """
import sys, time
from aioflow.demo.running import running_site
with running_site() as site:
    print(site.process_id, flush=True)
    sys.stdin.read()
"""


def test_the_site_ends_with_the_block() -> None:
    with running_site() as site:
        os.kill(site.process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(site.process_id, 0)


def test_the_site_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert parent.stdout is not None
    with parent:
        number = int(parent.stdout.readline())
        watched = os.pidfd_open(number)
        parent.send_signal(signal.SIGKILL)
    try:
        assert select([watched], [], [], PATIENCE_SECONDS)[0], "the site is still there"
    finally:
        os.close(watched)


def test_a_port_that_is_taken_is_told_without_a_traceback(site: Site) -> None:
    port = site.host.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "aioflow.demo.site", "--port", port], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the site cannot listen")
    assert "Traceback" not in done.stderr
