"""The pages and files of the three sources of the campaign query."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from html import escape

from aioflow.dataclass import dataclass
from aioflow.demo.site.campaign import CANDIDATES, Campaign, Contribution
from aioflow.demo.site.markup import Markup, file_text, fill, joined

COLUMNS = ("NAME", "CITY", "STATE", "ZIP", "DATE", "AMOUNT", "CANDIDATE")
_ROWS_PER_CHUNK = 100
_LARGEST = 25


@dataclass(frozen=True)
class _Source:
    """Whose page it is."""

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
    """What there is to download, and some of it."""
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
    """Who lives there; a page that says so where nobody knows."""
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
    """How safe it is, with the status of the answer: 404 where nobody knows."""
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
