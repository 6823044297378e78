"""The pages of Homeseekers for people: home, results of a search, hits for some words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlencode

from aioflow.dataclass import dataclass
from aioflow.demo.site import words
from aioflow.demo.site.houses import TODAY, Catalogue, House, Search
from aioflow.demo.site.markup import Markup, file_text, fill, joined
from aioflow.demo.site.pictures import front

T = TypeVar("T")
NEW_DAYS = 14
HITS_PER_PAGE = 10


@dataclass(frozen=True)
class Slice(Generic[T]):
    """One page of a list."""

    all: Sequence[T]
    page: int
    size: int

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.all) // self.size))

    @property
    def items(self) -> Sequence[T]:
        return self.all[(self.page - 1) * self.size : self.page * self.size]

    @property
    def shown(self) -> str:
        """Such as 1-6."""
        start = (self.page - 1) * self.size
        return f"{start + 1}-{start + len(self.items)}"


def house_page(title: str, summary: str, body: Markup, here: str = "") -> Markup:
    """A whole page in the site's frame; `here` is the part of the site it belongs to."""
    marks = {
        f"here_{part}": Markup(' class="here"' if part == here else "") for part in ("home", "search", "find")
    }
    style = file_text("homeseekers.css")
    return fill("layout.html", title=title, summary=summary, style=style, body=body, **marks)


def home_page(catalogue: Catalogue) -> Markup:
    """The way in."""
    towns = [
        fill(
            "town.html",
            name=town.name,
            state=town.state,
            query=urlencode({"city": town.name, "state": town.state}),
        )
        for town in words.TOWNS
    ]
    body = fill(
        "home.html",
        total=len(catalogue.houses),
        towns_count=len(words.TOWNS),
        form=search_form(Search(city="Irvine", state="CA", max_price=550_000), "search"),
        newest=joined(map(card, catalogue.newest(6))),
        towns=joined(towns),
    )
    return house_page(
        "Homeseekers: houses for sale", "Houses for sale, by people who live there.", body, "home"
    )


def search_form(search: Search, look: str) -> Markup:
    """The form, with what was searched for last."""
    states = dict.fromkeys(["", *(town.state for town in words.TOWNS)])
    beds = ["", *map(str, range(1, 6))]
    return fill(
        "search_form.html",
        look=look,
        heading=Markup("<h2>Your search</h2>\n  " if look == "filter" else ""),
        city=search.city or "",
        states=_options({state: state or "any" for state in states}, search.state or ""),
        max_price=search.max_price or "",
        beds=_options(
            {count: f"{count} or more" if count else "any" for count in beds}, str(search.min_beds or "")
        ),
    )


def _options(labels: dict[str, str], chosen: str) -> Markup:
    return joined(
        f'    <option value="{value}"{" selected" if value == chosen else ""}>{label}</option>'
        for value, label in labels.items()
    )


def card(house: House) -> Markup:
    """A house in a list."""
    parts = [f"{house.advertised_beds} beds", baths_text(house)]
    if house.square_feet is not None:
        parts.append(f"{house.square_feet:,} sq ft")
    return fill(
        "card.html",
        number=house.number,
        path=house.path,
        picture=front(house),
        price=f"{house.price:,}",
        address=house.address,
        city=house.city,
        state=house.town.state,
        zip=house.zip,
        brief=" · ".join(parts),
        tags=Markup(" ".join(_tags(house))),
    )


def baths_text(house: House) -> str:
    return f"{house.baths:g} {'bath' if house.baths == 1 else 'baths'}"


def _tags(house: House) -> Iterable[str]:
    yield f'<span class="tag">{house.kind}</span>'
    if house.listed is not None and (TODAY - house.listed).days <= NEW_DAYS:
        yield '<span class="tag new">new</span>'


# --- results ------------------------------------------------------------------------------------


def results_page(search: Search, results: Slice[House]) -> Markup:
    """One page of the houses that were found."""
    place = ", ".join(part for part in (search.city, search.state) if part) or "all towns"
    title = f"Houses in {place} · Homeseekers"
    form = search_form(search, "filter")
    if not results.items:
        return house_page(title, "Nothing found.", fill("none.html", place=place, form=form), "search")
    cards: list[str] = [card(house) for house in results.items]
    cards.insert(min(3, len(cards)), file_text("sponsored.html"))
    body = fill(
        "results.html",
        place=place,
        form=form,
        shown=results.shown,
        total=len(results.all),
        cards=joined(cards),
        pages=_page_links(results, "/search", _query(search)),
    )
    return house_page(title, f"{len(results.all)} houses for sale in {place}.", body, "search")


def _query(search: Search) -> dict[str, object]:
    asked = {
        "city": search.city,
        "state": search.state,
        "max-price": search.max_price,
        "min-beds": search.min_beds,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _page_links(results: Slice[T], path: str, query: dict[str, object]) -> Markup:
    """Previous, the pages around this one, Next; nothing where one page is all."""
    if results.pages == 1:
        return Markup("")

    def link(page: int, text: str, attributes: str) -> str:
        href = f"{path}?{urlencode({**query, 'page': page})}".replace("&", "&amp;")
        return f'<a {attributes}href="{href}">{text}</a>'

    links: list[str] = []
    if results.page > 1:
        links.append(link(results.page - 1, "‹ Previous", 'class="previous" rel="prev" '))
    for page in range(max(1, results.page - 3), min(results.pages, results.page + 3) + 1):
        far = 'class="far" ' if abs(page - results.page) > 1 else ""
        links.append(f"<b>{page}</b>" if page == results.page else link(page, str(page), far))
    if results.page < results.pages:
        links.append(link(results.page + 1, "Next ›", 'class="next" rel="next" '))
    return joined(['<nav class="pages" aria-label="Pages">', *links, "</nav>"])


def hits_page(query: str, hits: Slice[House]) -> Markup:
    """One page of the houses whose description has some words."""
    shown = [
        fill(
            "hit.html",
            path=house.path,
            title=f"{house.address}, {house.city}",
            snippet=_snippet(house, query),
        )
        for house in hits.items
    ]
    body = fill(
        "hits.html",
        query=query,
        shown=hits.shown if shown else "0",
        total=len(hits.all),
        hits=joined(shown),
        pages=_page_links(hits, "/find", {"q": query}),
    )
    return house_page(f"{query} · Homeseekers", f"Houses with {query}.", body, "find")


def _snippet(house: House, query: str) -> str:
    """The sentence that has the words, else the features."""
    sentences = (
        f"{sentence}." for text in house.description for sentence in text.removesuffix(".").split(". ")
    )
    found = (sentence for sentence in sentences if query.casefold() in sentence.casefold())
    return next(found, ", ".join(house.features) + ".")
