"""The sources of the campaign query: contributors to candidates of 2000, and facts about zip codes.

Every name and number is invented.

The pages and files of the three sources of the campaign query.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from html import escape
from random import Random

from aioflow.demo.site import words
from aioflow.demo.site.markup import Markup, file_text, fill, joined

YEAR = 2000
CONTRIBUTIONS = 1200
CANDIDATES = ("Bradley", "Buchanan", "Bush", "Forbes", "Gore", "Keyes", "McCain", "Nader")
_SHARES = (8, 3, 30, 6, 28, 2, 18, 5)

PLACES = (
    ("01060", "Northampton", "MA"), ("02138", "Cambridge", "MA"), ("02906", "Providence", "RI"),
    ("03755", "Hanover", "NH"), ("04101", "Portland", "ME"), ("05401", "Burlington", "VT"),
    ("06520", "New Haven", "CT"), ("07030", "Hoboken", "NJ"), ("08540", "Princeton", "NJ"),
    ("10003", "New York", "NY"), ("10024", "New York", "NY"), ("11201", "Brooklyn", "NY"),
    ("12207", "Albany", "NY"), ("14607", "Rochester", "NY"), ("15213", "Pittsburgh", "PA"),
    ("19104", "Philadelphia", "PA"), ("19801", "Wilmington", "DE"), ("20008", "Washington", "DC"),
    ("20814", "Bethesda", "MD"), ("21218", "Baltimore", "MD"), ("22203", "Arlington", "VA"),
    ("23220", "Richmond", "VA"), ("25301", "Charleston", "WV"), ("27514", "Chapel Hill", "NC"),
    ("28203", "Charlotte", "NC"), ("29401", "Charleston", "SC"), ("30307", "Atlanta", "GA"),
    ("32114", "Daytona Beach", "FL"), ("33131", "Miami", "FL"), ("35203", "Birmingham", "AL"),
    ("37203", "Nashville", "TN"), ("38103", "Memphis", "TN"), ("39201", "Jackson", "MS"),
    ("40202", "Louisville", "KY"), ("43210", "Columbus", "OH"), ("44106", "Cleveland", "OH"),
    ("46204", "Indianapolis", "IN"), ("48104", "Ann Arbor", "MI"), ("49503", "Grand Rapids", "MI"),
    ("50309", "Des Moines", "IA"), ("53703", "Madison", "WI"), ("55403", "Minneapolis", "MN"),
    ("57104", "Sioux Falls", "SD"), ("58102", "Fargo", "ND"), ("59801", "Missoula", "MT"),
    ("60614", "Chicago", "IL"), ("60637", "Chicago", "IL"), ("63108", "Saint Louis", "MO"),
    ("64111", "Kansas City", "MO"), ("66044", "Lawrence", "KS"), ("68102", "Omaha", "NE"),
    ("70115", "New Orleans", "LA"), ("72201", "Little Rock", "AR"), ("73104", "Oklahoma City", "OK"),
    ("75205", "Dallas", "TX"), ("77005", "Houston", "TX"), ("78704", "Austin", "TX"),
    ("80302", "Boulder", "CO"), ("82001", "Cheyenne", "WY"), ("83702", "Boise", "ID"),
    ("84103", "Salt Lake City", "UT"), ("85281", "Tempe", "AZ"), ("87501", "Santa Fe", "NM"),
    ("89101", "Las Vegas", "NV"), ("90024", "Los Angeles", "CA"), ("90210", "Beverly Hills", "CA"),
    ("91101", "Pasadena", "CA"), ("92093", "La Jolla", "CA"), ("92612", "Irvine", "CA"),
    ("92660", "Newport Beach", "CA"), ("94110", "San Francisco", "CA"), ("94301", "Palo Alto", "CA"),
    ("94704", "Berkeley", "CA"), ("95060", "Santa Cruz", "CA"), ("96813", "Honolulu", "HI"),
    ("97214", "Portland", "OR"), ("98105", "Seattle", "WA"), ("99201", "Spokane", "WA"),
    ("99501", "Anchorage", "AK"), ("00901", "San Juan", "PR"),
)  # fmt: skip


@dataclass(frozen=True)
class Contribution:
    """Money that a person gave to a candidate."""

    name: str
    city: str
    state: str
    zip: str
    day: date
    amount: int
    candidate: str


@dataclass(frozen=True)
class Neighborhood:
    """The people of a zip code."""

    zip: str
    place: str
    state: str
    population: int
    median_age: float
    income: int
    home_value: int | None


@dataclass(frozen=True)
class Crime:
    """The crime of a zip code: 1 is safest, and the nation's average is 5."""

    zip: str
    place: str
    state: str
    index: int
    burglary: int
    theft: int
    assault: int


class Campaign:
    """The data of the three sources."""

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        dice = Random(f"{self._seed} contributions")
        return tuple(_contribution(dice) for _ in range(CONTRIBUTIONS))

    @cached_property
    def neighborhoods(self) -> dict[str, Neighborhood]:
        """By zip code; some zip codes are unknown here."""
        known = (_neighborhood(Random(f"{self._seed} neighborhood {place}"), *place) for place in PLACES)
        return {each.zip: each for each in known if each is not None}

    @cached_property
    def crimes(self) -> dict[str, Crime]:
        """By zip code; some zip codes are unknown here, others than for neighborhoods."""
        known = (_crime(Random(f"{self._seed} crime {place}"), *place) for place in PLACES)
        return {each.zip: each for each in known if each is not None}


def _contribution(dice: Random) -> Contribution:
    zip_code, city, state = dice.choice(PLACES)
    name = f"{dice.choice(words.LAST_NAMES)}, {dice.choice(words.FIRST_NAMES)} {dice.choice('ABCDEJLMRST')}."
    return Contribution(
        name=name,
        city=city,
        state=state,
        zip=zip_code,
        day=date(1999, 4, 1) + timedelta(days=dice.randint(0, 570)),
        amount=dice.choice((200, 250, 250, 300, 500, 500, 500, 750, 1000, 1000, 1000, 1000)),
        candidate=dice.choices(CANDIDATES, _SHARES)[0],
    )


def _neighborhood(dice: Random, zip_code: str, place: str, state: str) -> Neighborhood | None:
    if dice.random() < 0.08:
        return None
    income = dice.randint(240, 1180) * 100
    value = None if dice.random() < 0.1 else int(income * dice.uniform(2.2, 5.5)) // 1000 * 1000
    return Neighborhood(
        zip_code, place, state, dice.randint(3_000, 62_000), dice.randint(241, 469) / 10, income, value
    )


def _crime(dice: Random, zip_code: str, place: str, state: str) -> Crime | None:
    if dice.random() < 0.1:
        return None
    index = dice.choices(range(1, 11), (4, 8, 12, 15, 18, 15, 12, 8, 5, 3))[0]
    return Crime(
        zip_code, place, state, index, *(max(1, min(10, index + dice.randint(-2, 2))) for _ in range(3))
    )


COLUMNS = ("NAME", "CITY", "STATE", "ZIP", "DATE", "AMOUNT", "CANDIDATE")
_ROWS_PER_CHUNK = 100
_LARGEST = 25


@dataclass(frozen=True)
class _Source:
    """The owner of a page."""

    look: str
    name: str
    motto: str
    home: str
    original: str


_FEC = _Source("fec", "Campaign Finance Office", "Who gives how much to whom", "/fec/", "www.fec.gov")
_YAHOO = _Source(
    "profiles",
    "Neighborhood Profiles",
    "Who lives where",
    "/yahoo/neighborhoods",
    "realestate.yahoo.com",
)
_CRIME = _Source("crime", "Crime Index", "How safe is your street?", "/crime", "www.apbnews.com")


def _page(source: _Source, title: str, body: Markup) -> Markup:
    return fill(
        "campaign.html",
        title=f"{title} · {source.name}",
        style=file_text("campaign.css"),
        look=source.look,
        name=source.name,
        motto=source.motto,
        home=source.home,
        original=source.original,
        body=body,
    )


# --- contributions ------------------------------------------------------------------------------


def contributions_page(campaign: Campaign) -> Markup:
    """Return the page of downloads, with some of their rows."""
    largest = sorted(campaign.contributions, key=lambda each: (each.amount, each.day), reverse=True)
    rows = (
        f'<tr><td>{candidate}</td><td class="amount">{count:,}</td><td class="amount">$ {total:,}</td></tr>'
        for candidate, count, total in _totals(campaign)
    )
    body = fill(
        "fec.html",
        count=f"{len(campaign.contributions):,}",
        candidates=joined(rows),
        largest=joined(map(_row, largest[:_LARGEST])),
    )
    return _page(_FEC, "Contributions", body)


def _row(contribution: Contribution) -> str:
    cells = (
        escape(contribution.name),
        f"{contribution.city}, {contribution.state}",
        contribution.zip,
        f"{contribution.day:%m/%d/%Y}",
        contribution.candidate,
    )
    amount = f'<td class="amount">$ {contribution.amount:,}</td>'
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + amount + "</tr>"


def _totals(campaign: Campaign) -> list[tuple[str, int, int]]:
    """Candidate, number and sum of contributions; who got most is first."""
    counts, sums = Counter[str](), Counter[str]()
    for contribution in campaign.contributions:
        counts[contribution.candidate] += 1
        sums[contribution.candidate] += contribution.amount
    totals = [(candidate, counts[candidate], sums[candidate]) for candidate in CANDIDATES]
    return sorted(totals, key=lambda total: total[2], reverse=True)


def contributions_csv(campaign: Campaign) -> Iterator[bytes]:
    """The file piece by piece, header first."""
    contributions = campaign.contributions
    for start in range(0, len(contributions), _ROWS_PER_CHUNK):
        text = io.StringIO()
        writer = csv.writer(text)
        if start == 0:
            writer.writerow(COLUMNS)
        for each in contributions[start : start + _ROWS_PER_CHUNK]:
            day = f"{each.day:%m/%d/%Y}"
            writer.writerow((each.name, each.city, each.state, each.zip, day, each.amount, each.candidate))
        yield text.getvalue().encode()


def contributions_summary(campaign: Campaign) -> str:
    """The totals as a report of fixed columns."""
    head = ["CAMPAIGN FINANCE OFFICE", "PRESIDENTIAL CAMPAIGN OF 2000, INDIVIDUAL CONTRIBUTIONS", ""]
    titles = f"{'CANDIDATE':<16}{'NUMBER':>10}{'TOTAL':>16}"
    rows = [f"{name:<16}{count:>10,}{total:>16,}" for name, count, total in _totals(campaign)]
    return "\n".join([*head, titles, "-" * len(titles), *rows, ""])


# --- zip codes ----------------------------------------------------------------------------------


def neighborhood_page(campaign: Campaign, zip_code: str) -> Markup:
    """Return the page on the people of a zip code, also of one without data."""
    form = fill("zip_form.html", action=_YAHOO.home, zip=zip_code)
    if not zip_code:
        return _page(_YAHOO, "Look up a neighborhood", form)
    found = campaign.neighborhoods.get(zip_code)
    if found is None:
        text = f"We have no profile of {zip_code} yet. Try one nearby."
        return _page(_YAHOO, zip_code, fill("unknown.html", form=form, text=text))
    value = ""
    if found.home_value is not None:
        value = f'<dt>Median home value</dt><dd class="home-value">${found.home_value:,}</dd>\n'
    body = fill(
        "profile.html",
        form=form,
        zip=found.zip,
        place=found.place,
        state=found.state,
        income=f"{found.income:,}",
        population=f"{found.population:,}",
        age=found.median_age,
        home_value=Markup(value),
    )
    return _page(_YAHOO, f"{found.place}, {found.state}", body)


def crime_page(campaign: Campaign, zip_code: str) -> tuple[int, Markup]:
    """Return the page on crime, and the status of the answer: 404 for a zip code without data."""
    form = fill("zip_form.html", action=_CRIME.home, zip=zip_code)
    if not zip_code:
        return 200, _page(_CRIME, "Look up a zip code", form)
    found = campaign.crimes.get(zip_code)
    if found is None:
        text = f"{zip_code} is not in our files."
        return 404, _page(_CRIME, zip_code, fill("unknown.html", form=form, text=text))
    scale = (f'<i class="{"on" if step < found.index else ""}"></i>' for step in range(10))
    body = fill(
        "crime.html",
        form=form,
        zip=found.zip,
        place=found.place,
        state=found.state,
        index=found.index,
        scale=joined(scale, ""),
        burglary=found.burglary,
        theft=found.theft,
        assault=found.assault,
    )
    return 200, _page(_CRIME, f"{found.place}, {found.state}", body)
